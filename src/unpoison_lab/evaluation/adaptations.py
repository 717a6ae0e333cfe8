"""Methods over time: a defense and the state it keeps between times.

The paper adapts defenses without a memory to dated questions in two ways (RADAR, Section 5.3): with all passages seen
so far, or with the previous answer alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from unpoison.beliefs import MemoryBeliefs
from unpoison.beliefs.store import belief_key
from unpoison.core import registry
from unpoison.core.answers import Answer, Reply
from unpoison.core.passages import MAX_PASSAGES, Passage, Query, as_passages, as_query
from unpoison.defenses import make_defense
from unpoison.defenses.base import Defense
from unpoison.defenses.radar import Radar
from unpoison.errors import OptionError, clip
from unpoison.models.prompts import Prompt
from unpoison.models.protocols import Generator
from unpoison.runtime.driver import Limits
from unpoison.text.replies import informative
from unpoison_lab.evaluation.scenarios import check_spec, takes

__all__ = ["Answerer", "Method", "answerer_of", "methods_of"]

Carried = Literal["nothing", "passages", "answer", "beliefs"]

CARRIED: Mapping[Carried, str] = {
    "nothing": "static",
    "passages": "cumulative",
    "answer": "history",
    "beliefs": "dynamic",
}
"""The kinds of state that a method can keep, with their display names."""


@dataclass(frozen=True, slots=True)
class Method:
    """One way to answer a question repeatedly over time.

    Attributes:
        defense: Its option string.
        carries: The state it keeps between times.
    """

    defense: str
    carries: Carried


def methods_of(defenses: Iterable[str]) -> dict[str, Method]:
    """Every combination of a defense and a kind of state it can keep, by name.

    Args:
        defenses: Option strings, such as `radar:mode=reference`.

    Raises:
        UnknownNameError: No such defense or option.
        OptionError: A belief store: every run creates its own.
    """
    methods = {}
    for spec in defenses:
        check_spec("defenses", spec)
        if "beliefs" in registry.parse(spec)[1]:
            raise OptionError(f"{clip(spec)}: every method starts with an empty memory of its own; leave beliefs out")
        for carries, called in CARRIED.items():
            if carries != "beliefs" or takes("defenses", spec, "beliefs"):
                methods[f"{spec}, {called}"] = Method(spec, carries)
    return methods


def answerer_of(method: Method, models: Mapping[str, Any], limits: Limits | None) -> Answerer:
    """The method with an empty memory.

    Raises:
        UnknownNameError, OptionError: The defense cannot be created, or cannot keep this kind of state.
    """
    beliefs = MemoryBeliefs() if method.carries == "beliefs" else None
    return Answerer(make_defense(method.defense, **models, beliefs=beliefs, limits=limits), method.carries)


class Answerer:
    """Answers one question at several times, in order.

    Args:
        defense: Answers each time.
        carries: `nothing`; `passages`, new ones before all that were seen, at most as many as a defense takes;
            `answer`, the previous one added to the prompts of the final answer; `beliefs`, RADAR's own.

    Raises:
        OptionError: Beliefs of a defense that has none, or something else for one that has.
    """

    def __init__(self, defense: Defense, carries: Carried = "nothing") -> None:
        if (isinstance(defense, Radar) and defense.beliefs is not None) != (carries == "beliefs"):
            raise OptionError(
                f"radar with a belief store remembers by itself, and nothing else does; it cannot carry {carries}"
            )
        self.defense = defense
        self.carries = carries
        self._passages: dict[str, tuple[Passage, ...]] = {}
        self._answers: dict[str, str] = {}

    def answer(self, query: str | Query, passages: Iterable[Any], *, key: str | None = None) -> Answer:
        """Answer from the passages of one time; `key` names the question, by default by its words."""
        question, defense = as_query(query), self.defense
        key = key or belief_key(question.text)
        if self.carries == "beliefs" and isinstance(defense, Radar):
            return defense.answer(question, passages, key=key)
        if self.carries == "passages":
            passages = self._passages[key] = (*as_passages(passages), *self._passages.get(key, ()))[:MAX_PASSAGES]
        previous, generator = self._answers.get(key), defense.models.generator
        if self.carries == "answer" and previous is not None and generator is not None:
            defense = defense.with_models(generator=_Reminded(generator, previous))
        answer = defense.answer(question, passages)
        if informative(answer.text) and not answer.abstained:
            self._answers[key] = answer.text
        return answer


class _Reminded:
    """A generator whose final-answer prompts include the previous answer; it delegates everything else."""

    def __init__(self, generator: Generator, previous: str) -> None:
        self.name = generator.name
        self._generator = generator
        self._previous = f"The answer at an earlier time was: {previous}"

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        return self._generator.generate(self._add_previous(prompt), timeout=timeout)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a copy that is being made has no generator yet
            raise AttributeError(name)
        attribute = getattr(self._generator, name)
        if name == "agenerate":
            return lambda prompt, /, **given: attribute(self._add_previous(prompt), **given)
        if name in ("generate_batch", "next_token"):
            return lambda prompts, /, *rest, **given: attribute(tuple(map(self._add_previous, prompts)), *rest, **given)
        return attribute

    def _add_previous(self, prompt: Prompt) -> Prompt:
        if prompt.task in ("answer", "synthesize"):
            return replace(prompt, passages=(*prompt.passages, self._previous))
        if prompt.task == "decide":
            return replace(prompt, notes={**prompt.notes, "Earlier answer": self._previous})
        return prompt
