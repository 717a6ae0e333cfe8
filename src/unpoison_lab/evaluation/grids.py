"""Scenarios as the cross product of axes, from the command line or from one YAML file.

Every field of a `Scenario` is an axis, and so is every option of a defense, attack or model::

    data: [nq_poisoned.jsonl]
    attack: [poisonedrag, {name: published, attack: [tan, garag]}]
    poisons: [1, 3, 5]
    defense: [ragdefender, {name: grada, alpha: [0.2, 0.4], keep: 5}]
    generator: "openai:my-model,base_url=http://127.0.0.1:8000/v1"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, Self

from unpoison.core import registry
from unpoison.errors import InputError, OptionError, UnknownNameError, clip
from unpoison_lab.evaluation.scenarios import PLACED, Scenario, check_spec
from unpoison_lab.evaluation.workbench import sibling_corpus

__all__ = ["MAX_SCENARIOS", "Grid", "axis", "specs"]

MAX_SCENARIOS = 10_000
"""Larger grids are refused: one wrong number makes one."""

_KINDS = {
    "data": "text",
    "corpus": "text",
    "limit": "count",
    "seed": "count",
    "k": "count",
    "retriever": "model",
    "policy": "words",
    "prefix": "switch",
    "triggered": "switch",
    "attack": "spec",
    "poisons": "count",
    "positions": "positions",
    "owned": "words",
    "encoder": "model",
    "generator": "model",
    "architecture": "words",
    "style": "spec",
    "nli": "model",
    "nli_noise": "share",
    "sources": "words",
    "history": "words",
    "defense": "spec",
}
"""Axes with the kind of their values, from the slowest to the fastest: scenarios with the same passages follow one
another. A `text` is one value; in the others commas separate values."""

AXES = tuple(_KINDS)

_WANTED = {
    "count": "whole numbers",
    "share": "numbers from 0 to 1",
    "positions": "places from 1, several for one question joined by +",
    "switch": "true or false",
}
_MAY_BE_NONE = ("limit", "prefix", "generator", "nli")
_DEFAULTS: dict[str, Any] = {"poisons": (1,), "attack": ("poisonedrag",)}


@dataclass(frozen=True, slots=True)
class Grid:
    """Axes whose cross product is measured.

    Attributes:
        axes: Values by the name of the axis.
        baseline: Also measure no defense: all passages, and the first n for every defense that keeps n.
        clean: Also measure every defense without an attack.
    """

    axes: Mapping[str, tuple[Any, ...]]
    baseline: bool = True
    clean: bool = True

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Read axes, each a value, a list of values or a text with commas; and the switches `baseline` and `clean`.

        Raises:
            UnknownNameError: No such axis, attack or defense; the message names the nearest.
            OptionError: A value that cannot be used, or axes that exclude each other.
            InputError: No data.
        """
        settings = (*AXES, "baseline", "clean")
        for name in values:
            if name not in settings:
                raise UnknownNameError("setting of a grid", str(name), settings)
        switches = {name: values.get(name, True) for name in ("baseline", "clean")}
        for name, value in switches.items():
            if not isinstance(value, bool):
                raise OptionError(f"{name} must be true or false, got {clip(value)}")
        axes = {name: axis(name, values[name]) for name in AXES if values.get(name) is not None}
        if not axes.get("data"):
            raise InputError("a grid needs data; give files, or 'sample'")
        if not axes.get("defense"):
            raise OptionError("a grid needs a defense, such as -d guard")
        if "positions" in axes and ("poisons" in axes or not set(axes.get("policy", PLACED)) <= set(PLACED)):
            raise OptionError("positions say how many poisons there are and that they replace; leave the others out")
        for kind, name in (("defenses", "defense"), ("attacks", "attack")):
            for spec in axes.get(name, ()):
                check_spec(kind, spec)
        return cls(axes, **switches)

    def scenarios(self) -> tuple[Scenario, ...]:
        """All cells, each once; those with the same passages follow one another.

        Raises:
            OptionError: More than `MAX_SCENARIOS`, or values that exclude each other.
        """
        size = prod(map(len, self.axes.values()))
        if size > MAX_SCENARIOS:
            raise OptionError(f"the grid has {size:,} scenarios, more than {MAX_SCENARIOS:,}; give fewer values")
        scenarios = list(self._product())
        if self.clean:
            scenarios = [each for scenario in scenarios for each in (scenario.twin, scenario)]
        if self.baseline:
            scenarios = [each for scenario in scenarios for each in (*_baselines(scenario), scenario)]
        by_context: dict[Scenario, list[Scenario]] = {}
        for scenario in dict.fromkeys(scenarios):
            by_context.setdefault(replace(scenario, defense=""), []).append(scenario)
        return tuple(
            each for group in by_context.values() for each in sorted(group, key=lambda each: not each.undefended)
        )

    def _product(self) -> Iterator[Scenario]:
        names = [name for name in AXES if name in self.axes or name in _DEFAULTS]
        for values in product(*(self.axes.get(name, _DEFAULTS.get(name)) or () for name in names)):
            chosen = dict(zip(names, values))
            if "positions" in chosen:
                chosen |= {"policy": chosen.get("policy", "replace-at"), "poisons": len(chosen["positions"])}
            corpus = chosen.get("corpus")
            chosen["corpus"] = sibling_corpus(chosen["data"]) if corpus is None else "" if corpus == "none" else corpus
            yield Scenario(**chosen)


