"""Moves documents between stores: first to a journal, then to the other store, then out of the first. Nothing is lost.

No document overwrites another one of the same name. A truncated last line of a journal, after an interrupted process,
is ignored: that move had not begun, or an earlier line has its beginning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unicodedata import normalize

from unpoison.errors import InputError, StoreError, clip
from unpoison.io.output import Journal, read_lines
from unpoison.scan.stores import Store

__all__ = ["earlier_moves", "move", "read_decisions"]

AT_ONCE = 100
"""Documents per batch; an interrupted move leaves at most one batch in both stores."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of moving documents.

    Attributes:
        moved: Ids that were moved.
        missing: Ids in neither store.
        before: Ids that were in the other store already.
    """

    moved: tuple[str, ...]
    missing: tuple[str, ...]
    before: tuple[str, ...]


def move(ids: Sequence[str], here: Store, there: Store, journal: Path) -> Moved:
    """Move documents from one store to another, with all their fields.

    Each document is written to the journal, then to `there`, and is removed from `here` only after it was read back
    from `there`. After an interruption, the same call resumes.

    Args:
        ids: Ids of the documents; repetitions count once.
        here: The store with the documents.
        there: The store to move them to.
        journal: A JSON Lines file with mode 600; the documents are appended.

    Raises:
        InputError: `there` cannot store these documents, or has others with their names.
        StoreError: A store cannot be reached, or did not keep a document; then nothing is removed.
        OSError: The journal cannot be written.
    """
    if here.shares_with(there):
        raise InputError(f"{here.name} is the same store; name another store to move the documents to")
    wanted = list(dict.fromkeys(ids))
    moved, before, missing = list[str](), list[str](), list[str]()
    for start in range(0, len(wanted), AT_ONCE):
        some = wanted[start : start + AT_ONCE]
        raw, absent = _fetch(some, here)
        already, gone = _fetch(absent, there)
        before += already
        missing += gone
        if raw:
            _check_free(raw, here, there, journal)
            _carry(raw, here, there, journal)
            moved += list(raw)
    return Moved(tuple(moved), tuple(missing), tuple(before))


def _fetch(names: Sequence[str], store: Store) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """The raw documents of a store with these names, and the names that it has not.

    Systems and editors write accents composed or decomposed: the name as it is written comes first.
    """
    forms = {name: [name, *(normalize(form, name) for form in ("NFC", "NFD"))] for name in names}
    held = store.fetch(list(dict.fromkeys(form for some in forms.values() for form in some))) if names else {}
    found = {name: next((form for form in some if form in held), None) for name, some in forms.items()}
    return {form: held[form] for form in found.values() if form is not None}, [n for n in names if found[n] is None]


def _check_free(raw: Mapping[str, Mapping[str, Any]], here: Store, there: Store, journal: Path) -> None:
    """Refuse to overwrite another document; copies left by an interrupted move are allowed."""
    held = there.fetch(list(raw))
    others = [name for name, row in held.items() if _content(row) != _content(raw[name])]
    begun = _unfinished_moves(journal, {here.name, there.name}) if others else frozenset[str]()
    if taken := [name for name in others if name not in begun]:
        raise InputError(f"{there.name} has another document named {clip(taken[0])}, which would be lost; rename one")


def _content(row: Mapping[str, Any]) -> str:
    """A raw document without the time of its file, whose precision depends on the system."""
    return json.dumps({name: value for name, value in row.items() if name != "mtime"}, sort_keys=True, default=str)


def _unfinished_moves(journal: Path, pair: set[str]) -> frozenset[str]:
    """Ids whose last move between two stores was not completed."""
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
        raise StoreError(f"{there.name} did not keep {clip(lost[0])}; nothing was removed; {journal} has all")
    here.take(list(raw))
    _append(journal, [_entry("moved", here, there, name, None) for name in raw])


def earlier_moves(journal: Path, origin: Store, held: Store) -> list[str]:
    """Ids that were moved from `origin` to `held` and not back, by the journal, in order.

    Begun moves are included, because the process may have ended before their completion was recorded.

    Args:
        journal: The file.
        origin: The store that they were in.
        held: The store that they were moved to.

    Raises:
        InputError: The journal is missing or damaged.
    """
    if not journal.exists():
        raise InputError(f"there is no journal {journal}; name the journal of the move, or pass the ids")
    moved = dict[str, None]()
    for done, name, *pair in _entries(journal):
        if pair == [origin.name, held.name]:
            moved[name] = None
        elif done == "moved" and pair == [held.name, origin.name]:
            moved.pop(name, None)
    return list(moved)


def _entries(journal: Path) -> Iterator[tuple[str, str, str, str]]:
    """Action, id, origin and destination of every line; a truncated last line is skipped.

    Raises:
        InputError: A line is damaged.
    """
    for number, line in read_lines(journal):
        try:
            entry = json.loads(line)
            yield entry["done"], entry["id"], entry["from"], entry["to"]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{journal}:{number} is not a line of a journal; pass the ids instead") from None


def read_decisions(path: Path, decision: str = "quarantine") -> list[str]:
    """The ids with a decision, from decisions exported by the page of a scan.

    Raises:
        InputError: The file is not such an export.
        OSError: It cannot be read.
    """
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        rows = [(row["id"], row["decision"]) for row in held["decisions"]]
        right = held["format"] == "unpoison-decisions" and all(isinstance(name, str) for name, _ in rows)
    except (ValueError, KeyError, TypeError):
        right, rows = False, []
    if not right:
        raise InputError(f"{path} has no decisions; export them from the page of unpoison scan --html")
    return [name for name, choice in rows if choice == decision]


def _entry(done: str, here: Store, there: Store, name: str, document: dict[str, Any] | None) -> dict[str, Any]:
    time = datetime.now(UTC).isoformat(timespec="seconds")
    fields = {"time": time, "done": done, "from": here.name, "to": there.name, "id": name}
    return {**fields, "document": document} if document is not None else fields


def _append(journal: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with Journal(journal, private_file=True, default=str) as lines:
        lines.append(*rows, sync=True)
