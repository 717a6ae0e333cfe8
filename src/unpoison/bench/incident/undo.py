"""Put back what an incident has withheld, by its journal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from unpoison.errors import InputError, clip
from unpoison.io.journal import Journal, read_rows
from unpoison.scan.quarantine import earlier_moves, move
from unpoison.scan.stores import open_store

__all__ = ["moves_of", "now", "undo"]


def moves_of(journal: Path) -> Path:
    """Where the moves of an incident are written: each document whole."""
    return journal.with_name(f"{journal.name}.moves")


def undo(journal: Path, *, store: str | None = None, quarantine: str | None = None) -> list[str]:
    """Put back everything that an incident has withheld; may be interrupted and repeated.

    Args:
        journal: Of the incident.
        store: Where the documents belong; needed only where its name holds a password, which no journal has.
        quarantine: Where they are; the same.

    Returns:
        The ids of the documents that were put back.

    Raises:
        InputError: No journal of an incident, or a document is in neither store.
        StoreError: A store cannot be reached.
    """
    rows = read_rows(journal)
    if not rows or rows[0].get("event") != "incident":
        raise InputError(f"{journal} is no journal of unpoison incident; name the one that it wrote")
    sources = [given or rows[0].get(name) for name, given in (("store", store), ("quarantine", quarantine))]
    if None in sources:
        raise InputError(f"{journal} does not hold the stores, whose names have a password; give --store, --quarantine")
    with Journal(journal, private_file=True, exclusive=True) as lines:
        names = list[str]()
        if moves_of(journal).exists():
            with open_store(str(sources[0])) as index, open_store(str(sources[1]), new=True) as held:
                names = earlier_moves(moves_of(journal), index, held)
                moved = move(names, held, index, moves_of(journal))
            if moved.missing:
                raise InputError(f"{clip(moved.missing[0])} is in neither store; {moves_of(journal)} holds it whole")
            names = list(moved.moved)
        lines.append({"event": "undone", "at": now(), "documents": names}, sync=True)
    return names


def now() -> str:
    """The time, as the journal has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
