"""Option strings of a grid: several in one text, one from a mapping, options varied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from unpoison.bench.evaluation.scenarios import NO_ATTACK
from unpoison.core import registry
from unpoison.errors import OptionError, UnknownNameError, clip

__all__ = ["check_spec", "expand_variations", "format_spec", "parse_variations", "specs", "split_specs"]


def split_specs(text: str) -> list[str]:
    """Option strings with commas between them: `grada:alpha=0.3,keep=5,ragdefender` are two.

    A comma ends an option string unless what follows is an option of it: `option=value` without a colon before the
    equals sign.

    Raises:
        OptionError: It begins with an option.
    """
    option_strings: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, _ = part.partition("=")
        if not equals or ":" in name:
            option_strings.append(part)
        elif not option_strings:
            raise OptionError(f"{clip(text)} begins with an option; write name:option=value,option=value")
        else:
            last = option_strings[-1].rpartition("+")[
                2
            ]  # of a composed attack, options belong to the last wrapper named
            option_strings[-1] += f"{',' if ':' in last else ':'}{part}"
    return option_strings


def parse_variations(texts: Iterable[str]) -> dict[str, str]:
    """`alpha=0.2,0.4` to options with their values; several texts may name different options.

    Raises:
        OptionError: No equals sign, or no value.
    """
    options = {}
    for text in texts:
        option, equals, values = text.partition("=")
        if not equals or not option.strip() or not values.strip():
            raise OptionError(f"{clip(text)} varies nothing; write option=value,value")
        options[option.strip()] = values
    return options


def specs(name: str, item: Any) -> Iterable[str]:
    """The option strings of one entry: a text, or a mapping with `name` and lists of option values.

    Raises:
        OptionError: Neither of both.
    """
    if isinstance(item, str):
        return split_specs(item)
    if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
        raise OptionError(f"{name} must be a name, name:option=value, or a mapping with a name, got {clip(item)}")
    options = {str(key): value if isinstance(value, list) else [value] for key, value in item.items() if key != "name"}
    return [format_spec(item["name"], dict(zip(options, chosen))) for chosen in product(*options.values())]


def format_spec(name: str, options: Mapping[str, Any]) -> str:
    """The option string of a name and its options."""
    pairs = ",".join(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in options.items()
    )
    return f"{name}:{pairs}" if pairs else name


def expand_variations(chosen: tuple[str, ...], vary: Mapping[str, Any]) -> tuple[str, ...]:
    """Defenses with every value of the varied options, where they have them.

    Raises:
        OptionError: None of them has the option.
    """
    if not isinstance(vary, Mapping):
        raise OptionError(f"vary must map options to values, got {clip(vary)}")
    for option, given in vary.items():
        values = str(given).split(",") if not isinstance(given, list) else given
        option_strings, used = list[str](), False
        for spec in chosen:
            name, options = registry.parse(spec)
            has = option in {existing.name for existing in registry.options(registry.find("defenses", name))}
            used |= has
            option_strings.extend(
                format_spec(name, {**options, option: value}) for value in values
            ) if has else option_strings.append(spec)
        if not used:
            raise OptionError(f"none of the defenses {', '.join(chosen)} has an option {clip(option)} to vary")
        chosen = tuple(dict.fromkeys(option_strings))
    return chosen


def check_spec(kind: str, spec: str) -> None:
    """Refuse a wrong name or option before anything runs.

    Raises:
        UnknownNameError: No such name or option; the message names the nearest.
    """
    if kind == "attacks" and registry.parse(spec) == (NO_ATTACK, {}):
        return
    for of, part in registry.parts(kind, spec):
        name, given = registry.parse(part)
        existing = [option.name for option in registry.options(registry.find(of, name))]
        for option in given:
            if option not in existing:
                raise UnknownNameError(f"option of {name}", option, existing)
