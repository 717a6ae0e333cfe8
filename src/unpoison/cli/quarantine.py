"""`unpoison quarantine`: move documents out of an index, and back.

Examples:
  unpoison quarantine documents.jsonl quarantine.jsonl --decisions decisions.json
  unpoison quarantine 'qdrant:http://localhost:6333#docs' 'qdrant:http://localhost:6333#held' --id a17 --id b3
  unpoison quarantine documents.jsonl quarantine.jsonl --restore

Exit status: 0 when all were moved, 1 when some are in neither store, 2 when nothing could be done.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.common import say
from unpoison.cli.options import argument, option
from unpoison.errors import OptionError
from unpoison.scan.quarantine import earlier_moves, move, read_decisions
from unpoison.scan.stores import open_store
from unpoison.utils.plain_text import count_noun


def quarantine(
    store: Annotated[str, argument("STORE", "The store with the documents, as for unpoison scan.")],
    quarantine_store: Annotated[str, argument("QUARANTINE", "A store of the same kind; created if missing.")],
    ids: Annotated[list[str] | None, option("--id ID", "A document; may be repeated.")] = None,
    decisions: Annotated[
        Path | None, option("FILE", "The decisions exported from the page of unpoison scan --html.")
    ] = None,
    restore: Annotated[bool, option("--restore", "Move back the documents of --id, or all in the journal.")] = False,
    journal: Annotated[Path, option("FILE", "Records every move, with the whole document.")] = Path(
        "quarantine-journal.jsonl"
    ),
) -> None:
    """Move documents between two collections, reversibly. Nothing is ever deleted.

    A document leaves STORE only after it was read back from QUARANTINE; the journal holds the whole document.
    """
    with open_store(store) as index, open_store(quarantine_store, new=not restore) as held:
        here, there = (held, index) if restore else (index, held)
        named = [*(ids or []), *(read_decisions(decisions) if decisions is not None else [])]
        if not named and restore:
            named = earlier_moves(journal, index, held)
        if not named:
            raise OptionError("no documents are named; give --id, or --decisions with some in quarantine")
        moved = move(named, here, there, journal)
        for name in moved.missing:
            say(f"{name}: in neither store")
        again = f"; {count_noun(len(moved.before), 'document')} had been moved before" if moved.before else ""
        say(f"moved {count_noun(len(moved.moved), 'document')} from {here.name} to {there.name}{again}; see {journal}")
    raise typer.Exit(1 if moved.missing else 0)
