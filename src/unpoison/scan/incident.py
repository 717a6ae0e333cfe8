"""Finds the documents behind a wrong answer: ranked by what they state, proven by withholding them and asking again.

The most suspicious documents are withheld first, and twice as many as long as the wrong answer remains. Then they are
put back, the least suspicious first, as long as it does not return: those that cannot be put back are responsible. The
search is the same for a model with some of its passages and for a system with some of its store.

A manipulated system can make the answer depend on any document. So a document that states a right answer is never
withheld, and one that neither states the wrong answer nor contains an injection is never guilty.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from math import ceil, log
from typing import Any

from unpoison import __version__
from unpoison.algorithms.intervals import wilson
from unpoison.core.passages import Passage
from unpoison.errors import UnpoisonError
from unpoison.models.loading import GeneratorFunction, as_generator
from unpoison.models.prompts import answer_prompt, informative
from unpoison.models.protocols import Generator, Models
from unpoison.models.requests import generate
from unpoison.runtime.driver import run
from unpoison.scan.statements import STATED, Stance, Suspect, says, suspects_among

__all__ = ["DocumentVerdict", "Incident", "Trials", "conclude", "trace"]

BESIDE = 0.75
"""Without a model, documents with this share of the highest strength are named too."""

MAX_SUSPECTS = 12
"""Maximum number of suspects per round; documents that replace withheld ones follow in later rounds."""

ROUNDS = 3
"""Maximum number of rounds in which replacements of withheld documents become suspects."""

MAX_ANSWERS = 5
"""Maximum number of wrong answers to investigate; if a right one is known, new wrong answers are included."""

DOUBT, MAX_LOOKS = 0.05, 8
"""Probability that a guilty document seems innocent by chance, and maximum number of questions per decision."""


class BudgetError(UnpoisonError):
    """The budget of questions is exhausted."""


@dataclass(frozen=True, slots=True)
class WrongCount:
    """Number of wrong answers, and of questions."""

    wrong: int
    asked: int

    @property
    def words(self) -> str:
        """Such as "4 of 4 times (likely 51 to 100 %)", by Wilson's interval."""
        share = wilson(self.wrong, self.asked)
        return f"{self.wrong} of {self.asked} times (likely {100 * share.low:.0f} to {100 * share.high:.0f} %)"


@dataclass(frozen=True, slots=True)
class Proof:
    """A document that the wrong answer depends on, possibly with others.

    Attributes:
        document: The document.
        with_it: Wrong answers with this document, and the other responsible ones withheld.
        without: Wrong answers without any of them.
    """

    document: Suspect
    with_it: WrongCount
    without: WrongCount

    def to_dict(self) -> dict[str, Any]:
        counts = {"with": asdict(self.with_it), "without": asdict(self.without)}
        return {**self.document.to_dict(), **counts, "alone": self.with_it.wrong > 0}


