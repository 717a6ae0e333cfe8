"""Option strings such as `grada:alpha=0.3`: read, varied, checked, and asked about what they name.

A text or a mapping may hold several of them. Of an attack it can be asked whether it sees the context, whose wording it
plants, and what stands in for the language model of its paper.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from unpoison.bench.attacks.base import Attack
from unpoison.bench.evaluation.scenarios import NO_ATTACK, Scenario
from unpoison.core import registry
from unpoison.errors import OptionError, UnknownNameError, clip
from unpoison.models.loading import can_write

__all__ = [
    "attack_name",
    "check_spec",
    "expand_variations",
    "format_spec",
    "make_attack",
    "parse_variations",
    "sees_context",
    "short_of",
    "specs",
    "split_specs",
    "stand_in",
    "takes",
    "wording",
]


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
            option_strings[-1] += f"{',' if ':' in option_strings[-1] else ':'}{part}"
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
            if option in _option_names("defenses", name):
                used = True
                option_strings += [format_spec(name, {**options, option: value}) for value in values]
            else:
                option_strings.append(spec)
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
    name, given = registry.parse(spec)
    existing = _option_names(kind, name)
    for option in given:
        if option not in existing:
            raise UnknownNameError(f"option of {name}", option, existing)


def _option_names(kind: str, name: str) -> list[str]:
    return [option.name for option in registry.options(registry.find(kind, name))]


def takes(kind: str, spec: str, option: str) -> bool:
    """Whether the class behind an option string has this argument.

    Raises:
        UnknownNameError: No such name.
    """
    return option in inspect.signature(_class(kind, spec)).parameters


def sees_context(spec: str) -> bool:
    """Whether an attack is shown the clean passages that it competes with: it has an encoder, or builds on them.

    Raises:
        UnknownNameError: No such attack.
    """
    return takes("attacks", spec, "encoder") or bool(_class("attacks", spec).uses_context)


def _class(kind: str, spec: str) -> Any:
    return registry.find(kind, registry.parse(spec)[0])


def _crafting(spec: str) -> tuple[type[Attack], dict[str, str]]:
    """The class of an attack, and its options."""
    name, options = registry.parse(spec)
    return registry.find("attacks", name), options


def stand_in(scenario: Scenario) -> str:
    """What writes an attack's texts in place of the language model that its paper used; "" where nothing does."""
    if not scenario.attacked:
        return ""
    attack, options = _crafting(scenario.attack)
    given = {"generator": scenario.generator, **options}.get(attack.model_option)
    return attack.offline if given is None or not can_write(given) else ""


def short_of(scenario: Scenario) -> str:
    """In what an attack's search falls short of the published one; "" where it does not, or does not search."""
    if not scenario.attacked:
        return ""
    attack, options = _crafting(scenario.attack)
    return attack.short_of(options, scenario.generator)


WORDINGS = {"ours": "our wording", "published": "", "data": "the data's texts, our wording where it has none"}
"""How tables call whose words an attack plants; nothing where they are its authors'."""


def wording(spec: str) -> str:
    """Whose words an attack plants, as tables say it.

    A zero against a template of our own says nothing of what the attack's authors wrote.

    Raises:
        UnknownNameError: No such attack.
    """
    attack, options = _crafting(spec)
    return f"the words of {options['replay']}'s code" if options.get("replay") else WORDINGS[attack.wording]


def attack_name(spec: str) -> str:
    """An attack with the label of its wording, where it has one."""
    label = wording(spec)
    return f"{spec} ({label})" if label else spec


def make_attack(spec: str, **given: Any) -> Attack:
    """The attack that an option string names; `given` are the models and settings of the run.

    Raises:
        UnknownNameError: No such attack.
        OptionError: An unknown option, a model that it needs, or a question prefix for an attack that takes none.
    """
    if given.get("prefix") is not None and not takes("attacks", spec, "prefix"):
        raise OptionError(f"the attack {registry.parse(spec)[0]} takes no question prefix; leave the option out")
    attack: Attack = registry.create("attacks", spec, **given)
    return attack
