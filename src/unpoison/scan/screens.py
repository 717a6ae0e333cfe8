"""Every question put to the defense, ten units at a time: a batch like any other, on its engines, resumable."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from unpoison.batch.local import local, usual_workers
from unpoison.batch.parts import MAX_ROWS, Finished, Part, PartWork, Shards
from unpoison.batch.ray import on_ray
from unpoison.batch.screener import Screener
from unpoison.io.file_rows import json_line

__all__ = ["Engine", "ScanQuestion", "screen_questions"]


@dataclass(frozen=True, slots=True)
class ScanQuestion:
    """What is asked of which units.

    Attributes:
        text: The question.
        units: Their numbers, the one it was made from first.
    """

    text: str
    units: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Engine:
    """How the screening is done.

    Attributes:
        defense: The defense's option string.
        kind: `local`, processes of this machine, or `ray`.
        workers: Parts at the same time; None for what suits.
        folder: Where finished parts are kept until the scan is over; None keeps none.
    """

    defense: str = "guard:prompt_injection=keep"
    kind: Literal["local", "ray"] = "local"
    workers: int | None = None
    folder: Path | None = None


def screen_questions(
    questions: Iterable[ScanQuestion], texts: Sequence[str], engine: Engine, progress: Callable[[int], None]
) -> Iterator[list[float]]:
    """For every question the probability of poison of its units, in order; an empty list where screening failed.

    The same with any number of workers, on any engine: questions are independent of each other.

    Raises:
        WorkerError: A worker died; finished parts are kept.
        OptionError: The defense cannot be made.
    """
    work = PartWork(Screener(defense=engine.defense), results_only=True)
    shards = None if engine.folder is None else Shards(engine.folder)
    waiting, earlier = deque[tuple[str, int]](), deque[tuple[int, Finished]]()

    def parts() -> Iterator[Part]:
        for number, part in enumerate(_parts(questions, texts)):
            key = "" if shards is None else part.key(work.purpose)
            done = None if shards is None else shards.read(key)
            if done is not None:
                earlier.append((number, done))
            else:
                waiting.append((key, number))
                yield part

    def in_order() -> Iterator[Finished]:
        for content in _engine(work, parts(), engine):
            key, number = waiting.popleft()
            while earlier and earlier[0][0] < number:
                yield earlier.popleft()[1]
            done = _slim(Finished.from_bytes(content))
            if shards is not None and not done.transient:
                shards.save(key, done.to_bytes())
            yield done
        yield from (done for _, done in earlier)

    for done in in_order():
        progress(done.rows)
        yield from map(json.loads, done.lines.splitlines())


def _engine(work: PartWork, parts: Iterator[Part], engine: Engine) -> Iterator[bytes]:
    if engine.kind == "ray":
        return on_ray(work, parts, engine.workers)
    return local(work, parts, engine.workers or usual_workers(work.screener))


def _parts(questions: Iterable[ScanQuestion], texts: Sequence[str]) -> Iterator[Part]:
    """Questions as rows of a batch, each of which holds its texts."""
    remaining = iter(questions)
    while some := list(islice(remaining, MAX_ROWS)):
        rows = tuple(
            json_line({"query": question.text, "passages": [texts[i] for i in question.units]}) for question in some
        )
        yield Part(1, rows, arrow=False, rows=len(rows), position=0)


def _slim(done: Finished) -> Finished:
    """The probabilities alone: reasons for ten passages a question would be most of what is kept."""
    lines = b"".join(encode_list(_probabilities(line)) for line in done.lines.splitlines())
    return replace(done, lines=lines)


def encode_list(values: list[float]) -> bytes:
    return json.dumps(values).encode() + b"\n"


def _probabilities(line: bytes) -> list[float]:
    screening = json.loads(line).get("screening")
    return [] if screening is None else [round(1.0 - verdict["score"], 6) for verdict in screening["verdicts"]]
