"""Runs entries through the tasks, into one folder that a killed run goes on in, and writes a result file an entry.

A result file is what takes part in the leaderboard: `{"arena", "entry", "tracks", "digest", "absent", "made"}`. The
digest is over the tracks, so that two results are the same where it is; who made it, when, on what and with which
weights of a shipped reader stands apart.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

from unpoison import __version__
from unpoison.bench.arena import answers, at_rest, injection, screening
from unpoison.bench.arena.cases import Data
from unpoison.bench.arena.entries import Entry
from unpoison.bench.arena.tasks import VERSION, Task, Track, tasks_of
from unpoison.errors import InputError, ModelError, OptionError, UnpoisonError, clip
from unpoison.io.journal import Journal, read_rows, write_json
from unpoison.models.loading import weights_of

__all__ = ["SIZES", "Size", "Step", "digest", "read_result", "run_entry", "write_result"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Size:
    """How many cases of a task are measured.

    Attributes:
        name: `quick` or `whole`.
        screening: Questions of a task.
        searched: Questions of a task whose texts are searched for.
        answers: Questions.
        injection: Texts of each label.
        at_rest: Documents of a collection.
    """

    name: str
    screening: int
    searched: int
    answers: int
    injection: int
    at_rest: int


SIZES = {
    "quick": Size("quick", 6, 2, 8, 300, 1_000),
    "whole": Size("whole", 40, 10, 46, 5_000, 10_000),
}

Step = Callable[[int, int, str], None]
"""Told how many tasks are done, of how many, and which is next."""


def run_entry(
    entry: Entry,
    tracks: Sequence[Track],
    data: Data,
    folder: Path,
    size: Size,
    step: Step = lambda done, total, doing: None,
) -> Row:
    """Measure an entry on every task of these tracks that it takes part in.

    Tasks whose data are absent, or whose extras are not installed, are named in `absent` and count nowhere.

    Returns:
        The result, as `write_result` writes it.

    Raises:
        OptionError: The entry cannot be made.
        OSError: The folder cannot be written.
    """
    tasks = [task for track in tracks if track in entry.tracks for task in tasks_of(track)]
    path = folder / f"{entry.name}.jsonl"
    how = {name: getattr(entry, name) for name in ("defense", "encoder", "generator", "sources")}
    stamp = {"arena": VERSION, "size": size.name, "version": __version__, "weights": weights_of(entry.generator), **how}
    rows = (row for row in read_rows(path) if row.get("stamp") == stamp)
    done = {row["task"]: row for row in rows if "absent" not in row}  # data and extras may be here by now
    with Journal(path, exclusive=True) as journal:
        for number, task in enumerate(tasks):
            step(number, len(tasks), f"{entry.name}: {task.key}")
            if task.key not in done:
                row = {"stamp": stamp, "task": task.key, **_measure(task, entry, data, size)}
                journal.append(row)
                done[task.key] = row
    return _result(entry, tasks, done, size)


def _measure(task: Task, entry: Entry, data: Data, size: Size) -> Row:
    if not data.has(task.files):
        return {"absent": f"needs {', '.join(task.files)}; get them with: unpoison data get {' '.join(task.files)}"}
    try:
        if task.track == "screening":
            count = size.searched if task.name in screening.SEARCH else size.screening
            return screening.measure(task, entry, data, count)
        if task.track == "answers":
            return answers.measure(task, entry, data, size.answers)
        if task.track == "injection":
            return injection.measure(task, entry, data, size.injection)
        return at_rest.measure(task, entry.defense, data, size.at_rest)
    except (ModelError, OptionError, InputError) as error:
        return {"absent": str(error)}


def _result(entry: Entry, tasks: Sequence[Task], rows: Mapping[str, Row], size: Size) -> Row:
    summaries = {
        "screening": screening.summarise,
        "answers": answers.summarise,
        "injection": injection.summarise,
        "at-rest": at_rest.summarise,
    }
    measured = {key: row for key, row in rows.items() if "cases" in row}
    tracks = {}
    for track, summarise in summaries.items():
        own = [task for task in tasks if task.track == track and task.key in measured]
        if own:
            tracks[track] = _plain(summarise(measured, own))
    return {
        "arena": VERSION,
        "size": size.name,
        "entry": entry.to_dict(),
        "tracks": tracks,
        "digest": digest(tracks),
        "absent": {task.key: rows[task.key]["absent"] for task in tasks if "absent" in rows[task.key]},
        "made": {
            "version": __version__,
            "date": datetime.now(UTC).date().isoformat(),
            "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            "weights": weights_of(entry.generator),
        },
    }


def _plain(value: Any) -> Any:
    """The same with numbers rounded, so that the last bits of a processor are in no result."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return round(value, 6) if isinstance(value, float) else value


