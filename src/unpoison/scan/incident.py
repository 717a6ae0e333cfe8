"""Finds the passages behind a wrong answer: ranks them by what they state, and proves it by asking again without them.

The most suspicious passages are withheld, twice as many each time until the wrong answer disappears. Then they are put
back, the least suspicious first, if the wrong answer does not return: those that cannot be put back are responsible.

An injection can make the answer depend on any passage. So a passage that states a right answer is never withheld, and
one that neither states the wrong answer nor contains an injection is never guilty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from unpoison import __version__
from unpoison.core.codec import to_row
from unpoison.core.passages import Passage
from unpoison.errors import UnpoisonError
from unpoison.models.loading import GeneratorFunction, as_generator
from unpoison.models.prompts import answer_prompt
from unpoison.models.protocols import Generator, Models
from unpoison.models.requests import generate
from unpoison.runtime.driver import run
from unpoison.scan.statements import STATED, Stance, Suspect, says, suspects_among
from unpoison.text.replies import informative

__all__ = ["DocumentVerdict", "Incident", "trace"]

BESIDE = 0.75
"""Without a model, documents with at least this share of the highest strength are reported too."""

MAX_SUSPECTS = 12
"""Maximum number of suspects per round; documents that replace withheld ones follow in later rounds."""

ROUNDS = 3
"""Maximum number of rounds in which replacements of withheld documents become suspects."""

MAX_ANSWERS = 5
"""Maximum number of wrong answers to investigate; if a right one is known, new wrong answers are included."""


class BudgetError(UnpoisonError):
    """The budget of questions is used up."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A passage that the wrong answer depends on, possibly with others.

    Attributes:
        document: The passage.
        alone: Whether the answer is wrong with it alone, the other responsible ones withheld.
    """

    document: Suspect
    alone: bool

    def to_dict(self) -> dict[str, Any]:
        return {**self.document.to_dict(), "alone": self.alone}


class Trials:
    """Asks with some passages withheld; replies are cached by the withheld passages.

    Args:
        ask: Returns the reply while these passages are withheld.
        question: The question.
        answer: The wrong answer.
        budget: Maximum number of questions.

    Attributes:
        answers: The wrong answer, and others that were found.
        asked: Number of questions so far.
    """

    def __init__(self, ask: Callable[[frozenset[str]], str], question: str, answer: str, budget: int) -> None:
        self._ask, self.question, self.answers = ask, question, [answer]
        self._budget, self.asked = budget, 0
        self._replies = dict[frozenset[str], str]()

    def reply(self, withheld: Collection[str]) -> str:
        """The reply without these passages, cached.

        Raises:
            BudgetError: The budget is exhausted.
        """
        key = frozenset(withheld)
        if key not in self._replies:
            if self.asked >= self._budget:
                raise BudgetError(f"the budget of {self._budget:,} questions is exhausted; raise --budget")
            self.asked += 1
            self._replies[key] = self._ask(key)
        return self._replies[key]

    def is_wrong(self, withheld: Collection[str]) -> bool:
        """Whether the reply without these passages gives a wrong answer; raises as `reply`."""
        return any(says(self.question, self.reply(withheld), answer) for answer in self.answers)


def find_culprits(trials: Trials, more: Callable[[], Sequence[Suspect]], right: Sequence[str] = ()) -> list[Proof]:
    """The passages behind the wrong answer; none if it remains without all suspects.

    Args:
        trials: The trials; with nothing withheld the answer is wrong.
        more: Returns the suspects, the most suspicious first; called again, because replies bring up new ones.
        right: Right answers: any other reply without the culprits is a wrong answer too.

    Raises:
        BudgetError: The budget is exhausted.
    """
    needed = list[str]()
    for _ in range(MAX_ANSWERS):
        known, withheld = _withhold_until_gone(trials, more)
        if not withheld:
            break
        needed = _find_fewest(lambda names: not trials.is_wrong(names), withheld)
        reply = trials.reply(needed)
        if not right or not informative(reply) or any(says(trials.question, reply, one) for one in right):
            break
        trials.answers.append(reply)
    return [Proof(known[name], trials.is_wrong([one for one in needed if one != name])) for name in needed]


def _withhold_until_gone(trials: Trials, more: Callable[[], Sequence[Suspect]]) -> tuple[dict[str, Suspect], list[str]]:
    """All suspects by name, and a prefix of them without which the wrong answer disappears; empty if none does."""
    known = dict[str, Suspect]()
    for _ in range(ROUNDS):
        usable = [one for one in more() if one.id not in known and one.standing is not Stance.RIGHT]
        size = max(1, len(known))
        known |= {one.id: one for one in usable[:MAX_SUSPECTS]}
        names = sorted(known, key=lambda name: known[name].standing is Stance.SILENT)
        if len(known) < size or not usable:
            break
        while trials.is_wrong(names[:size]):
            if size >= len(names):
                break
            size = min(2 * size, len(names))
        else:
            return known, names[:size]
    return known, []


def _find_fewest(holds: Callable[[list[str]], bool], names: Sequence[str]) -> list[str]:
    """A minimal subset of names for which a condition holds: none of them can be left out.

    Names at the end are left out first, half of them at once: about log2(n) calls, and one per remaining name.
    """
    needed, left = list[str](), list(names)
    step = max(1, len(left) // 2)
    while left:
        rest = left[:-step]
        if (rest or needed) and holds([*rest, *needed]):
            left = rest
        elif step == 1:
            needed.insert(0, left.pop())
        else:
            step //= 2
    return needed


class DocumentVerdict(StrEnum):
    """The outcome of an incident, and what it means."""

    sentence: str

    PROVEN = "proven", "Without these documents the wrong answer disappears."
    NAMED = "named", "These documents state the answer. No model was asked without them, so the cause is not proven."
    NOT_STATING = "do not state it", "The answer depends on documents that do not state it: read them."
    NO_DOCUMENT = (
        "no document",
        "The answer depends on no document that was given: it may come from the model, or from other documents.",
    )
    NOT_STATED = "not stated", "No document that was given states this answer, and no model was asked."
    NOT_REPRODUCED = "not reproduced", "The model does not give this answer, so nothing was proven."
    UNFINISHED = "unfinished", "The budget was exhausted before anything was proven."

    def __new__(cls, value: str, sentence: str) -> DocumentVerdict:
        verdict = str.__new__(cls, value)
        verdict._value_, verdict.sentence = value, sentence
        return verdict


@dataclass(frozen=True, slots=True)
class Incident:
    """The result of investigating one wrong answer.

    Attributes:
        question, answer: The question, and the wrong answer.
        verdict: The outcome.
        suspects: All examined documents, the most suspicious first.
        proofs: The documents that the answer depends on; guilty are those that state it or contain an injection.
        after: The answer without the guilty documents, or the model's answer if that is not wrong; None if nothing was
            asked.
        asked: Number of questions.
        notes: Warnings.
    """

    question: str
    answer: str
    verdict: DocumentVerdict
    suspects: tuple[Suspect, ...] = ()
    proofs: tuple[Proof, ...] = ()
    after: str | None = None
    asked: int = 0
    notes: tuple[str, ...] = field(default=())

    @property
    def guilty(self) -> tuple[str, ...]:
        """Ids of the documents behind the answer; without a model, of those that state it explicitly."""
        if self.verdict is DocumentVerdict.NAMED:
            plainest = max((one.stated for one in self.suspects), default=0.0)
            return tuple(one.id for one in self.suspects if one.stated >= max(STATED, BESIDE * plainest))
        return tuple(p.document.id for p in self.proofs if p.document.standing is Stance.STATES)

    def to_dict(self) -> dict[str, Any]:
        more = {"unpoison": __version__, "summary": self.verdict.sentence, "guilty": list(self.guilty)}
        return {**to_row(self), **more}


def _conclude(trials: Trials, suspects: Callable[[], Sequence[Suspect]], right: Sequence[str]) -> Incident:
    """Prove which passages are behind the wrong answer."""
    found = Incident(trials.question, trials.answers[0], DocumentVerdict.UNFINISHED)
    try:
        if not trials.is_wrong(()):
            return replace(found, verdict=DocumentVerdict.NOT_REPRODUCED, after=trials.reply(()))
        proofs = find_culprits(trials, suspects, right)
        found = replace(found, verdict=DocumentVerdict.NO_DOCUMENT, proofs=tuple(proofs))
        if not found.guilty:
            return replace(found, verdict=DocumentVerdict.NOT_STATING) if proofs else found
        return replace(found, verdict=DocumentVerdict.PROVEN, after=trials.reply(found.guilty))
    except BudgetError as error:
        return replace(found, notes=(str(error),))


def trace(
    question: str,
    answer: str,
    passages: Sequence[Passage],
    generator: Generator | GeneratorFunction | str | None = None,
    *,
    right: Sequence[str] = (),
    k: int | None = None,
    budget: int = 100,
) -> Incident:
    """Find the passages behind a model's answer.

    Args:
        question: The question.
        answer: The answer of the model, or the wrong part of it, such as "Sydney".
        passages: The passages that it read, in retrieval order, then those that would replace them.
        generator: The model that gave the answer, or another, or its name; None ranks passages by what they state.
        right: Known right answers.
        k: Number of passages in a prompt; None for all.
        budget: Maximum number of prompts.

    Raises:
        ModelError: The generator failed.
    """
    named = {str(p.id) if p.id is not None else f"passage {i}": p.reading for i, p in enumerate(passages)}
    writer = as_generator(generator)

    def ask(withheld: frozenset[str]) -> str:
        texts = [text for name, text in named.items() if name not in withheld][:k]
        (reply,), _ = run(generate([answer_prompt(question, texts)], "incident"), Models(generator=writer))
        return reply.text

    trials = Trials(ask, question, answer, budget)
    suspects = partial(suspects_among, question, trials.answers, named, right)
    if writer is None:
        found = Incident(question, answer, DocumentVerdict.NAMED, tuple(suspects()))
        return found if found.guilty else Incident(question, answer, DocumentVerdict.NOT_STATED, found.suspects)
    return replace(_conclude(trials, suspects, right), suspects=tuple(suspects()), asked=trials.asked)
