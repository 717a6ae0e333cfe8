"""Asks a running system while some documents of its store are withheld."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from unpoison.bench.redteam.config import Wait
from unpoison.bench.redteam.pace import Pace
from unpoison.bench.redteam.targets import TargetReply, read_count
from unpoison.errors import InputError, TargetError, UnpoisonError, clip
from unpoison.io.journal import Journal
from unpoison.retrieval.store import Store
from unpoison.scan.quarantine import FINISHED, STARTED, earlier_moves, move
from unpoison.scan.statements import MAX_REPLY

__all__ = ["Asked", "Experiment", "is_read"]


class Asked(Protocol):
    """A system that answers questions."""

    def ask(self, question: str) -> TargetReply | str: ...


class Experiment:
    """A target, its store, and the store for withheld documents.

    Every move is written to the journal before it is done, with the whole document. After an interrupted run, the next
    one with the same journal first restores the withheld documents; `unpoison quarantine --restore` does the same.

    Args:
        target: The system, asked one question at a time.
        store: The store that it reads.
        held: The store for withheld documents.
        journal: The file that records the moves.
        pace: Limits on calls to the target.
        wait: The time in which the target notices a change.

    Attributes:
        texts: Texts of the documents that may be withheld, by id, used to detect that the target still reads one.
        replies: All replies of the target.
        notes: Warnings.
    """

    def __init__(self, target: Asked, store: Store, held: Store, journal: Path, *, pace: Pace, wait: Wait) -> None:
        self._target, self._store, self._held, self._journal = target, store, held, journal
        self._pace, self._wait = pace, wait
        self.texts = dict[str, str]()
        self.replies, self.notes = list[TargetReply](), list[str]()
        self._expected: frozenset[str] | None = None  # the documents read with nothing withheld
        self._withheld = frozenset[str]()
        if journal.exists():
            left = earlier_moves(journal, store, held, unfinished=True)
            if left:
                move(left, held, store, journal)
                self.notes.append(f"an earlier run was interrupted; {len(left):,} withheld documents were restored")
        self._record(STARTED)

    def ask(self, question: str, withheld: Collection[str]) -> str:
        """The target's reply while exactly these documents are withheld.

        If the target still reads a withheld document, or does not read a restored one, the question is repeated for up
        to `wait.seconds`.

        Raises:
            TargetError: It does not answer, or still reads a withheld document.
            StoreError, InputError: A document cannot be moved.
        """
        silent = bool(self.replies) and self.replies[-1].passages is None and self.replies[-1].ids is None
        if self.place(withheld) and silent:  # replies do not show when the change has taken effect
            self._pace.sleep(self._wait.seconds, removing=True)
        end = self._pace.clock.now() + self._wait.seconds
        answered, still, missing = TargetReply(""), "", ""
        for _ in self._pace.poll(self._wait, end, removing=True):
            said = self._pace.call("ask", lambda: self._target.ask(question), removing=True)
            answered = said if isinstance(said, TargetReply) else TargetReply(said)
            still = next((name for name in sorted(self._withheld) if self._reads(name, answered)), "")
            back = (self._expected or frozenset()) - self._withheld
            missing = next((name for name in sorted(back) if not self._reads(name, answered)), "")
            if not still and not missing:
                break
        if still:
            raise TargetError(
                f"the target still reads {clip(still)}, {self._wait.seconds:g} s after it was withheld: it answers "
                "from a cache, or from another store than --store; nothing can be proven"
            )
        if missing:
            self.notes.append(f"the target does not read {clip(missing)}, which was restored")
        if not self._withheld and (answered.passages is not None or answered.ids is not None):
            read = frozenset(name for name in self.texts if self._reads(name, answered))
            self._expected = read if self._expected is None else self._expected & read
        self.replies.append(answered)
        return answered.answer[:MAX_REPLY]

    def _reads(self, name: str, reply: TargetReply) -> bool:
        """Whether a reply is based on a document; a passage of an unwithheld copy belongs to the copy."""
        if name in (reply.ids or ()):
            return True
        if reply.ids is not None:
            return False
        others = [text for other, text in self.texts.items() if other != name and other not in self._withheld]
        own = [text for text in reply.passages or () if not any(is_read("", one, (text,)) for one in others)]
        return name in self.texts and is_read("", self.texts[name], tuple(own))

    def place(self, withheld: Collection[str]) -> bool:
        """Withhold exactly these documents; return whether any was moved.

        Raises:
            StoreError, InputError: A document cannot be moved.
        """
        wanted = frozenset(withheld)
        if wanted == self._withheld:
            return False
        missing = [
            *move(sorted(wanted - self._withheld), self._store, self._held, self._journal).missing,
            *move(sorted(self._withheld - wanted), self._held, self._store, self._journal).missing,
        ]
        if missing:
            raise InputError(
                f"{clip(missing[0])} is neither in {self._store.name} nor in {self._held.name}: another process moves "
                f"documents; {self._journal} contains it"
            )
        self._withheld = wanted
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """After an error, restores everything; otherwise the withheld documents stay, and the journal records it."""
        if error is not None:
            try:
                left = earlier_moves(self._journal, self._store, self._held, unfinished=True)
                move(left, self._held, self._store, self._journal)
            except (UnpoisonError, OSError):  # report the first error; the next run restores
                return
        self._record(FINISHED)

    def _record(self, done: str) -> None:
        time = datetime.now(UTC).isoformat(timespec="seconds")
        with Journal(self._journal, private_file=True) as lines:
            where = {"from": self._store.name, "to": self._held.name}
            lines.append({"time": time, "done": done, **where, "id": ""}, sync=True)


def is_read(name: str, text: str, passages: tuple[str, ...], ids: tuple[str, ...] = ()) -> bool:
    """Whether a target read a document, by its id or a passage."""
    return read_count(TargetReply("", passages, ids), (text,), ((name,),)) == 1