def digest(tracks: Mapping[str, Any]) -> str:
    """The SHA-256 of what was measured."""
    return sha256(json.dumps(tracks, sort_keys=True).encode()).hexdigest()


def write_result(result: Row, folder: Path) -> Path:
    """Write a result file, or nothing of it; its name is the entry's."""
    path = folder / f"{result['entry']['name']}.json"
    write_json(path, result)
    return path


MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading somebody's file may come to, where something else stands in it than should."""


def read_result(path: Path) -> Row:
    """Read a result file, which anybody may have written.

    Raises:
        InputError: It is no result of this version of the arena, or its numbers are not those of its digest.
    """
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        entry, tracks = Entry.from_dict(result["entry"]), result["tracks"]
        version, stated = result["arena"], result["digest"]
        _check_words(result)
        _check_shape(result["tracks"])
    except (OSError, *MALFORMED, UnpoisonError) as error:
        raise InputError(f"{clip(str(path), 200)} is no result of the arena: {clip(str(error))}") from None
    if version != VERSION:
        raise InputError(
            f"{clip(str(path), 200)} is of version {clip(version)} of the arena, this is {VERSION}; "
            f"run it again: unpoison arena run -d {entry.name}"
        )
    if digest(tracks) != stated:
        raise InputError(f"{clip(str(path), 200)}: its numbers are not those of its digest; write it with 'arena run'")
    return {**result, "entry": entry.to_dict()}  # with what older files leave out


def _check_words(result: Row) -> None:
    """Everything that a table shows beside numbers is a text.

    Raises:
        KeyError, TypeError, ValueError: Something is missing, or is none.
    """
    entry, made, absent = result["entry"], result["made"], result["absent"]
    texts = [result["size"], result["digest"], made["date"], *made.values(), *absent.values(), *entry["tracks"]]
    texts += [value for name, value in entry.items() if name != "tracks"]
    wrong = [value for value in texts if not isinstance(value, str)]
    if wrong or result["size"] not in SIZES:
        raise ValueError(f"{clip(repr((*wrong, result['size'])[0]))} stands where a text or a size of the arena should")


def _check_shape(tracks: Any) -> None:
    """Below `tracks` stand objects, a score in each, and in them shares, counts, thresholds and names of tasks.

    Raises:
        ValueError: Something else stands there.
    """
    if not isinstance(tracks, dict) or not all(isinstance(value, dict) for value in tracks.values()):
        raise ValueError("'tracks' must be an object with an object for each track")
    if not all(
        isinstance(own, dict) for value in tracks.values() for own in (value["score"], *value["score"].values())
    ):
        raise ValueError("'score' must be an object with an object for each table")
    tables = tracks.get("screening", {}).get("tables", {}).values()
    if not all(isinstance(cell, dict) for table in tables for cells in table.values() for cell in cells.values()):
        raise ValueError("'tables' of 'screening' must hold a row for each task, and in it an object for each number")
    for key, value in _leaves(tracks):
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
        if key == "where":
            right = value is None or isinstance(value, str)
        elif key in ("count", "threshold"):
            right = value is None or number
        else:
            right = value is None or (number and 0 <= value <= 1)
        if not right:
            raise ValueError(f"{clip(key)!r} is {clip(repr(value))}; shares lie between 0 and 1")


def _leaves(content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is no object, with its key; the parser bounds the depth."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _leaves(value)
        else:
            yield key, value


def read_results(folder: Path) -> list[Row]:
    """All result files of a folder, by name.

    Raises:
        InputError: One of them cannot be used.
    """
    return [read_result(path) for path in sorted(folder.glob("*.json"))]


def missing_files(tracks: Iterable[Track], data: Data) -> list[str]:
    """The evaluation files that these tracks read and that are not there."""
    wanted = {name for track in tracks for task in tasks_of(track) for name in task.files}
    return sorted(name for name in wanted if not data.has([name]))
