"""The arena: a fixed, versioned set of tasks that every defense is measured on in the same way.

    from unpoison.bench.arena import ENTRIES, SIZES, Data, run_entry

    result = run_entry(ENTRIES[1], ["screening"], Data(lambda name: f"data/{name}.jsonl"), Path("runs"), SIZES["quick"])

Tasks stand in `tasks.py`, who takes part in `entries.py`, each track in a file of its own.
"""

from unpoison.bench.arena.cases import Data
from unpoison.bench.arena.entries import ENTRIES, Entry, entries_of
from unpoison.bench.arena.run import SIZES, missing_files, read_result, read_results, run_entry, write_result
from unpoison.bench.arena.tasks import TRACKS, VERSION, tasks_of

__all__ = [
    "ENTRIES",
    "SIZES",
    "TRACKS",
    "VERSION",
    "Data",
    "Entry",
    "entries_of",
    "missing_files",
    "read_result",
    "read_results",
    "run_entry",
    "tasks_of",
    "write_result",
]
