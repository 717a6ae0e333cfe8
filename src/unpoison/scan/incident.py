"""Which documents are behind a wrong answer: ranked by what they state, proven by withholding them and asking again.

The fewest suspects are withheld first, the most suspicious ones, and twice as many as long as the answer stays. Then
they are put back, the least suspicious first, as long as the answer stays away: those that cannot be put back are
needed. It is the same search whether a model is asked with some of its passages, or a system with some of its store.

A system may lie: then the answer goes with whatever it likes. So what states what is right is never a suspect, and
what neither states the wrong answer nor gives orders is never guilty.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from math import ceil, log
from typing import Any

from unpoison import __version__
from unpoison.algorithms.intervals import wilson
from unpoison.core.passages import Passage
from unpoison.errors import UnpoisonError
from unpoison.models.functions import GeneratorFunction
from unpoison.models.loading import as_generator
from unpoison.models.prompts import answer_prompt, informative
from unpoison.models.protocols import Generator, Models
from unpoison.models.requests import generate
from unpoison.runtime.driver import run
from unpoison.scan.statements import says, statements
from unpoison.text.canonical import canonical
from unpoison.text.prompt_injection import THRESHOLD, injection

__all__ = [
    "BudgetError",
    "DocumentVerdict",
    "Incident",
    "Proof",
    "Suspect",
    "Trials",
    "WrongCount",
    "find_culprits",
    "suspects_among",
    "trace",
]  # fmt: skip

HINT, STATED = 0.25, 0.6
"""From how plainly on a document may be behind an answer, and states it."""

BESIDE = 0.75
"""Where nobody is asked, what states the answer nearly as plainly as the plainest is named too."""

MAX_SUSPECTS = 12
"""Documents that may be withheld in the first round; what is read in their place may come later."""

ROUNDS = 3
"""How often documents that are read in place of the withheld ones become suspects."""

MAX_ANSWERS = 5
"""Maximum number of wrong answers to investigate; if a right one is known, new wrong answers are included."""

DOUBT, MAX_LOOKS = 0.05, 8
"""Probability that a guilty document passes for innocent by chance, and questions for one decision at most."""


class BudgetError(UnpoisonError):
    """The budget of questions is exhausted."""


class Stance(StrEnum):
    """What a document says about the answer."""

    STATES = "states the wrong answer, or gives orders"
    SILENT = "does not state the wrong answer"
    RIGHT = "states what is right"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A document that may be behind the answer.

    Attributes:
        id: Its name.
        text: What it says, with its title in front.
        stated: How plainly it states the wrong answer, in [0, 1].
        right: How plainly it states what is right, where that is known, in [0, 1].
        near: By which equals are ranked: how near it is to the question, and whether it was read, in [0, 1].
    """

    id: str
    text: str
    stated: float
    right: float = 0.0
    near: float = 0.0

    @property
    def standing(self) -> Stance:
        """Whether what it says can be behind the wrong answer. What a system replies does not decide this."""
        if self.right >= STATED and self.stated < STATED:
            return Stance.RIGHT
        ordered = self.stated < HINT and injection(canonical(self.text).text).probability > THRESHOLD
        return Stance.STATES if self.stated >= HINT or ordered else Stance.SILENT

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values, without the text."""
        return {"id": self.id, "stated": round(self.stated, 4), "standing": self.standing.value}


def suspects_among(
    question: str,
    answers: Sequence[str],
    documents: Mapping[str, str],
    right: Sequence[str] = (),
    near: Mapping[str, float] | None = None,
) -> list[Suspect]:
    """Documents by how plainly they state a wrong answer, then by how near they are.

    Args:
        question: What was asked.
        answers: The wrong answer, or the wrong part of it; then others that came in its place.
        documents: Texts by name.
        right: Right answers, where they are known.
        near: By name, in [0, 1].
    """
    names, texts = list(documents), list(documents.values())
    wrong, agree = _strengths(question, answers, texts), _strengths(question, right, texts)
    near = near or {}
    suspects = [Suspect(*fields, near.get(fields[0], 0.0)) for fields in zip(names, texts, wrong, agree)]
    return sorted(suspects, key=lambda one: -round(one.stated + one.near, 9))


def _strengths(question: str, answers: Sequence[str], texts: Sequence[str]) -> list[float]:
    """How plainly each text states one of the answers, in [0, 1]; 0 without an answer."""
    if not answers:
        return [0.0] * len(texts)
    return [max(map(float, shares)) for shares in zip(*(statements(question, answer, texts) for answer in answers))]


@dataclass(frozen=True, slots=True)
class WrongCount:
    """How often the answer was the wrong one, of so many questions."""

    wrong: int
    asked: int

    @property
    def words(self) -> str:
        """Such as "4 of 4 times (likely 51 to 100 %)", by Wilson's interval."""
        share = wilson(self.wrong, self.asked)
        return f"{self.wrong} of {self.asked} times (likely {100 * share.low:.0f} to {100 * share.high:.0f} %)"


@dataclass(frozen=True, slots=True)
class Proof:
    """A document without which, among others perhaps, the answer goes.

    Attributes:
        document: It.
        with_it: How often the answer was wrong with it, the other needed ones withheld.
        without: How often without any of them.
    """

    document: Suspect
    with_it: WrongCount
    without: WrongCount

    def to_dict(self) -> dict[str, Any]:
        counts = {"with": asdict(self.with_it), "without": asdict(self.without)}
        return {**self.document.to_dict(), **counts, "alone": self.with_it.wrong > 0}


