"""Ask a target while some documents of its store are withheld; every step is on disk first, so a kill loses nothing.

A journal has one line for every step, and beside it lies the journal of the moves (`scan.quarantine`), which holds each
document that was moved whole. Whoever goes on with a journal is given the replies that it has, in their order, and
moves documents only when something new is asked.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, takewhile
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from unpoison.bench.incident.scope import is_cited
from unpoison.bench.incident.undo import moves_of, now
from unpoison.bench.redteam.config import Wait
from unpoison.bench.redteam.pace import Pace
from unpoison.bench.redteam.targets import Answered
from unpoison.errors import InputError, TargetError, UnpoisonError, clip
from unpoison.io.journal import Journal, read_rows
from unpoison.retrieval.store import Store
from unpoison.scan.quarantine import earlier_moves, move
from unpoison.scan.statements import MAX_REPLY

__all__ = ["BudgetError", "Experiment", "Reply"]

VERSION = 1
"""Of the journal's lines."""

NOT_SHOWN = ("asking", "asked", "placing", "suspects", "accomplices")
"""Events that are no steps of the timeline: there are many, or they are long."""


MAX_READ = 200_000
"""Characters of all passages of a reply, and of all its ids: each suspect is looked for in them."""

LONG = f"a reply of the system was longer than is read: {MAX_REPLY:,} characters of an answer, {MAX_READ:,} of passages"


class Asked(Protocol):
    """A system that is asked."""

    def ask(self, question: str) -> Answered | str: ...


class BudgetError(UnpoisonError):
    """The target was asked as often as it may be."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the target said while some documents were withheld.

    Attributes:
        withheld: Their ids, sorted.
        answered: What it said and read.
    """

    withheld: tuple[str, ...]
    answered: Answered