def _baselines(scenario: Scenario) -> Iterator[Scenario]:
    """No defense: everything, and as many passages as the defense keeps."""
    yield replace(scenario, defense="vanilla")
    name, given = registry.parse(scenario.defense)
    defaults = {option.name: option.default for option in registry.options(registry.find("defenses", name))}
    keep = given.get("keep", defaults.get("keep"))
    if str(keep).isdigit() and int(str(keep)) < scenario.k:
        yield replace(scenario, defense=f"vanilla:keep={keep}")


def axis(name: str, value: Any) -> tuple[Any, ...]:
    """The values of one axis, each once: a value, a list of values, or a text with commas between them.

    Raises:
        OptionError: A value that cannot be used, or none.
    """
    kind = _KINDS[name]
    items = value if isinstance(value, list | tuple) else [value]
    if kind in ("spec", "model"):
        items = [spec for item in items for spec in ([None] if item is None else specs(name, item, kind == "model"))]
    elif kind != "text":
        items = [part for item in items for part in (item.split(",") if isinstance(item, str) else [item])]
    values = tuple(dict.fromkeys(_value(name, item) for item in items))
    if not values:
        raise OptionError(f"{name} has no value; leave it out or give one")
    return values


def specs(name: str, item: Any, models: bool = False) -> list[str]:
    """The option strings of one entry: a text, or a mapping with `name` and lists of option values.

    Raises:
        OptionError: Neither of both.
    """
    if isinstance(item, str):
        return registry.split_specs(item, models=models)
    if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
        raise OptionError(f"{name} must be a name, name:option=value, or a mapping with a name, got {clip(item)}")
    options = {str(key): value if isinstance(value, list) else [value] for key, value in item.items() if key != "name"}
    return [
        registry.format_spec(item["name"], dict(zip(options, chosen)), models=models)
        for chosen in product(*options.values())
    ]


def _value(name: str, item: Any) -> Any:
    text, kind = str(item).strip(), _KINDS[name]
    if name in _MAY_BE_NONE and (item is None or text.lower() == "none"):
        return None
    try:
        if kind == "count" and not isinstance(item, bool):
            return int(text)
        if kind == "share":
            return float(text)
        if kind == "positions":
            positions = item if isinstance(item, list) else text.split("+")
            return tuple(int(str(position)) for position in positions)
    except ValueError:
        pass
    else:
        if kind == "switch" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if kind not in _WANTED and isinstance(item, str) and text:
            return text
    raise OptionError(f"{name} cannot be {clip(item)}; give {_WANTED.get(kind, 'a text')}")
