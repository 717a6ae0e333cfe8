"""An incident from end to end: reproduce, find the suspects, prove, repair, ask what else it reached."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from unpoison.bench.incident.case import Case
from unpoison.bench.incident.experiment import Asked, BudgetError, Experiment
from unpoison.bench.incident.proof import MAX_LOOKS, Count, Proof, Trials, looks_for, prove
from unpoison.bench.incident.reach import reach_of
from unpoison.bench.incident.results import Incident, Regression, Spared, Verdict
from unpoison.bench.incident.scope import MAX_SUSPECTS, Accomplice, Documents, Standing, Suspect, is_cited
from unpoison.bench.incident.undo import moves_of
from unpoison.bench.redteam.config import Bounds, Wait
from unpoison.bench.redteam.pace import Pace
from unpoison.errors import InputError
from unpoison.models.prompts import informative
from unpoison.retrieval.store import Store
from unpoison.scan.quarantine import earlier_moves
from unpoison.scan.statements import says
from unpoison.scan.stores import FolderStore, open_store
from unpoison.utils.checks import at_least

__all__ = ["BUDGET", "REPEATS", "Settings", "investigate"]

BUDGET = 100
"""Questions to the target; a case with one culprit needs about 15."""

REPEATS = 4
"""The fewest questions of which always and never have intervals (Wilson, 95 %) that do not meet."""

MAX_ANSWERS = 5
"""Wrong answers that are looked into: where a right one is known, another wrong one that comes in its place is, too."""

MAX_RECORDED = 3 * MAX_SUSPECTS
"""Suspects that are kept of each look."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How an incident is looked into.

    Attributes:
        budget: Questions to the target at most, those of interrupted runs of the same journal among them. At least 1.
        repeats: Questions for each count of the report. At least 1.
        repair: Whether the guilty stay in quarantine; otherwise the store is as before in the end.
        accomplices: Whether accomplices are quarantined too.
        unstated: Whether what the answer depends on is quarantined too where it neither states the wrong answer nor
            gives orders. A system that lies can make the answer depend on any document.
        regressions: Questions that are asked before and after, with their right answers where they are known.
        logs: Audit logs, in which it is looked up whom the guilty documents reached.
        bounds, wait: Of the target, as in a red-team configuration.
    """

    budget: int = BUDGET
    repeats: int = REPEATS
    repair: bool = True
    accomplices: bool = False
    unstated: bool = False
    regressions: Sequence[tuple[str, tuple[str, ...]]] = ()
    logs: Sequence[str] = ()
    bounds: Bounds = field(default_factory=Bounds)
    wait: Wait = field(default_factory=Wait)

    def __post_init__(self) -> None:
        at_least("budget", self.budget, 1)
        at_least("repeats", self.repeats, 1)


def investigate(
    case: Case,
    target: Asked,
    store: str,
    quarantine: str,
    journal: Path,
    settings: Settings | None = None,
    *,
    pace: Pace | None = None,
    mask: Callable[[Any], Any] = lambda value: value,
    progress: Callable[[int, int, str], None] = lambda done, total, doing: None,
) -> Incident:
    """Find the documents behind a wrong answer by withholding them, and leave the guilty ones in quarantine.

    The journal has every step before it is done. After a kill at any moment the same call goes on where it ended, and
    asks nothing twice; `undo` puts everything back. Where it breaks off by itself, it puts everything back.

    Args:
        case: What was wrong.
        target: The system; it reads the store.
        store: As for `scan.stores.open_store`.
        quarantine: Another store of its kind; made if it is not there.
        journal: A file for this incident alone.
        settings: As above.
        pace: How the target is called; by default as the settings' bounds say.
        mask: Takes secrets out of what the target says.
        progress: Called after every step with the questions asked, the budget and what comes next.

    Raises:
        InputError: A store that cannot be used, or a journal of something else.
        TargetError: The target does not answer, or does not read this store.
        StoreError: A store cannot be reached.
    """
    settings = settings or Settings()
    with open_store(store) as index, open_store(quarantine, new=True) as held:
        if index.shares_with(held):
            raise InputError(f"{held.name} is where the documents are; name another store with --quarantine")
        if isinstance(held, FolderStore) and not isinstance(index, FolderStore):
            raise InputError(
                f"{held.name} takes files, and {index.name} has none; name a store of its kind with --quarantine"
            )
        documents = _read_documents(store, quarantine, index, held, journal)
        identity = {
            "question": case.question,
            "answer": case.answer,
            "store": _without_password(store),
            "quarantine": _without_password(quarantine),
        }
        with Experiment(
            target, index, held, journal, identity,
            pace=pace or Pace(settings.bounds), wait=settings.wait, budget=settings.budget, mask=mask,
        ) as experiment:  # fmt: skip
            work = _Investigation(case, settings, experiment, documents, progress)
            incident = work.run(store=index.name, quarantine=held.name, journal=journal)
            experiment.record("finished", verdict=incident.verdict.value)
            return incident


class _Investigation:
    """The steps, each on what the ones before came to."""

    def __init__(
        self,
        case: Case,
        settings: Settings,
        experiment: Experiment,
        documents: Documents,
        progress: Callable[[int, int, str], None],
    ) -> None:
        self.case, self.settings, self.experiment, self.documents = case, settings, experiment, documents
        self.trials = Trials(experiment, case.question, case.answer)
        self._progress = progress
        self.suspects, self.proofs = list[Suspect](), list[Proof]()
        self.accomplices, self.withheld = list[Accomplice](), list[str]()
        self.stability = Count(0, 0)
        self.regressions, self.notes = list[Regression](), list[str]()

    def run(self, *, store: str, quarantine: str, journal: Path) -> Incident:
        verdict = self._verdict()
        replies = self.trials.replies(self.withheld if self.settings.repair else self._guilty) if self._guilty else []
        return Incident(
            case=self.case,
            verdict=verdict,
            stability=self.stability,
            before=tuple(dict.fromkeys(reply.answered.answer for reply in self.trials.replies(()))),
            after=tuple(dict.fromkeys(reply.answered.answer for reply in replies)),
            proofs=tuple(part for proof in self.proofs if (part := proof.of(self._guilty)) is not None),
            spared=tuple(
                Spared(document, proof.with_them, proof.without_them)
                for proof in self.proofs
                for document in proof.documents
                if document.id not in self._guilty
            ),
            suspects=tuple(self.suspects),
            accomplices=tuple(self.accomplices),
            quarantined=tuple(self.withheld),
            regressions=tuple(self.regressions),
            reach=reach_of(self._culprits, self.settings.logs) if self.settings.logs and self._guilty else None,
            timeline=tuple(self.experiment.timeline),
            notes=tuple(dict.fromkeys([*self.experiment.notes, *self.notes])),
            asked=self.experiment.asked,
            budget=self.settings.budget,
            documents=len(self.documents),
            store=store,
            quarantine=quarantine,
            journal=str(journal),
        )

    def _verdict(self) -> Verdict:
        """Everything that is done, and what it came to; in the end the store holds what it shall hold."""
        verdict = Verdict.UNFINISHED
        try:
            verdict = self._find()
        except BudgetError as error:
            self.notes.append(str(error))
        if verdict is not Verdict.PROVEN or not self.settings.repair:
            self.experiment.place(())
            return verdict
        return self._repair()

    def _find(self) -> Verdict:
        self._say("is the answer the same again?")
        self.stability = self.trials.count((), self.settings.repeats)
        self.experiment.once("reproduced", self.stability.to_dict)
        if not self.stability.wrong:
            return Verdict.NOT_REPRODUCED
        self.suspects = self._look_for_suspects()
        self._expect()
        self._ask_regressions()
        try:
            self._prove_every_answer()
        except BudgetError as error:
            if not self.proofs:
                raise
            self.notes.append(f"{error}; the answer without the guilty is not right, and may have others behind it")
        self.experiment.once("proven", lambda: {"proofs": [proof.to_dict() for proof in self.proofs]})
        if not self.proofs:
            return Verdict.NO_DOCUMENT
        if not self._guilty:
            return Verdict.SPARED
        self._find_accomplices()
        return Verdict.PROVEN

    def _prove_every_answer(self) -> None:
        """Prove, and again where the answer without the guilty is a lie in other words, or another lie."""
        for _ in range(MAX_ANSWERS):
            self._say("which documents are behind it?")
            proofs = self._prove()
            self.proofs = proofs or self.proofs
            reply = self.trials.replies(self._named)[-1].answered.answer
            if not proofs or self._is_right(reply) or not informative(reply):
                return
            self.trials.answers.append(reply)
            self.suspects = self._look_for_suspects()

    def _prove(self) -> list[Proof]:
        """The guilty, where the answer stays away without them."""
        proofs = list[Proof]()
        for looks in dict.fromkeys((looks_for(self.stability.wrong / self.stability.asked), MAX_LOOKS)):
            proofs = prove(
                self.trials, self.suspects, self._look_for_suspects, looks=looks, repeats=self.settings.repeats
            )
            if not proofs or not proofs[0].without_them.wrong:
                return proofs
        return proofs if 2 * proofs[0].without_them.wrong < self.stability.wrong else []  # it varies very much

    def _look_for_suspects(self) -> list[Suspect]:
        """Those that are near, and those that were read in any reply so far."""
        case = self.case

        def look() -> dict[str, Any]:
            replies = [reply.answered for reply in self.trials.every_reply] + ([case.read] if case.read else [])
            suspects = self.documents.suspects(case.question, self.trials.answers, replies, case.right)
            return {"suspects": [suspect.to_dict() for suspect in suspects[:MAX_RECORDED]]}

        rows = self.experiment.once("suspects", look)["suspects"]
        suspects = [Suspect.of(row) for row in rows]
        self.experiment.texts |= {suspect.id: suspect.text for suspect in suspects}
        return suspects

    def _expect(self) -> None:
        """Documents that were read every time have to be read again when they are put back."""
        replies = [reply.answered for reply in self.trials.replies(())]
        self.experiment.expected[self.case.question] = frozenset(
            suspect.id
            for suspect in self.suspects
            if all(is_cited(suspect.id, suspect.text, reply) for reply in replies)
        )

    def _find_accomplices(self) -> None:
        def look() -> dict[str, Any]:
            case = self.case
            named = self.documents.accomplices(case.question, self.trials.answers, self._culprits, case.right)
            return {"accomplices": [list(one) for one in named]}

        rows = self.experiment.once("accomplices", look)["accomplices"]
        self.accomplices = [Accomplice(*row) for row in rows]
        self.experiment.texts |= {one.id: one.text for one in self.accomplices}

    def _repair(self) -> Verdict:
        """Withhold the guilty for good, and see that this and other questions are answered as they should be."""
        self._say("repairing")
        self.withheld = list(self._guilty)
        if self.settings.accomplices:
            self.withheld += [one.id for one in self.accomplices if not one.right and one.id not in self._named]
        verdict = Verdict.NOT_RIGHT
        try:
            count = self.trials.count(self.withheld, self.settings.repeats)
            if not count.wrong and self._is_right(self.trials.replies(self.withheld)[-1].answered.answer):
                verdict = Verdict.REPAIRED
            self._ask_again()
        except BudgetError as error:
            self.notes.append(f"{error}; the repair was not checked to the end")
        self.experiment.place(self.withheld)
        self.experiment.once("repaired", lambda: {"quarantined": self.withheld})
        return verdict

    def _ask_regressions(self) -> None:
        for number, (question, right) in enumerate(self.settings.regressions, 1):
            self._say(f"regression question {number}, before")
            self.regressions.append(Regression(question, right, self.experiment.ask(question).answered.answer))

    def _ask_again(self) -> None:
        """Ask the regression questions; where one breaks that the accomplices answered, these go back."""
        self._ask_after(self.withheld)
        if any(one.broken for one in self.regressions) and len(self.withheld) > len(self._guilty):
            self.withheld = list(self._guilty)
            self.notes.append("regression questions broke without the accomplices, so these were put back")
            self._ask_after(self.withheld)

    def _ask_after(self, withheld: Collection[str]) -> None:
        for number, one in enumerate(self.regressions):
            self._say(f"regression question {number + 1}, after")
            self.regressions[number] = one.again(self.experiment.ask(one.question, withheld).answered.answer)

    def _is_right(self, reply: str) -> bool:
        return not self.case.right or any(says(self.case.question, reply, right) for right in self.case.right)

    @property
    def _named(self) -> list[str]:
        """All on which the answer depends, the spared among them."""
        return [suspect.id for proof in self.proofs for suspect in proof.documents]

    @property
    def _culprits(self) -> list[Suspect]:
        """Of these, what may be moved."""
        movable = {Standing.STATES, Standing.SILENT} if self.settings.unstated else {Standing.STATES}
        return [one for proof in self.proofs for one in proof.documents if one.standing in movable]

    @property
    def _guilty(self) -> list[str]:
        return [suspect.id for suspect in self._culprits]

    def _say(self, doing: str) -> None:
        self._progress(self.experiment.asked, self.settings.budget, doing)


def _read_documents(store: str, quarantine: str, index: Store, held: Store, journal: Path) -> Documents:
    """The store as it was: what an interrupted run of this journal withholds belongs to it."""
    moves = moves_of(journal)
    away = earlier_moves(moves, index, held) if moves.exists() else []
    there = list(held.fetch(away)) if away else []
    return Documents(store, quarantine, there)


def _without_password(source: str) -> str | None:
    """A store's string, or None where it holds a password, which no journal shall have."""
    try:
        return None if urlsplit(source).password else source
    except ValueError:
        return None