class Experiment:
    """A target, the store that it reads from, and the store where documents are withheld.

    Args:
        target: Is asked, one question at a time.
        store: What it reads.
        held: Where documents are meanwhile.
        path: The journal; one process at a time has it.
        identity: What is looked into: a journal of something else is refused.
        pace: How the target is called.
        wait: How long it may take to notice a change.
        budget: How often it may be asked, earlier runs of the journal included.
        mask: Takes secrets out of what the target says.

    Attributes:
        texts: The texts of documents that may be withheld, by id; by them a target is seen to read one still.
        expected: Ids of those that the target read for a question whenever nothing was withheld.
        asked: How often the target was asked.
        notes: Anything unusual.
    """

    def __init__(
        self,
        target: Asked,
        store: Store,
        held: Store,
        path: Path,
        identity: Mapping[str, Any],
        *,
        pace: Pace,
        wait: Wait,
        budget: int,
        mask: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self._target, self._store, self._held = target, store, held
        self._pace, self._wait, self._budget, self._mask = pace, wait, budget, mask
        self._moves = moves_of(path)
        self._lines = Journal(path, private_file=True, exclusive=True)
        self._path = path
        self.texts, self.expected = dict[str, str](), dict[str, frozenset[str]]()
        self.notes = list[str]()
        self._silent = False  # whether the target keeps to itself what it reads
        self._read_back = Counter[str]()
        self._withheld: frozenset[str] | None = None
        self._earlier: dict[tuple[str, tuple[str, ...]], deque[Answered]] = defaultdict(deque)
        try:
            self._resume(identity)
        except BaseException:
            self.close()
            raise

    def _resume(self, identity: Mapping[str, Any]) -> None:
        rows = read_rows(self._path)
        if self._path.stat().st_size and not (rows and rows[0].get("event") == "incident"):
            raise InputError(f"{self._path} is no journal of unpoison incident; name another file with --journal")
        if rows and any(rows[0].get(name) != value for name, value in identity.items()):
            other = next(name for name, value in identity.items() if rows[0].get(name) != value)
            raise InputError(f"{self._path} is of another incident ({other} differs); name another file with --journal")
        if any(row["event"] == "undone" for row in rows):
            raise InputError(f"{self._path} was undone; name another file with --journal to begin anew")
        self.asked = sum(row["event"] == "asking" for row in rows)
        for row in rows:
            if row["event"] == "asked" and row["settled"]:
                passages, ids = (None if row[name] is None else tuple(row[name]) for name in ("passages", "ids"))
                self._earlier[row["question"], tuple(row["withheld"])].append(Answered(row["answer"], passages, ids))
        self._rows = rows
        if not rows:
            self.record("incident", version=VERSION, **identity)

    def record(self, event: str, **fields: Any) -> None:
        """Write a step; it is on the disk when this returns.

        Raises:
            OSError: It could not be written.
        """
        row = {"event": event, "at": now(), **fields}
        self._lines.append(row, sync=True)
        self._rows.append(row)

    def once(self, event: str, work: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """What a step came to: as the journal has it, or done now and written there.

        Args:
            event: Its name; steps of one name come in one order in every run.
            work: Does it; gives what JSON can hold.
        """
        number = self._read_back[event]
        self._read_back[event] += 1
        before = [row for row in self._rows if row["event"] == event]
        if number < len(before):
            return before[number]
        fields = work()
        self.record(event, **fields)
        return fields

    @property
    def timeline(self) -> list[dict[str, Any]]:
        """Every step with its time, without replies."""
        return [row for row in self._rows if row["event"] not in NOT_SHOWN]

    def ask(self, question: str, withheld: Collection[str] = ()) -> Reply:
        """What the target says while exactly these documents are withheld.

        A reply that still reads one of them, or not yet one that was put back, is asked for again until `wait.seconds`
        have passed.

        Raises:
            BudgetError: It may not be asked any more.
            TargetError: It does not answer, or still reads what is withheld.
            StoreError, InputError: A document cannot be moved.
        """
        key = (question, tuple(sorted(withheld)))
        if queue := self._earlier[key]:
            return self._reply(key, queue.popleft())
        if self.asked >= self._budget:  # before a document is moved for nothing
            raise BudgetError(f"the budget of {self._budget:,} questions is used up; give a larger --budget to go on")
        if self.place(withheld) and self._silent:  # nobody sees when the change has arrived
            self._pace.sleep(self._wait.seconds, free=True)
        end = self._pace.clock.now() + self._wait.seconds
        answered, problem = Answered(""), ""
        for _ in self._pace.poll(self._wait, end, free=True):
            answered = self._send(question)
            problem = self._find_stale(question, answered, withheld)
            if not problem:
                break
            self._keep(key, answered, settled=False)
        if problem and self._reads_withheld(answered, withheld):
            raise TargetError(
                f"{problem}, {self._wait.seconds:g} s after it was withheld: it answers from a cache, from "
                "another store than --store, or from what it has loaded of it (docs/at-rest.md says which stores are "
                "loaded); nothing can be proven so"
            )
        if problem:
            self.notes.append(f"{problem}, {self._wait.seconds:g} s after it was put back")
        self._keep(key, answered, settled=True)
        return self._reply(key, answered)

    def _reply(self, key: tuple[str, tuple[str, ...]], answered: Answered) -> Reply:
        self._silent = answered.passages is None and answered.ids is None
        return Reply(key[1], answered)

    def place(self, withheld: Collection[str]) -> bool:
        """Withhold exactly these documents; whether anything had to be moved.

        Raises:
            StoreError, InputError: A document cannot be moved.
        """
        wanted = frozenset(withheld)
        if wanted == self._withheld:
            return False
        before = frozenset(earlier_moves(self._moves, self._store, self._held)) if self._moves.exists() else frozenset()
        if self._withheld is None and not before and not wanted:
            self._withheld = wanted
            return False
        self._withheld = None
        self.record("placing", withheld=sorted(wanted))
        missing = [*move(sorted(wanted), self._store, self._held, self._moves).missing]
        missing += move(sorted(before - wanted), self._held, self._store, self._moves).missing
        if missing:
            raise InputError(
                f"{clip(missing[0])} is neither in {self._store.name} nor in {self._held.name}: somebody else moves "
                f"documents; {self._moves} holds it whole"
            )
        self._withheld = wanted
        return True

    def _send(self, question: str) -> Answered:
        def send() -> Answered | str:
            if self.asked >= self._budget:
                raise BudgetError(f"the budget of {self._budget:,} questions is used up; give a larger --budget")
            self.asked += 1
            self.record("asking")
            return self._target.ask(question)

        reply = self._pace.call("ask", send, free=True)
        said = reply if isinstance(reply, Answered) else Answered(reply)
        cut = Answered(said.answer[:MAX_REPLY], _cut(said.passages), _cut(said.ids))
        parts = (said.answer, *(said.passages or ()), *(said.ids or ()))
        if sum(map(len, parts)) > sum(map(len, (cut.answer, *(cut.passages or ()), *(cut.ids or ())))):
            self.notes.append(LONG)
        passages = None if cut.passages is None else tuple(map(self._mask, cut.passages))
        return Answered(self._mask(cut.answer), passages, cut.ids)

    def _keep(self, key: tuple[str, tuple[str, ...]], reply: Answered, *, settled: bool) -> None:
        self.record(
            "asked",
            question=key[0],
            withheld=list(key[1]),
            answer=reply.answer,
            passages=reply.passages,
            ids=reply.ids,
            settled=settled,
        )

    def _find_stale(self, question: str, reply: Answered, withheld: Collection[str]) -> str:
        """Why the target does not know yet what is withheld; "" where it does, or does not say what it reads."""
        if reply.passages is None and reply.ids is None:
            return ""
        if name := self._reads_withheld(reply, withheld):
            return f"the target still reads {clip(name)}"
        back = sorted(self.expected.get(question, frozenset()) - set(withheld))
        missing = next((name for name in back if not is_cited(name, self.texts[name], reply)), "")
        return f"the target does not read {clip(missing)}" if missing else ""

    def _reads_withheld(self, reply: Answered, withheld: Collection[str]) -> str:
        """A withheld document that a reply reads; a passage that a copy in the store has is the copy's."""
        for name in sorted(set(withheld) & set(reply.ids or ())):
            return name
        present = [text for name, text in self.texts.items() if name not in withheld]
        for passage in reply.passages or ():
            one = Answered("", (passage,))
            if any(is_cited("", text, one) for text in present):
                continue
            for name in sorted(withheld):
                if name in self.texts and is_cited("", self.texts[name], one):
                    return name
        return ""

    def close(self) -> None:
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Where the work broke off, everything is put back first."""
        try:
            if error is not None and kind is not GeneratorExit:
                with suppress(UnpoisonError, OSError):  # the first error is the one to see; `undo` does the rest
                    self.place(())
        finally:
            self.close()


def _cut(texts: Sequence[str] | None) -> tuple[str, ...] | None:
    """The first texts, `MAX_READ` characters in all."""
    if texts is None:
        return None
    ends = accumulate(len(text) + 1 for text in texts)
    pairs = takewhile(lambda pair: pair[1] - len(pair[0]) <= MAX_READ, zip(texts, ends))
    return tuple(text[: MAX_READ - (end - len(text) - 1)] for text, end in pairs)
