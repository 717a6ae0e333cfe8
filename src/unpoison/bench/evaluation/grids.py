"""Scenarios as the cross product of axes, from option strings or from one YAML file.

Every field of a `Scenario` is an axis, and so is every option of a defense or attack::

    data: [nq_poisoned.jsonl]
    attack: [poisonedrag, {name: published, attack: [tan, garag]}]
    poisons: [1, 3, 5]
    defense: [ragdefender, {name: grada, alpha: [0.2, 0.4], keep: 5}]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Self

from unpoison.bench.evaluation.scenarios import PLACED, SINCE_SOURCES, Scenario
from unpoison.bench.evaluation.specs import check_spec, expand_variations, specs, split_specs
from unpoison.bench.evaluation.workbench import sibling_corpus
from unpoison.core import registry
from unpoison.errors import InputError, OptionError, UnknownNameError, clip
from unpoison.io.settings import load_yaml
from unpoison.utils.checks import at_least, within

__all__ = ["MAX_SCENARIOS", "Grid", "axis", "poison_rate"]

MAX_SCENARIOS = 10_000
"""Larger grids are refused: nobody reads such a table, and one wrong number makes one."""

# From the slowest to the fastest: scenarios with the same passages follow one another.
AXES = (
    "data",
    "corpus",
    "limit",
    "seed",
    "k",
    "retriever",
    "policy",
    "prefix",
    "triggered",
    "attack",
    "poisons",
    "positions",
    "rate",
    "owned",
    "encoder",
    "generator",
    "architecture",
    "style",
    "nli",
    "nli_noise",
    "sources",
    "history",
    "defense",
)
_WHOLE = ("limit", "seed", "k", "poisons")
_ABSENT = ("limit", "prefix", "generator", "nli")
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
        """Read axes: a value, a list of values, or a string with commas between them.

        Besides the fields of a scenario: `rate` (see `poison_rate`) in place of poisons, policy, positions and k;
        `vary`, options with their values for every defense that has them; `baseline` and `clean`.

        Raises:
            UnknownNameError: No such axis, attack or defense; the message names the nearest.
            OptionError: A value that cannot be used, or axes that exclude each other.
            InputError: No data.
        """
        settings = (*AXES, "vary", "baseline", "clean")
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
            raise OptionError("a grid needs a defense, such as guard")
        axes["defense"] = expand_variations(axes["defense"], values.get("vary") or {})
        _check_exclusive(axes)
        for kind, name in (("defenses", "defense"), ("attacks", "attack")):
            for spec in axes.get(name, ()):
                check_spec(kind, spec)
        return cls(axes, **switches)

    @classmethod
    def load(cls, path: str | Path, **instead: Any) -> Self:
        """Read a YAML file; `of` says what may stand in it.

        Args:
            path: The file.
            instead: Axes that take the place of the file's.

        Raises:
            InputError: It cannot be read, or is no YAML mapping.
            UnknownNameError, OptionError: As for `of`.
        """
        values = load_yaml(path)
        if not isinstance(values, dict):
            raise InputError(f"{path} must hold a mapping such as 'defense: [grada]', got {clip(values)}")
        try:
            return cls.of({**values, **instead})
        except UnknownNameError:
            raise
        except (InputError, OptionError) as error:
            raise type(error)(f"{path}: {error}") from None

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
        return tuple(each for group in by_context.values() for each in sorted(group, key=_is_defended))

    def _product(self) -> Iterator[Scenario]:
        names = [name for name in AXES if name in self.axes or name in _DEFAULTS]
        if "positions" in self.axes or "rate" in self.axes:
            names.remove("poisons")  # they say how many
        for values in product(*(self.axes.get(name, _DEFAULTS.get(name)) or () for name in names)):
            chosen = dict(zip(names, values))
            yield _scenario(chosen)


def _scenario(chosen: dict[str, Any]) -> Scenario:
    rate: str | None = chosen.pop("rate", None)
    if rate is not None:
        chosen |= poison_rate(rate)
    elif "positions" in chosen:
        chosen |= {"policy": chosen.get("policy", "replace-at"), "poisons": len(chosen["positions"])}
    corpus = chosen.get("corpus")
    chosen["corpus"] = sibling_corpus(chosen["data"]) if corpus is None else "" if corpus == "none" else corpus
    return Scenario(**chosen)


def _is_defended(scenario: Scenario) -> bool:
    return not scenario.defense.startswith("vanilla")


def _baselines(scenario: Scenario) -> Iterator[Scenario]:
    """No defense: everything, and as many passages as the defense keeps."""
    yield replace(scenario, defense="vanilla")
    name, given = registry.parse(scenario.defense)
    defaults = {option.name: option.default for option in registry.options(registry.find("defenses", name))}
    keep = given.get("keep", defaults.get("keep"))
    if str(keep).isdigit() and int(str(keep)) < scenario.k:
        yield replace(scenario, defense=f"vanilla:keep={keep}")


def axis(name: str, value: Any) -> tuple[Any, ...]:
    """The values of one axis, each once: a value, a list of values, or a string with commas between them.

    Raises:
        OptionError: A value that cannot be used, or none.
    """
    items = value if isinstance(value, list | tuple) else [value]
    if name in ("attack", "defense"):
        return tuple(dict.fromkeys(spec for item in items for spec in specs(name, item)))
    if name == "style":
        items = [spec for item in items for spec in split_specs(str(item))]
    elif name != "data":
        items = [part for item in items for part in (item.split(",") if isinstance(item, str) else [item])]
    values = tuple(dict.fromkeys(_value(name, item) for item in items))
    if not values:
        raise OptionError(f"{name} has no value; leave it out or give one")
    return values


def _value(name: str, item: Any) -> Any:
    text = str(item).strip()
    if name in _ABSENT and (item is None or text.lower() == "none"):
        return None
    try:
        if name in _WHOLE and not isinstance(item, bool):
            return int(text)
        if name == "nli_noise":
            return float(text)
        if name == "positions":
            positions = item if isinstance(item, list) else text.split("+")
            return tuple(int(str(position)) for position in positions)
    except ValueError:
        pass
    else:
        if name == "rate":
            poison_rate(text)  # a typing error is reported before anything is measured
            return text
        if name in ("prefix", "triggered") and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if name in _TEXTS and isinstance(item, str) and text:
            return text
    raise OptionError(f"{name} cannot be {clip(item)}; give {_WANTED.get(name, 'a text')}")


_TEXTS = (
    "data",
    "corpus",
    "retriever",
    "policy",
    "encoder",
    "generator",
    "architecture",
    "style",
    "nli",
    *SINCE_SOURCES,
)
_WANTED = {
    **dict.fromkeys(_WHOLE, "whole numbers"),
    "nli_noise": "numbers from 0 to 1",
    "positions": "places from 1, several for one question joined by +",
    **dict.fromkeys(("prefix", "triggered"), "true or false"),
}


def _check_exclusive(axes: Mapping[str, Any]) -> None:
    clashes = {"rate": ("poisons", "policy", "positions", "k"), "positions": ("poisons",)}
    for name, others in clashes.items():
        for excluded in others:
            if name in axes and excluded in axes:
                raise OptionError(f"{name} says already what {excluded} says; give one of them")
    if "positions" in axes and not set(axes.get("policy", ("replace-at",))) <= set(PLACED):
        raise OptionError("positions go with the policy replace-at; leave the policy out")


PASSAGES = 5
"""k of PoisonedRAG and TrustRAG, and RAGDefender's clean passages on Natural Questions."""

