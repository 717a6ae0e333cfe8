"""Documents moved out of the way, and back: written in a journal, then there, then gone here. Nothing is lost.

No document is written over another one of its name, and a journal whose last line was broken off by the end of the
process goes on behind the line before: what that line spoke of had not begun, or was written down when it began.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unpoison.errors import InputError, StoreError, clip
from unpoison.io.journal import Journal, read_lines
from unpoison.scan.stores import Store

STARTED, FINISHED = "started", "finished"
"""What a journal says where an incident begins to withhold documents, and where it has ended: what is moved stays."""

__all__ = ["FINISHED", "STARTED", "Moved", "earlier_moves", "move", "read_decisions"]

AT_ONCE = 100
"""Documents that are moved together; a move that is broken off leaves at most so many in both stores."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of moving documents.

    Attributes:
        moved: Ids that are there now and no longer here.
        missing: Ids that are in neither store.
        before: Ids that were there already.
    """

    moved: tuple[str, ...]
    missing: tuple[str, ...]
    before: tuple[str, ...]


def move(ids: Sequence[str], here: Store, there: Store, journal: Path) -> Moved:
    """Move documents from one store to another, with everything the store holds of them.

    Each document is written whole into the journal, then into `there`; it is taken out of `here` only when it was read
    back from `there`. Broken off at any point, the same call goes on: what is in both stores is taken out here.

    Args:
        ids: Which; repetitions count once.
        here: Where they are.
        there: Where they shall be.
        journal: A JSON Lines file for its owner alone; it is appended to, and holds the documents.

    Raises:
        InputError: `there` cannot take these documents, or holds others under their names.
        StoreError: A store cannot be reached, or did not keep what it was given; then nothing was taken out.
        OSError: The journal cannot be written.
    """
    if here.shares_with(there):
        raise InputError(f"{here.name} is where the documents are; name another store to move them to")
    wanted = list(dict.fromkeys(ids))
    moved, before, missing = list[str](), list[str](), list[str]()
    for start in range(0, len(wanted), AT_ONCE):
        some = wanted[start : start + AT_ONCE]
        raw = here.fetch(some)
        absent = [name for name in some if name not in raw]
        already = there.fetch(absent) if absent else {}
        before += [name for name in absent if name in already]
        missing += [name for name in absent if name not in already]
        if raw:
            _check_free(raw, here, there, journal)
            _carry(raw, here, there, journal)
            moved += list(raw)
    return Moved(tuple(moved), tuple(missing), tuple(before))


def _check_free(raw: Mapping[str, Mapping[str, Any]], here: Store, there: Store, journal: Path) -> None:
    """Refuse to write over a document that is not the same one, or a copy that a move broken off has left."""
    held = there.fetch(list(raw))
    others = [name for name, row in held.items() if _content(row) != _content(raw[name])]
    begun = _unfinished_moves(journal, {here.name, there.name}) if others else frozenset[str]()
    if taken := [name for name in others if name not in begun]:
        raise InputError(
            f"{there.name} holds another document named {clip(taken[0])}, which would be lost; rename one of them"
        )


def _content(row: Mapping[str, Any]) -> str:
    """A raw document without the time of its file, which no two systems keep alike."""
    return json.dumps({name: value for name, value in row.items() if name != "mtime"}, sort_keys=True, default=str)


def _unfinished_moves(journal: Path, pair: set[str]) -> frozenset[str]:
    """Ids whose last move between two stores began and did not end."""
    begun = set[str]()
    for done, name, origin, goal in _entries(journal) if journal.exists() else ():
        if {origin, goal} == pair:
            (begun.add if done == "move" else begun.discard)(name)
    return frozenset(begun)


def _carry(raw: Mapping[str, Mapping[str, Any]], here: Store, there: Store, journal: Path) -> None:
    _append(journal, [_entry("move", here, there, name, dict(row)) for name, row in raw.items()])
    there.put(raw)
    arrived = there.fetch(list(raw))
    lost = [name for name in raw if name not in arrived]
    if lost:
        raise StoreError(
            f"{there.name} did not keep {clip(lost[0])}; nothing was taken out of {here.name}, and {journal} holds all"
        )
    here.take(list(raw))
    _append(journal, [_entry("moved", here, there, name, None) for name in raw])


def earlier_moves(journal: Path, origin: Store, held: Store, *, unfinished: bool = False) -> list[str]:
    """Ids that the journal says were moved from `origin` to `held` and not back, in their order.

    Those whose move was begun are among them: the process may have ended before the journal could say more.

    Args:
        journal: The file.
        origin: Where they were.
        held: Where they are.
        unfinished: Only those of an incident that was broken off.

    Raises:
        InputError: There is no journal, or it is damaged.
    """
    if not journal.exists():
        raise InputError(f"there is no journal {journal}; name the one that the move was written to, or give the ids")
    moved, open_run = dict[str, None](), False
    for done, name, *pair in _entries(journal):
        if done in (STARTED, FINISHED):
            open_run = done == STARTED
            if unfinished:
                moved.clear()
        elif pair == [origin.name, held.name]:
            moved[name] = None
        elif done == "moved" and pair == [held.name, origin.name]:
            moved.pop(name, None)
    return list(moved) if open_run or not unfinished else []


def _entries(journal: Path) -> Iterator[tuple[str, str, str, str]]:
    """What was done, id, from and to of every line; a last line that was broken off is left out.

    Raises:
        InputError: A line is damaged.
    """
    for number, line in read_lines(journal):
        try:
            entry = json.loads(line)
            yield entry["done"], entry["id"], entry["from"], entry["to"]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{journal}:{number} is no line of a journal; give the ids instead") from None


def read_decisions(path: Path, decision: str = "quarantine") -> list[str]:
    """The ids that a page's exported decisions name.

    Raises:
        InputError: It is no export.
        OSError: It cannot be read.
    """
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        rows = [(row["id"], row["decision"]) for row in held["decisions"]]
        right = held["format"] == "unpoison-decisions" and all(isinstance(name, str) for name, _ in rows)
    except (ValueError, KeyError, TypeError):
        right, rows = False, []
    if not right:
        raise InputError(f"{path} holds no decisions; export them from the page that unpoison scan --html writes")
    return [name for name, choice in rows if choice == decision]


def _entry(done: str, here: Store, there: Store, name: str, document: dict[str, Any] | None) -> dict[str, Any]:
    time = datetime.now(UTC).isoformat(timespec="seconds")
    fields = {"time": time, "done": done, "from": here.name, "to": there.name, "id": name}
    return {**fields, "document": document} if document is not None else fields


def _append(journal: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with Journal(journal, private_file=True, default=str) as lines:
        lines.append(*rows, sync=True)
