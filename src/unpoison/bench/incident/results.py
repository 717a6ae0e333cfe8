"""What an incident came to, as data; `page` draws it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from unpoison import __version__
from unpoison.bench.incident.case import Case
from unpoison.bench.incident.proof import Count, Proof
from unpoison.bench.incident.reach import Reach
from unpoison.bench.incident.scope import Accomplice, Standing, Suspect
from unpoison.scan.statements import says
from unpoison.scan.trace_methods import STATED

__all__ = ["STANDARDS", "Incident", "Regression", "Verdict"]

STANDARDS = (
    ("OWASP LLM04:2025", "Data and Model Poisoning"),
    ("OWASP LLM08:2025", "Vector and Embedding Weaknesses"),
    ("MITRE ATLAS AML.T0070", "RAG Poisoning"),
    ("NIST SP 800-61", "Incident response: analysis, containment, recovery"),
    ("EU AI Act Art. 15(5)", "Resilience against data poisoning"),
)
"""What such a report is evidence for."""

VERSION = 1
"""Of the JSON."""


MAX_NAMES = 10
"""Of documents in one sentence."""


class Verdict(StrEnum):
    """What it came to."""

    REPAIRED = "repaired"
    NOT_RIGHT = "not right yet"
    PROVEN = "proven"
    SPARED = "not moved"
    NO_DOCUMENT = "no document"
    NOT_REPRODUCED = "not reproduced"
    UNFINISHED = "unfinished"


SENTENCES = {
    Verdict.REPAIRED: "The documents behind the wrong answer are in quarantine; it is not given any more.",
    Verdict.NOT_RIGHT: "The documents behind the wrong answer are in quarantine; the answer is not right yet.",
    Verdict.PROVEN: "The documents behind the wrong answer were proven; the store is as it was before.",
    Verdict.SPARED: (
        "The answer changes with documents that do not state it. Nothing was quarantined: read them, and see why."
    ),
    Verdict.NO_DOCUMENT: (
        "The wrong answer comes whatever is withheld: it is in none of the suspects, or in the model, a cache, or "
        "another store. Nothing was quarantined."
    ),
    Verdict.NOT_REPRODUCED: "The system does not give this answer now, so nothing could be proven or was changed.",
    Verdict.UNFINISHED: "The budget was used up before anything was proven; the store is as it was before.",
}


@dataclass(frozen=True, slots=True)
class Regression:
    """Another question, before and after.

    Attributes:
        question: What was asked.
        right: Its right answers, where they are known.
        before, after: The replies; None where it was not asked.
    """

    question: str
    right: tuple[str, ...]
    before: str
    after: str | None = None

    def again(self, after: str) -> Self:
        return replace(self, after=after)

    @property
    def broken(self) -> bool:
        """Whether it was answered before as it is not any more."""
        if self.after is None:
            return False
        wanted = [right for right in self.right if says(self.question, self.before, right)]
        if self.right and not wanted:
            return False  # it was wrong before
        return not any(says(self.question, self.after, right) for right in wanted or [self.before])

    def to_dict(self) -> dict[str, Any]:
        return {
            "question": self.question, "right": list(self.right), "before": self.before, "after": self.after,
            "broken": self.broken,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spared:
    """A document on which the answer depends, and that was not moved for what it says.

    Attributes:
        document: It.
        with_them, without_them: How often the answer was wrong, as for a proof.
    """

    document: Suspect
    with_them: Count
    without_them: Count

    @property
    def sentence(self) -> str:
        """Why it is suspicious, and why it stays."""
        name, counts = self.document.id, f"{self.with_them.words} with it and {self.without_them.words} without"
        if self.document.standing is Standing.RIGHT:
            return (
                f"{name} would have been moved (the answer was wrong {counts}); it states what you call right, and not "
                "the wrong answer. What it says cannot be behind a wrong answer, so either another document or the "
                "prompt gives orders about it, or the system lies: look at these. It stays in the store."
            )
        return (
            f"The answer changes with {name} (it was wrong {counts}), but it does not state it, nor gives orders. A "
            "system that lies can make its answer depend on any document, so it stays in the store: read it, and run "
            "again with --unstated to quarantine it."
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "document": self.document.to_dict(),
            "standing": self.document.standing.value,
            "with": self.with_them.to_dict(),
            "without": self.without_them.to_dict(),
            "sentence": self.sentence,
        }


@dataclass(frozen=True, slots=True)
class Incident:
    """What an incident came to.

    Attributes:
        case: What was wrong.
        verdict: In one word.
        stability: How often the wrong answer came with nothing withheld.
        before, after: The different replies, with nothing and with the guilty withheld.
        proofs: The guilty documents and groups, the most suspicious first.
        spared: On what the answer depends too, and what was not moved for what it says.
        suspects: What was looked at, the most suspicious first.
        accomplices: Documents that belong to the guilty, though this answer does not depend on them.
        quarantined: Ids of what is in quarantine now.
        regressions: Other questions.
        reach: Whom the guilty reached; None where no log was given.
        timeline: The steps with their times.
        notes: Anything unusual.
        asked, budget: Questions to the target.
        documents: How many the store has.
        store, quarantine, journal: Where they are.
    """

    case: Case
    verdict: Verdict
    stability: Count
    before: tuple[str, ...]
    after: tuple[str, ...]
    proofs: tuple[Proof, ...]
    spared: tuple[Spared, ...]
    suspects: tuple[Suspect, ...]
    accomplices: tuple[Accomplice, ...]
    quarantined: tuple[str, ...]
    regressions: tuple[Regression, ...]
    reach: Reach | None
    timeline: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]
    asked: int
    budget: int
    documents: int
    store: str
    quarantine: str
    journal: str

    @property
    def summary(self) -> str:
        """One sentence."""
        return SENTENCES[self.verdict]

    @property
    def guilty(self) -> tuple[str, ...]:
        """Ids of the guilty, the most suspicious first."""
        return tuple(document.id for proof in self.proofs for document in proof.documents)

    @property
    def remaining(self) -> list[str]:
        """What is still to be done, as sentences."""
        sentences = [one.sentence for one in self.spared]
        left = [one.id for one in self.accomplices if one.id not in self.quarantined and not one.right]
        if self.guilty and not self.quarantined:
            sentences.append(f"The guilty documents are in {self.store}; run again without --prove-only.")
        if left:
            some = f"{len(left):,} accomplices are" if len(left) > 1 else "1 accomplice is"
            sentences.append(f"{some} in {self.store} still; look at them, or run with --accomplices.")
        named = {*self.guilty, *(one.document.id for one in self.spared), *(one.id for one in self.accomplices)}
        agree = [one.id for one in self.suspects if self.guilty and one.stated >= STATED and one.id not in named]
        if agree:
            more = f" and {len(agree) - MAX_NAMES:,} more" if len(agree) > MAX_NAMES else ""
            sentences.append(
                f"In {self.store}, and not needed for this answer, what states the wrong answer too: "
                f"{', '.join(agree[:MAX_NAMES])}{more}; read what it says."
            )
        for proof in self.proofs:
            if not proof.certain:
                names = ", ".join(document.id for document in proof.documents)
                sentences.append(f"The intervals of {names} meet: it is likely, not certain; give more --repeats.")
        if innocent := [one.id for one in self.accomplices if one.right]:
            sentences.append(f"{', '.join(innocent[:MAX_NAMES])}: as an accomplice, but it states what you call right.")
        broken = sum(one.broken for one in self.regressions)
        if broken:
            sentences.append(f"{broken:,} of {len(self.regressions):,} regression questions are answered otherwise.")
        if self.reach is not None and self.reach.answers:
            sentences.append("Whoever was given the wrong answers listed under reach should be informed.")
        if self.guilty:
            sentences.append("How these documents came into the store is not known from here; see their origin.")
        return sentences

    def to_dict(self) -> dict[str, Any]:
        return {
            "incident": VERSION,
            "unpoison": __version__,
            "case": self.case.to_dict(),
            "verdict": self.verdict.value,
            "summary": self.summary,
            "stability": self.stability.to_dict(),
            "before": list(self.before),
            "after": list(self.after),
            "guilty": [proof.to_dict() for proof in self.proofs],
            "spared": [one.to_dict() for one in self.spared],
            "accomplices": [one._asdict() for one in self.accomplices],
            "suspects": [
                {name: value for name, value in suspect.to_dict().items() if name != "text"}
                for suspect in self.suspects
            ],
            "quarantined": list(self.quarantined),
            "regressions": [one.to_dict() for one in self.regressions],
            "reach": None if self.reach is None else self.reach.to_dict(),
            "remaining": self.remaining,
            "timeline": [dict(row) for row in self.timeline],
            "notes": list(self.notes),
            "asked": self.asked,
            "budget": self.budget,
            "documents": self.documents,
            "store": self.store,
            "quarantine": self.quarantine,
            "journal": self.journal,
            "standards": [list(pair) for pair in STANDARDS],
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=True, indent=2) + "\n"