class Trials:
    """Asks with some documents withheld, and counts wrong answers; replies are cached by the withheld documents.

    Args:
        ask: Returns the reply while these documents are withheld.
        question: The question.
        answer: The wrong answer.
        budget: Maximum number of questions.
        repeats: Questions per count in the report; 1 for a deterministic system.

    Attributes:
        answers: The wrong answer, and others that were found.
        asked: Number of questions so far.
    """

    def __init__(
        self, ask: Callable[[frozenset[str]], str], question: str, answer: str, *, budget: int, repeats: int
    ) -> None:
        self._ask, self.question, self.answers, self.repeats = ask, question, [answer], repeats
        self._budget, self.asked = budget, 0
        self._replies = defaultdict[frozenset[str], list[str]](list)

    def reply(self, withheld: Collection[str]) -> str:
        """The last reply; asks if there is none.

        Raises:
            BudgetError: The budget is exhausted.
        """
        replies = self._replies[frozenset(withheld)]
        return replies[-1] if replies else self._one_more(frozenset(withheld))

    def count(self, withheld: Collection[str]) -> WrongCount:
        """Wrong answers among `repeats` questions; raises as `reply`."""
        key = frozenset(withheld)
        while len(self._replies[key]) < self.repeats:
            self._one_more(key)
        return WrongCount(sum(map(self.is_wrong, self._replies[key])), len(self._replies[key]))

    def is_gone(self, withheld: Collection[str], looks: int) -> bool:
        """Whether none of `looks` replies is a wrong answer; stops at the first that is. Raises as `reply`."""
        key = frozenset(withheld)
        while not any(map(self.is_wrong, self._replies[key])):
            if len(self._replies[key]) >= min(looks, MAX_LOOKS if self.repeats > 1 else 1):
                return True
            self._one_more(key)
        return False

    def is_wrong(self, reply: str) -> bool:
        """Whether a reply gives a wrong answer."""
        return any(says(self.question, reply, answer) for answer in self.answers)

    def _one_more(self, withheld: frozenset[str]) -> str:
        if self.asked >= self._budget:
            raise BudgetError(f"the budget of {self._budget:,} questions is exhausted; raise --budget")
        self.asked += 1
        self._replies[withheld].append(self._ask(withheld))
        return self._replies[withheld][-1]


def find_culprits(trials: Trials, more: Callable[[], Sequence[Suspect]], right: Sequence[str] = ()) -> list[Proof]:
    """The documents behind the wrong answer; none if it remains whatever is withheld.

    Args:
        trials: The trials; with nothing withheld the answer is wrong.
        more: Returns the suspects, the most suspicious first; called again, because replies bring up new ones.
        right: Right answers: any other reply without the culprits is a wrong answer too.

    Raises:
        BudgetError: The budget is exhausted.
    """
    usual = trials.count(())
    share = usual.wrong / usual.asked
    looks = 1 if share >= 1 else ceil(log(DOUBT) / log(1 - share))
    needed = list[str]()
    for _ in range(MAX_ANSWERS):
        known, withheld = _withhold_until_gone(trials, more, looks)
        if not withheld:
            break
        needed = _find_fewest(lambda names: trials.is_gone(names, looks), withheld)
        reply = trials.reply(needed)
        if not right or not informative(reply) or any(says(trials.question, reply, one) for one in right):
            break
        trials.answers.append(reply)
    if not needed:
        return []
    without = trials.count(needed)
    return [Proof(known[name], trials.count([one for one in needed if one != name]), without) for name in needed]


def _withhold_until_gone(
    trials: Trials, more: Callable[[], Sequence[Suspect]], looks: int
) -> tuple[dict[str, Suspect], list[str]]:
    """All suspects by name, and a prefix of them without which the wrong answer disappears; empty if none does."""
    known = dict[str, Suspect]()
    for _ in range(ROUNDS):
        usable = [one for one in more() if one.id not in known and one.standing is not Stance.RIGHT]
        size = max(1, len(known))
        known |= {one.id: one for one in usable[:MAX_SUSPECTS]}
        names = sorted(known, key=lambda name: known[name].standing is Stance.SILENT)
        if len(known) < size or not usable:
            break
        while not trials.is_gone(names[:size], looks):
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
    """The outcome of an incident."""

    REPAIRED = "repaired"
    NOT_RIGHT = "not right yet"
    PROVEN = "proven"
    NAMED = "named"
    NOT_MOVED = "not moved"
    NO_DOCUMENT = "no document"
    NOT_STATED = "not stated"
    NOT_REPRODUCED = "not reproduced"
    UNFINISHED = "unfinished"


