"""The screening of a scan on several processes, and the file of judged documents, which the next scan leaves out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from unpoison.defenses import load_defense
from unpoison.errors import InputError, UnpoisonError
from unpoison.utils.files import write_file
from unpoison.utils.processes import process_map

__all__ = ["Engine", "ScanQuestion", "read_seen", "screen_questions", "write_seen"]

CHUNK = 64
"""Questions per task of a worker process."""


@dataclass(frozen=True, slots=True)
class ScanQuestion:
    """A question and the units to screen for it.

    Attributes:
        text: The question.
        units: Numbers of the units; the first is the one that the question was made from.
    """

    text: str
    units: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Engine:
    """The defense of a scan and its workers.

    Attributes:
        defense: The option string of the defense.
        workers: Number of processes; None for one per processor.
    """

    defense: str = "guard:prompt_injection=keep"
    workers: int | None = None


Rows = list[tuple[str, list[str]]]


def screen_questions(
    questions: Iterable[ScanQuestion], texts: Sequence[str], engine: Engine, progress: Callable[[int], None]
) -> Iterator[list[float]]:
    """The probabilities of poison of each question's units, in order; an empty list if screening failed.

    The result does not depend on the number of workers.

    Raises:
        WorkerError: A worker died.
        OptionError: The defense cannot be created.
    """
    _defense(engine.defense)  # reports errors before a process starts
    workers, remaining = engine.workers or os.cpu_count() or 1, iter(questions)
    rows = iter(lambda: [(one.text, [texts[i] for i in one.units]) for one in islice(remaining, CHUNK)], [])
    first = list(islice(rows, 2))
    every = chain(first, rows)
    here = workers == 1 or len(first) < 2  # starting a process takes longer than a few questions
    work = (
        (_screen(engine.defense, some) for some in every)
        if here
        else process_map(partial(_screen, engine.defense), every, workers)
    )
    for probabilities in work:
        progress(len(probabilities))
        yield from probabilities


def _screen(defense: str, rows: Rows) -> list[list[float]]:
    """The probabilities of each row, rounded."""
    return [_probabilities(_defense(defense), query, passages) for query, passages in rows]


def _probabilities(defense: Any, query: str, passages: list[str]) -> list[float]:
    try:
        return [round(1.0 - verdict.score, 6) for verdict in defense.screen(query, passages).verdicts]
    except UnpoisonError:
        return []


@cache
def _defense(spec: str) -> Any:
    return load_defense(spec)


FORMAT = 1
"""Version of the file of judged documents."""


def read_seen(path: Path) -> frozenset[str]:
    """Keys of the documents that earlier scans judged; none if the file is missing.

    Raises:
        InputError: The file is damaged, or of another version.
    """
    if not path.exists():
        return frozenset()
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        keys = held["keys"]
        right = held["format"] == FORMAT and all(isinstance(key, str) for key in keys)
    except (ValueError, KeyError, TypeError):
        right = False
    if not right:
        raise InputError(f"{path} is damaged or of another version; delete it to check everything again")
    return frozenset(keys)


def write_seen(path: Path, keys: Iterable[str]) -> None:
    """Write the file of `read_seen`, atomically.

    Raises:
        OSError: It cannot be written.
    """
    write_file(path, [json.dumps({"format": FORMAT, "keys": sorted(keys)}).encode()], mode=0o600)
