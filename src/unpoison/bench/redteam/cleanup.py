"""Remove planted documents and nothing else, during a test (`Remover`) or later from its journal (`clean`).

A document is removed by the ids that we chose for it, or that the target gave in reply to planting it. Where the target
can be searched for a canary (`find`), only what is found there, marked, is removed: that also finds documents whose
reply was lost, and spares a document of the owner's whose id was given for ours. An id that the target gave for two
documents is never used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from unpoison.bench.redteam.config import Config, RequestLimits, Wait, build_target
from unpoison.bench.redteam.hosts import Hosts
from unpoison.bench.redteam.journal import PlantRecord, RunJournal
from unpoison.bench.redteam.pace import Clock, Pace
from unpoison.bench.redteam.targets import RedteamTarget, TargetDocument, check_handles
from unpoison.errors import InputError, OptionError, TargetError, UnpoisonError, clip

__all__ = ["STILL_READ", "Cleaned", "Remover", "clean", "plant_document"]


MAX_PIECES = 10_000
"""Pieces into which a system may cut one document."""

STILL_READ = "the target said that it was removed, and still reads it"


class Remover:
    """Removes plants of one journal from one target.

    Args:
        target: Where they are.
        journal: Where they are written down.
        pace: How the target is called.
        wait: How long it may take to notice.
    """

    def __init__(self, target: RedteamTarget, journal: RunJournal, pace: Pace, wait: Wait) -> None:
        self._target, self._journal, self._pace, self._wait = target, journal, pace, wait
        self._find: Any = getattr(target, "find", None)

    def remove(self, plant: PlantRecord, *, patience: float | None = None) -> str:
        """Remove one document.

        Args:
            plant: The document, from the journal.
            patience: Seconds that the target may take to find it, or to know its id; `wait.seconds` by default.

        Returns:
            "" where it is gone; otherwise why it may still be there.

        Raises:
            OSError: The journal cannot be written.
        """
        if not plant.open:
            return ""
        end = self._pace.clock.now() + (self._wait.seconds if patience is None else patience)
        try:
            reason = self._remove_known(plant, end) if self._find is None else self._remove_found(plant, end)
        except UnpoisonError as error:
            reason = str(error)
        if reason:
            self._journal.append("kept", canary=plant.canary, reason=reason)
        return reason

    def _remove_found(self, plant: PlantRecord, end: float) -> str:
        """Search and remove until nothing is found: results come in pages, and new documents appear late."""
        removed, left = set[str](), list[str]()
        for _ in self._pace.poll(self._wait, end, free=True):
            left = self._search(plant.canary)
            while left and not removed.issuperset(left) and len(removed) < MAX_PIECES:
                if not removed:
                    self._journal.append("removing", canary=plant.canary)
                removed.update(left)
                self._delete(left, end)
                left = self._search(plant.canary)
            if not left and (removed or plant.interrupted):
                break
        if left:
            return "the target said that it was removed, and still finds it"
        self._journal.append("removed", canary=plant.canary, deleted=bool(removed), confirmed=True)
        return ""

    def _remove_known(self, plant: PlantRecord, end: float) -> str:
        """Remove by handle."""
        handles = list(dict.fromkeys([*(plant.handles or ()), *plant.own]))
        if not handles:
            return "the reply to planting it was lost, and the target cannot be searched for its canary"
        if shared := self._journal.ambiguous_handles() & set(handles):
            return f"the target gave {clip(min(shared))} for several documents; see plant.id"
        believed = plant.interrupted or self._journal.history.deleted
        self._journal.append("removing", canary=plant.canary)
        deleted = len(self._delete(check_handles(handles, "the journal"), end)) < len(handles)
        if not deleted and not believed:
            return (
                f"the target knows no {clip(handles[0])}, and has deleted nothing so far; see whether the request "
                "'remove' is right"
            )
        self._journal.append("removed", canary=plant.canary, deleted=deleted, confirmed=False)
        return ""

    def confirm(self, plants: Iterable[PlantRecord]) -> None:
        """Record that removed documents were searched for and not found."""
        for plant in plants:
            if not plant.confirmed:
                self._journal.append("removed", canary=plant.canary, deleted=True, confirmed=True)

    def doubt(self, plants: Iterable[PlantRecord]) -> None:
        """Record that documents are still read although their removal was accepted.

        A search that finds them no more is believed: what is still read comes from a cache then.
        """
        for plant in plants:
            if not plant.confirmed:
                self._journal.append("kept", canary=plant.canary, reason=STILL_READ)

    def _search(self, canary: str) -> list[str]:
        handles: Sequence[str] = self._pace.call("find", lambda: self._find(canary), free=True)
        return check_handles(handles, "find") if handles else []

    def _delete(self, handles: list[str], end: float) -> list[str]:
        """Remove; returns the handles that the target does not know, retried because it may index slowly."""
        waiting = handles
        for _ in self._pace.poll(self._wait, end, free=True):
            remove = partial(self._target.remove, waiting)
            absent: Iterable[str] | None = self._pace.call("remove", remove, free=True)
            waiting = [handle for handle in waiting if handle in frozenset(absent or ())]
            if not waiting:
                break
        return waiting


def plant_document(
    target: RedteamTarget, journal: RunJournal, pace: Pace, document: TargetDocument, question: str, attack: str
) -> PlantRecord:
    """Record one document in the journal, then plant it.

    Raises:
        TargetError: It was not planted, or this is unknown.
        OSError: The journal cannot be written; nothing was planted, or it is known in memory.
        InterruptedTestError: The budget is used up.
    """
    own_ids = getattr(target, "own_ids", None)
    own = [] if own_ids is None else check_handles(own_ids(document.canary), "own_ids")
    journal.append("planting", canary=document.canary, question=question, attack=attack, handles=own)
    plant = journal.history.plants[document.canary]
    try:
        handles = pace.call("plant", lambda: check_handles(target.plant([document]) or own, "plant"), repeat=bool(own))
    except TargetError as error:
        if error.refused and (error.retryable or getattr(target, "find", None) is None):  # otherwise it is looked for
            journal.append("refused", canary=document.canary)
        raise
    plant.handles = tuple(handles)  # known here even if the disk is full
    journal.append("planted", canary=document.canary, handles=handles)
    return plant


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The result of cleaning.

    Attributes:
        removed: Documents that were removed, looked for and not found.
        accepted: Documents whose removal the target accepted but that could not be verified, as it has no `find`.
        remaining: (canary, why) of those that may still be there.
        damaged: Lines of the journal that cannot be read; documents that they name are not known.
    """

    removed: int
    accepted: int = 0
    remaining: tuple[tuple[str, str], ...] = ()
    damaged: tuple[int, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.remaining and not self.damaged


def clean(
    path: Path,
    *,
    hosts: Hosts,
    config: Config | None = None,
    clock: Clock | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, doing: None,
) -> Cleaned:
    """Remove every document that a journal lists as planted.

    It may be interrupted and repeated. What the target cannot be told apart stays, and is named.

    Args:
        path: The journal.
        hosts: Where requests may go.
        config: The configuration, where the target is Python code: a journal is data, and names no code to be run; and
            where the target has moved.
        clock: Time.
        progress: Called after every document.

    Raises:
        InputError: There is no journal, or the file is not a journal, or another process has it.
        OptionError: The target is Python code and no configuration was given, or its host may not be spoken to.
    """
    if not path.is_file():
        raise InputError(f"{clip(str(path), 200)} does not exist; give the journal of 'unpoison redteam'")
    with RunJournal(path) as journal:
        history = journal.history
        damaged = tuple(history.damaged)
        if history.run is None or not history.open:
            return Cleaned(0, damaged=damaged)
        values = history.run["target"] if config is None else config.target
        plants = list(history.open)
        if "corpus" in values:
            for plant in plants:
                journal.append("removed", canary=plant.canary, deleted=False, confirmed=True)
            return Cleaned(len(plants), damaged=damaged)
        if "python" in values and config is None:
            raise OptionError(
                f"the journal names Python code, {clip(values.get('python'))}, which only a configuration may: "
                f"give it with --config"
            )
        wait, clock = Wait.read(history.run.get("wait") or {}, "wait"), clock or Clock()
        folder = Path() if config is None else config.folder
        target = build_target(values, hosts, folder=folder)
        remover = Remover(target, journal, Pace(RequestLimits(), clock), wait)
        remaining, end = list[tuple[str, str]](), clock.now() + wait.seconds
        for number, plant in enumerate(plants, 1):
            reason = remover.remove(plant, patience=max(0.0, end - clock.now()))
            if reason:
                remaining.append((plant.canary, reason))
            progress(number, len(plants), "cleaning")
        removed = sum(plant.confirmed for plant in plants)
        return Cleaned(removed, len(plants) - len(remaining) - removed, tuple(remaining), damaged)
