"""Ask a running system while some documents of its store are withheld."""

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
    """A system that is asked."""

    def ask(self, question: str) -> TargetReply | str: ...


class Experiment:
    """A target, the store that it reads, and the store where documents are withheld.

    Every move is in the journal before it is done, each document whole. After a killed run, the next one with
    the same journal first puts back the withheld documents; `unpoison quarantine --restore` does so too.

    Args:
        target: Is asked, one question at a time.
        store: What it reads.
        held: Where documents are meanwhile.
        journal: Of the moves.
        pace: How the target is called.
        wait: How long it may take to notice a change.

    Attributes:
        texts: The texts of documents that may be withheld, by id; by them a target is seen to read one still.
        replies: All that the target said.
        notes: Anything unusual.
    """

    def __init__(self, target: Asked, store: Store, held: Store, journal: Path, *, pace: Pace, wait: Wait) -> None:
        self._target, self._store, self._held, self._journal = target, store, held, journal
        self._pace, self._wait = pace, wait
        self.texts = dict[str, str]()
        self.replies, self.notes = list[TargetReply](), list[str]()
        self._expected: frozenset[str] | None = None  # read whenever nothing is withheld
        self._withheld = frozenset[str]()
        if journal.exists():
            left = earlier_moves(journal, store, held, unfinished=True)
            if left:
                move(left, held, store, journal)
                self.notes.append(
                    f"an earlier run was interrupted; the documents that it withheld were put back: {len(left):,}"
                )
        self._record(STARTED)

    def ask(self, question: str, withheld: Collection[str]) -> str:
        """The target's reply while exactly these documents are withheld.

        A reply that still reads one of them, or not yet one that was put back, is asked for again until `wait.seconds`
        have passed.

        Raises:
            TargetError: It does not answer, or still reads a withheld document.
            StoreError, InputError: A document cannot be moved.
        """
        silent = bool(self.replies) and self.replies[-1].passages is None and self.replies[-1].ids is None
        if self.place(withheld) and silent:  # nobody sees when the change has arrived
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
                "from a cache, from another store than --store, or from what it has loaded of it; nothing can be "
                "proven so"
            )
        if missing:
            self.notes.append(f"the target does not read {clip(missing)}, which was put back")
        if not self._withheld and (answered.passages is not None or answered.ids is not None):
            read = frozenset(name for name in self.texts if self._reads(name, answered))
            self._expected = read if self._expected is None else self._expected & read
        self.replies.append(answered)
        return answered.answer[:MAX_REPLY]

    def _reads(self, name: str, reply: TargetReply) -> bool:
        """Whether a reply reads a document; a passage that a copy in the store has is the copy's."""
        if name in (reply.ids or ()):
            return True
        if reply.ids is not None:
            return False
        others = [text for other, text in self.texts.items() if other != name and other not in self._withheld]
        own = [text for text in reply.passages or () if not any(is_read("", one, (text,)) for one in others)]
        return name in self.texts and is_read("", self.texts[name], tuple(own))

    def place(self, withheld: Collection[str]) -> bool:
        """Withhold exactly these documents; whether anything had to be moved.

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
                f"documents; {self._journal} holds it whole"
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
            except (UnpoisonError, OSError):  # the first error is the one to see; the next run does the rest
                return
        self._record(FINISHED)

    def _record(self, done: str) -> None:
        time = datetime.now(UTC).isoformat(timespec="seconds")
        with Journal(self._journal, private_file=True) as lines:
            where = {"from": self._store.name, "to": self._held.name}
            lines.append({"time": time, "done": done, **where, "id": ""}, sync=True)


def is_read(name: str, text: str, passages: tuple[str, ...], ids: tuple[str, ...] = ()) -> bool:
    """Whether a target read a document, by its id or a passage of it."""
    return read_count(TargetReply("", passages, ids), (text,), ((name,),)) == 1
