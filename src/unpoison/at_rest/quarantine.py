"""Documents moved out of the way, and back: written in a journal, then there, then gone here. Nothing is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unpoison.at_rest.stores import Store
from unpoison.errors import InputError, StoreError, shown
from unpoison.private import private

__all__ = ["Moved", "decided", "move", "moved_before"]

AT_ONCE = 100
"""Documents that are moved together; a move that is broken off leaves at most so many in both stores."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of the documents that were to be moved.

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
        InputError: `there` cannot take these documents.
        StoreError: A store cannot be reached, or did not keep what it was given; then nothing was taken out.
        OSError: The journal cannot be written.
    """
    if here.name == there.name:
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
            _carry(raw, here, there, journal)
            moved += list(raw)
    return Moved(tuple(moved), tuple(missing), tuple(before))


def _carry(raw: Mapping[str, Mapping[str, Any]], here: Store, there: Store, journal: Path) -> None:
    _append(journal, [_entry("move", here, there, name, dict(row)) for name, row in raw.items()])
    there.put(raw)
    arrived = there.fetch(list(raw))
    lost = [name for name in raw if name not in arrived]
    if lost:
        raise StoreError(
            f"{there.name} did not keep {shown(lost[0])}; nothing was taken out of {here.name}, and {journal} holds all"
        )
    here.take(list(raw))
    _append(journal, [_entry("moved", here, there, name, None) for name in raw])


def moved_before(journal: Path, origin: Store, held: Store) -> list[str]:
    """Ids that the journal says were moved from `origin` to `held` and not back, in their order.

    Raises:
        InputError: There is no journal, or it is damaged.
    """
    if not journal.exists():
        raise InputError(f"there is no journal {journal}; name the one that the move was written to, or give the ids")
    moved = dict[str, None]()
    for number, line in enumerate(journal.read_text(encoding="utf-8").splitlines(), 1):
        try:
            entry = json.loads(line)
            done, name, pair = entry["done"], entry["id"], (entry["from"], entry["to"])
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{journal}:{number} is no line of a journal; give the ids instead") from None
        if done == "moved" and pair == (origin.name, held.name):
            moved[name] = None
        elif done == "moved" and pair == (held.name, origin.name):
            moved.pop(name, None)
    return list(moved)


def decided(path: Path, decision: str = "quarantine") -> list[str]:
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
    return [name for name, said in rows if said == decision]


def _entry(done: str, here: Store, there: Store, name: str, document: dict[str, Any] | None) -> str:
    time = datetime.now(UTC).isoformat(timespec="seconds")
    fields = {"time": time, "done": done, "from": here.name, "to": there.name, "id": name}
    return json.dumps({**fields, "document": document} if document is not None else fields, default=str) + "\n"


def _append(journal: Path, lines: list[str]) -> None:
    private(journal)
    with journal.open("a", encoding="utf-8") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