CANDIDATES = 10
"""GRADA retrieves so many."""

RADAR_PASSAGES = 50
"""Passages of a question in RADAR's tables, where the amount names no other number."""


def poison_rate(text: str) -> dict[str, Any]:
    """A paper's own measure of poison as the fields poisons, k, policy and positions of a scenario.

    Each paper means something else by its amount of poison:

    ==================  ==============================================================================================
    `poisonedrag:5`     texts per question, retrieved into the top 5
    `grada:1`           texts per question among 10 candidates, at most half of them
    `trustrag:0.4`      share of k = 5, planted before retrieval
    `ragdefender:2x5`   poison by gold and benign passages, x these per question: 5 for NQ, 2 for HotpotQA and MS MARCO
    `radar:1+3/10`      places from 1 that poison takes, by k (50 unless said)
    ==================  ==============================================================================================

    Raises:
        OptionError: Another form, or a number out of its range.
    """
    paper, _, amount = text.partition(":")
    try:
        match paper:
            case "poisonedrag":
                return _poison_settings(int(amount), PASSAGES, "retrieve")
            case "grada":
                within("texts of GRADA", int(amount), 0, CANDIDATES / 2)
                return _poison_settings(int(amount), CANDIDATES, "retrieve")
            case "trustrag":
                return _poison_settings(_whole(within("share", float(amount), 0, 1), PASSAGES), PASSAGES, "retrieve")
            case "ragdefender":
                ratio, _, clean = amount.partition("x")
                k = int(clean or PASSAGES)
                return _poison_settings(_whole(float(ratio), k), k, "pool")
            case "radar":
                numbers, _, passages = amount.partition("/")
                k, positions = int(passages or RADAR_PASSAGES), tuple(map(int, numbers.split("+")))
                for position in positions:
                    within("position", position, 1, k)
                return {**_poison_settings(len(positions), k, "replace-at"), "positions": positions}
    except OptionError:
        raise
    except (ValueError, OverflowError):
        pass
    raise OptionError(
        f"no poison rate {clip(text)}; write poisonedrag:5, grada:1, trustrag:0.4, ragdefender:2x5 or radar:1+3/10"
    )


def _poison_settings(poisons: int, k: int, policy: str) -> dict[str, Any]:
    return {"poisons": at_least("poisons", poisons, 0), "k": at_least("k", k, 1), "policy": policy}


def _whole(ratio: float, passages: int) -> int:
    """The poisons that a ratio of so many passages comes to.

    Raises:
        OptionError: No whole number.
    """
    poisons = round(ratio * passages, 9)
    if poisons != int(poisons):
        raise OptionError(
            f"{ratio:g} of {passages} passages is {poisons:g} poisons; choose a number that gives whole poisons, such "
            f"as {1 / passages:g}"
        )
    return int(poisons)