SENTENCES = {
    DocumentVerdict.REPAIRED: "The documents behind the wrong answer are in quarantine; the wrong answer is gone.",
    DocumentVerdict.NOT_RIGHT: (
        "The documents behind the wrong answer are in quarantine; the new answer is not right either."
    ),
    DocumentVerdict.PROVEN: "Without these documents the wrong answer disappears; nothing was quarantined.",
    DocumentVerdict.NAMED: (
        "These documents state the answer. No model was asked without them, so the cause is not proven."
    ),
    DocumentVerdict.NOT_MOVED: (
        "The answer depends on documents that do not state it: read them. Nothing was quarantined."
    ),
    DocumentVerdict.NO_DOCUMENT: (
        "The answer depends on no document that could be behind it: it may come from the model, a cache, or another "
        "store. Nothing was quarantined."
    ),
    DocumentVerdict.NOT_STATED: (
        "No document that was shown states this answer, and no model was asked. If the system answers differently now, "
        "give the answer that it gives; for documents that it did not show, give --store."
    ),
    DocumentVerdict.NOT_REPRODUCED: "The system does not give this answer now, so nothing was proven or changed.",
    DocumentVerdict.UNFINISHED: "The budget was exhausted before anything was proven; nothing was changed.",
}


@dataclass(frozen=True, slots=True)
class Incident:
    """The result of investigating one wrong answer.

    Attributes:
        question, answer: The question, and the wrong answer.
        verdict: The outcome.
        suspects: All examined documents, the most suspicious first.
        proofs: The documents that the answer depends on; guilty are those that state it or contain an injection.
        quarantined: Ids of the documents in quarantine.
        after: The answer without the guilty documents; None if nothing was asked.
        asked: Number of questions.
        notes: Warnings.
    """

    question: str
    answer: str
    verdict: DocumentVerdict
    suspects: tuple[Suspect, ...] = ()
    proofs: tuple[Proof, ...] = ()
    quarantined: tuple[str, ...] = ()
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
        return {
            "unpoison": __version__,
            "question": self.question,
            "answer": self.answer,
            "verdict": self.verdict.value,
            "summary": SENTENCES[self.verdict],
            "guilty": list(self.guilty),
            "proofs": [proof.to_dict() for proof in self.proofs],
            "suspects": [suspect.to_dict() for suspect in self.suspects],
            "quarantined": list(self.quarantined),
            "after": self.after,
            "asked": self.asked,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=True, indent=2) + "\n"


def conclude(
    trials: Trials, suspects: Callable[[], Sequence[Suspect]], right: Sequence[str] = (), *, repair: bool = False
) -> Incident:
    """Prove which documents are behind the wrong answer; with `repair`, the guilty ones are to stay withheld."""
    found = Incident(trials.question, trials.answers[0], DocumentVerdict.UNFINISHED)
    try:
        if not trials.count(()).wrong:
            return replace(found, verdict=DocumentVerdict.NOT_REPRODUCED)
        proofs = find_culprits(trials, suspects, right)
        found = replace(found, verdict=DocumentVerdict.NO_DOCUMENT, proofs=tuple(proofs))
        if not found.guilty:
            return replace(found, verdict=DocumentVerdict.NOT_MOVED) if proofs else found
        found = replace(found, verdict=DocumentVerdict.PROVEN, quarantined=found.guilty if repair else ())
        count, after = trials.count(found.guilty), trials.reply(found.guilty)
        found = replace(found, after=after)
        if not repair:
            return found
        good = not count.wrong and (not right or any(says(trials.question, after, one) for one in right))
        return replace(found, verdict=DocumentVerdict.REPAIRED if good else DocumentVerdict.NOT_RIGHT)
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

    trials = Trials(ask, question, answer, budget=budget, repeats=1)

    def suspects() -> list[Suspect]:
        return suspects_among(question, trials.answers, named, right)

    if writer is None:
        found = Incident(question, answer, DocumentVerdict.NAMED, tuple(suspects()))
        return found if found.guilty else Incident(question, answer, DocumentVerdict.NOT_STATED, found.suspects)
    return replace(conclude(trials, suspects, right), suspects=tuple(suspects()), asked=trials.asked)
