"""Crafting for a whole data set: an attack by its option string, one journal line per target, failures as data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from unpoison.bench.attacks.base import Attack, PoisonText, Target
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.core import registry
from unpoison.errors import InputError, OptionError, UnpoisonError
from unpoison.io.journal import Journal, read_rows
from unpoison.models.loading import can_write
from unpoison.utils.threads import parallel_map

__all__ = [
    "Crafted",
    "attack_name",
    "craft_all",
    "craft_one",
    "make_attack",
    "sees_context",
    "short_of",
    "stand_in",
    "takes",
    "wording",
]


@dataclass(frozen=True, slots=True)
class Crafted:
    """What an attack made for one target.

    Attributes:
        example: The target's id.
        texts: The poison; empty after a failure.
        error: What went wrong, None otherwise.
    """

    example: str
    texts: tuple[PoisonText, ...] = ()
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; `from_dict` reads them back."""
        return {"example": self.example, "texts": [text.to_dict() for text in self.texts], "error": self.error}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            InputError: A field is missing or malformed.
        """
        try:
            return cls(values["example"], tuple(map(PoisonText.from_dict, values["texts"])), values["error"])
        except (KeyError, TypeError) as error:
            raise InputError(f"not saved poison: {error}; pass what Crafted.to_dict() wrote") from None


def takes(kind: str, spec: str, option: str) -> bool:
    """Whether the class behind an option string has this argument; of a composed attack, whether any part has.

    Raises:
        UnknownNameError: No such name.
    """
    return any(option in inspect.signature(part).parameters for part in _classes(kind, spec))


def sees_context(spec: str) -> bool:
    """Whether an attack is shown the clean passages that it competes with: it has an encoder, or builds on them.

    Raises:
        UnknownNameError: No such attack.
    """
    return takes("attacks", spec, "encoder") or any(part.uses_context for part in _classes("attacks", spec))


def _classes(kind: str, spec: str) -> list[Any]:
    return [registry.find(of, registry.parse(part)[0]) for of, part in registry.parts(kind, spec)]


def stand_in(scenario: Scenario) -> str:
    """What writes an attack's texts in place of the language model that its paper used; "" where nothing does."""
    if not scenario.attacked:
        return ""
    (_, crafting), *_ = registry.parts("attacks", scenario.attack)
    name, options = registry.parse(crafting)
    attack = registry.find("attacks", name)
    if not getattr(attack, "offline", ""):
        return ""
    given = {"generator": scenario.generator, **options}.get(attack.model_option)
    return attack.offline if given is None or not can_write(given) else ""


def short_of(scenario: Scenario) -> str:
    """In what an attack's search falls short of the published one; "" where it does not, or does not search."""
    if not scenario.attacked:
        return ""
    (_, crafting), *_ = registry.parts("attacks", scenario.attack)
    name, options = registry.parse(crafting)
    return str(getattr(registry.find("attacks", name), "short_of", lambda *_: "")(options, scenario.generator))


WORDINGS = {"ours": "our wording", "published": "", "data": "the data's texts, our wording where it has none"}
"""How tables call whose words an attack plants; nothing where they are its authors'."""


def wording(spec: str) -> str:
    """Whose words an attack plants, as tables say it: of the attack in front, where others are wrapped around it.

    A zero against a template of our own says nothing of what the attack's authors wrote.

    Raises:
        UnknownNameError: No such attack.
    """
    crafting = registry.parts("attacks", spec)[0][1]
    return WORDINGS[getattr(registry.find("attacks", registry.parse(crafting)[0]), "wording", "ours")]


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


def craft_all(
    attack: Attack,
    targets: Mapping[str, Callable[[], Target]],
    count: int,
    path: Path,
    *,
    jobs: int = 1,
    retry_failed: bool = False,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Crafted]:
    """Craft for every target that the journal does not hold yet.

    Args:
        attack: Crafts.
        targets: How to make the target of each example, by its id; making it may raise `InputError`.
        count: Texts per target.
        path: The journal; one line per target, written when it is done.
        jobs: Targets at the same time.
        retry_failed: Try failed targets again.
        step: Called after each target.

    Returns:
        By the example's id.
    """
    earlier = {crafted.example: crafted for crafted in map(Crafted.from_dict, read_rows(path))}
    crafted = {
        name: new for name, new in earlier.items() if name in targets and not (retry_failed and new.error is not None)
    }
    missing = [name for name in targets if name not in crafted]
    if not missing:
        return crafted
    with Journal(path) as journal:
        for new in parallel_map(lambda name: craft_one(attack, name, targets[name], count), missing, jobs):
            journal.append(new.to_dict())
            crafted[new.example] = new
            step()
    return crafted


def craft_one(attack: Attack, name: str, target: Callable[[], Target], count: int) -> Crafted:
    """Craft for one target; what goes wrong with it is in the result.

    Raises:
        OptionError: Something that is the same for every target.
    """
    try:
        texts = tuple(attack.craft(target(), count))
    except OptionError:
        raise
    except UnpoisonError as error:
        return Crafted(name, error=str(error))
    if len(texts) < count:
        return Crafted(name, error=f"the attack {attack.name} made {len(texts)} of {count} texts")
    return Crafted(name, texts)
