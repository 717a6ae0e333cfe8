"""Checks option strings such as `grada:alpha=0.3`, and describes attacks: input, wording and stand-ins."""

from __future__ import annotations

from typing import Any

from unpoison.bench.attacks.base import Attack
from unpoison.bench.evaluation.scenarios import NO_ATTACK, Scenario
from unpoison.core import registry
from unpoison.errors import OptionError, UnknownNameError
from unpoison.models.loading import can_write

__all__ = [
    "check_spec",
    "make_attack",
    "sees_context",
    "short_of",
    "stand_in",
    "takes",
    "wording",
]


def check_spec(kind: str, spec: str) -> None:
    """Refuse a wrong name or option before anything runs.

    Raises:
        UnknownNameError: No such name or option; the message names the nearest.
    """
    if kind == "attacks" and registry.parse(spec) == (NO_ATTACK, {}):
        return
    name, given = registry.parse(spec)
    existing = [option.name for option in registry.options(registry.find(kind, name))]
    for option in given:
        if option not in existing:
            raise UnknownNameError(f"option of {name}", option, existing)


def takes(kind: str, spec: str, option: str) -> bool:
    """Whether the class behind an option string has this argument.

    Raises:
        UnknownNameError: No such name.
    """
    return option in registry.parameters(_class(kind, spec))


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
    """The substitute for the language model that wrote the texts in the attack's paper; "" without a substitute."""
    if not scenario.attacked:
        return ""
    attack, options = _crafting(scenario.attack)
    given = {"generator": scenario.generator, **options}.get(attack.model_option)
    return attack.offline if given is None or not can_write(given) else ""


def short_of(scenario: Scenario) -> str:
    """How an attack's search falls short of the published one; "" if it does not, or if it does not search."""
    if not scenario.attacked:
        return ""
    attack, options = _crafting(scenario.attack)
    return attack.short_of(options, scenario.generator)


WORDINGS = {"ours": "our wording", "published": "", "data": "the data's texts, our wording where it has none"}
"""Table labels for the origin of an attack's wording; empty for its authors' own wording."""


def wording(spec: str) -> str:
    """The table label for the origin of an attack's wording.

    A zero against our own template says nothing about the texts of the attack's authors.

    Raises:
        UnknownNameError: No such attack.
    """
    attack, options = _crafting(spec)
    return f"the words of {options['replay']}'s code" if options.get("replay") else WORDINGS[attack.wording]


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