class Trials:
    """Whether the wrong answer comes while some documents are withheld; replies count for all who ask the same.

    Args:
        ask: What is replied while these documents are withheld.
        question: What is asked.
        answer: The wrong answer.
        budget: Questions at most.
        repeats: Questions for each count of the report; 1 where the same question always has the same reply.

    Attributes:
        answers: Wrong answers: that one, and others that come to light.
        asked: Questions so far.
    """

    def __init__(
        self, ask: Callable[[frozenset[str]], str], question: str, answer: str, *, budget: int, repeats: int
    ) -> None:
        self._ask, self.question, self.answers, self.repeats = ask, question, [answer], repeats
        self._budget, self.asked = budget, 0
        self._replies = defaultdict[frozenset[str], list[str]](list)

    def reply(self, withheld: Collection[str]) -> str:
        """The last one, asked for where there is none.

        Raises:
            BudgetError: Nothing may be asked any more.
        """
        replies = self._replies[frozenset(withheld)]
        return replies[-1] if replies else self._one_more(frozenset(withheld))

    def count(self, withheld: Collection[str]) -> WrongCount:
        """How often the answer is the wrong one, of `repeats` questions; raises as `reply`."""
        key = frozenset(withheld)
        while len(self._replies[key]) < self.repeats:
            self._one_more(key)
        return WrongCount(sum(map(self.is_wrong, self._replies[key])), len(self._replies[key]))

    def is_gone(self, withheld: Collection[str], looks: int) -> bool:
        """Whether none of so many replies is the wrong answer; the first that is ends it. Raises as `reply`."""
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
            raise BudgetError(f"the budget of {self._budget:,} questions is used up; give a larger --budget")
        self.asked += 1
        self._replies[withheld].append(self._ask(withheld))
        return self._replies[withheld][-1]


def find_culprits(trials: Trials, more: Callable[[], Sequence[Suspect]], right: Sequence[str] = ()) -> list[Proof]:
    """The documents behind the wrong answer; none where it stays whatever is withheld.

    Args:
        trials: Asks; with nothing withheld the answer is wrong.
        more: Suspects, the most suspicious first; asked again as replies bring up others.
        right: Right answers: where the reply without the culprits is none of them, that is a wrong answer too.

    Raises:
        BudgetError: Nothing may be asked any more.
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
    """Every suspect by name, and the fewest of them, in their order, without which the answer is another."""
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
    """The fewest of some names for which something holds: none of them can be left out.

    Those at the end are left out first, half of them at once: about log2(n) calls and one for each that stays.
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
    NOT_REPRODUCED = "not reproduced"
    UNFINISHED = "unfinished"


SENTENCES = {
    DocumentVerdict.REPAIRED: "The documents behind the wrong answer are in quarantine; it is not given any more.",
    DocumentVerdict.NOT_RIGHT: "The documents behind the wrong answer are in quarantine; the answer is not right yet.",
    DocumentVerdict.PROVEN: "Without these documents the answer is another; nothing was quarantined.",
    DocumentVerdict.NAMED: (
        "These documents state the answer. Nobody was asked without them, so none is shown to be the cause."
    ),
    DocumentVerdict.NOT_MOVED: (
        "The answer changes with documents that do not state it: read them. Nothing was quarantined."
    ),
    DocumentVerdict.NO_DOCUMENT: (
        "No document that could be behind the answer is needed for it: it is in none of them, or in the model, a "
        "cache, or another store. Nothing was quarantined."
    ),
    DocumentVerdict.NOT_REPRODUCED: "This answer is not given now, so nothing could be proven or was changed.",
    DocumentVerdict.UNFINISHED: "The budget was used up before anything was proven; nothing was changed.",
}


@dataclass(frozen=True, slots=True)
class Incident:
    """The result of investigating one wrong answer.

    Attributes:
        question, answer: What was asked, and what was wrong.
        verdict: The outcome.
        suspects: All documents that were looked at, the most suspicious first.
        proofs: Those on which the answer depends; only what states it or gives orders is guilty.
        quarantined: Ids of what was withheld for good.
        after: What is answered without the guilty; None where nobody was asked.
        asked: Questions.
        notes: Anything unusual.
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
        """Ids of the documents behind the answer; where nobody was asked, of those that state it plainly."""
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
    """Which passages made a model give an answer.

    Args:
        question: What was asked.
        answer: What the model said, or the wrong part of it, such as "Sydney".
        passages: What it read, in retrieval order, those that would be read in their place behind.
        generator: The one that gave the answer, or another, or its name; None to rank the passages by what they state.
        right: Right answers, where they are known.
        k: How many passages the model reads at once; None for all.
        budget: Prompts at most.

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
        return found if found.guilty else Incident(question, answer, DocumentVerdict.NO_DOCUMENT, found.suspects)
    verdict, proofs, after, notes = DocumentVerdict.UNFINISHED, list[Proof](), None, list[str]()
    try:
        if not trials.count(()).wrong:
            verdict = DocumentVerdict.NOT_REPRODUCED
        else:
            proofs = find_culprits(trials, suspects, right)
            guilty = any(proof.document.standing is Stance.STATES for proof in proofs)
            verdict = (
                DocumentVerdict.PROVEN
                if guilty
                else DocumentVerdict.NOT_MOVED
                if proofs
                else DocumentVerdict.NO_DOCUMENT
            )
            after = trials.reply([proof.document.id for proof in proofs]) if proofs else None
    except BudgetError as error:
        notes.append(str(error))
    return Incident(question, answer, verdict, tuple(suspects()), tuple(proofs), (), after, trials.asked, tuple(notes))
