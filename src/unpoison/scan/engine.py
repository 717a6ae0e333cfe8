"""The screening of a scan on several processes, and the file of judged documents, which the next scan leaves out."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from unpoison import __version__
from unpoison.defenses import load_defense
from unpoison.defenses.guard.crafted import invention_odds
from unpoison.defenses.guard.guard import Guard
from unpoison.errors import InputError, UnpoisonError
from unpoison.injections import Injection, detect_all, unjudged
from unpoison.injections.imperatives import Imperative
from unpoison.io.output import Journal, each_row
from unpoison.scan.documents import Unit
from unpoison.scan.signs import Strengths, details, strengths
from unpoison.utils.files import Spilled, write_file
from unpoison.utils.processes import process_map

__all__ = [
    "Engine", "ScanQuestion", "UnitScores", "UnitTask", "read_seen", "score_units", "screen_questions", "write_seen",
]  # fmt: skip

T = TypeVar("T")
S = TypeVar("S")

CHUNK = 64
"""Units or questions per task of a worker process."""


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
        progress: A file, created with mode 600, to which the scores of each unit are written, so that a scan that was
            killed can be resumed; None for none.
    """

    defense: str = "guard:prompt_injection=keep"
    workers: int | None = None
    progress: Path | None = None


class UnitTask(NamedTuple):
    """A unit to score.

    Attributes:
        unit: The unit.
        question: The question generated from it; None if its claims are not judged.
        counted: Whether injections and imperatives are looked for in it.
    """

    unit: Unit
    question: str | None
    counted: bool


class UnitScores(NamedTuple):
    """The scores of one unit on its own, without its neighbours.

    Attributes:
        alone: The probability of poison by the defense, from the unit alone; nan if the defense cannot judge one alone.
        style: Its `invention_odds`; nan without a question.
        details: Its `details`.
        injection: The likeliest injection; if that is unlikely, its probability only.
        strengths: Its `strengths`.
    """

    alone: float
    style: float
    details: float
    injection: Injection
    strengths: Strengths


def score_units(units: Iterable[UnitTask], engine: Engine, progress: Callable[[int], None]) -> Iterator[UnitScores]:
    """Score each unit on its own, in the order of the units; the result does not depend on the number of workers.

    Raises:
        WorkerError: A worker died.
        OptionError: The defense cannot be created.
    """
    _defense(engine.defense)  # reports errors before a process starts
    work = partial(_score_chunk, engine.defense)
    if engine.progress is None:
        yield from _over_processes(work, units, engine, progress)
        return
    scores, places, waiting = Spilled[UnitScores](), dict[str, int](), deque[str]()
    for row in each_row(engine.progress):
        if row.keys() == {"key", "look"}:
            places[row["key"]] = len(scores)
            scores.append(_scores_of(row["look"]))

    def known() -> Iterator[UnitScores]:
        """The scores from a killed scan that come before the next new one."""
        while waiting and waiting[0] in places:
            progress(1)
            yield scores[places[waiting.popleft()]]

    def new() -> Iterator[UnitTask]:
        for one in units:
            waiting.append(_key(one, engine.defense))
            if waiting[-1] not in places:
                yield one

    with Journal(engine.progress, private_file=True, exclusive=True) as journal:
        for found in _over_processes(work, new(), engine, progress):
            yield from known()
            journal.append({"key": waiting.popleft(), "look": found})
            yield found
        yield from known()


def _key(one: UnitTask, defense: str) -> str:
    """A hash of all that the scores of a unit depend on."""
    unit = one.unit
    said = (__version__, unjudged(), defense, unit.text, unit.body, unit.title, one.question, one.counted)
    return blake2b(repr(said).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _scores_of(row: Sequence[Any]) -> UnitScores:
    """Scores as read from JSON."""
    alone, style, counts, injection, strength = row
    strongest = {form: (odds, one and Imperative(*one)) for form, (odds, one) in strength.items()}
    return UnitScores(alone, style, counts, Injection(*injection), strongest)


def _score_chunk(defense: str, some: Sequence[UnitTask]) -> list[UnitScores]:
    texts = [one.unit.text for one in some]
    found = iter(detect_all([text for one, text in zip(some, texts) if one.counted]))
    injections = [next(found).worst if one.counted else Injection(0.0, "") for one in some]
    strength = [strengths(one.unit, worst) if one.counted else {} for one, worst in zip(some, injections)]
    judged = {i: one.question for i, one in enumerate(some) if one.question is not None}
    alone, style = np.full((2, len(some)), np.nan)
    style[list(judged)] = invention_odds([texts[i] for i in judged])
    guard = _defense(defense)
    if isinstance(guard, Guard):
        alone[list(judged)] = guard.checks.score_alone(list(judged.values()), [texts[i] for i in judged])
    counts = [details(one.unit.body) for one in some]
    return list(map(UnitScores, alone.tolist(), style.tolist(), counts, injections, strength))


def _over_processes(
    work: Callable[[list[S]], list[T]], items: Iterable[S], engine: Engine, progress: Callable[[int], None]
) -> Iterator[T]:
    """The results for items, `CHUNK` at a time; the progress is called with how many are done."""
    workers, remaining = engine.workers or os.cpu_count() or 1, iter(items)
    chunks = iter(lambda: list(islice(remaining, CHUNK)), [])
    first = list(islice(chunks, 2))
    every = chain(first, chunks)
    here = workers == 1 or len(first) < 2  # starting a process takes longer than a few units
    for results in map(work, every) if here else process_map(work, every, workers):
        progress(len(results))
        yield from results


def screen_questions(
    questions: Iterable[ScanQuestion], units: Sequence[Unit], engine: Engine, progress: Callable[[int], None]
) -> Iterator[list[float]]:
    """The probabilities of poison of each question's units, in order; an empty list if screening failed.

    The result does not depend on the number of workers.

    Raises:
        WorkerError: A worker died.
        OptionError: The defense cannot be created.
    """
    _defense(engine.defense)  # reports errors before a process starts
    rows = ((one.text, [units[i].text for i in one.units]) for one in questions)
    yield from _over_processes(partial(_screen, engine.defense), rows, engine, progress)


def _screen(defense: str, rows: list[tuple[str, list[str]]]) -> list[list[float]]:
    """The probabilities of each row, rounded."""
    return [_probabilities(_defense(defense), query, passages) for query, passages in rows]


def _probabilities(defense: Any, query: str, passages: list[str]) -> list[float]:
    try:
        return [round(1.0 - verdict.score, 6) for verdict in defense.screen(query, passages).verdicts]
    except UnpoisonError:
        return []


_defense = cache(load_defense)


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
