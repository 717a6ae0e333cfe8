"""The screening of a scan on several processes, and its state.

The state is a folder with the keys of checked documents, so that the next scan can check only new ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any

from unpoison.defenses import load_defense
from unpoison.errors import InputError, UnpoisonError, clip
from unpoison.scan.documents import Document
from unpoison.utils.files import write_file
from unpoison.utils.processes import process_map

__all__ = ["Engine", "ScanQuestion", "State", "describe_source", "screen_questions", "usual_folder"]

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


SEEN = "judged.json"
FORMAT = 1
"""Version of the file."""


@dataclass(frozen=True, slots=True)
class State:
    """The state of one source.

    Attributes:
        folder: The folder, created by `open` with mode 700.
    """

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> State:
        """The state in a folder, which is created if missing.

        Raises:
            OSError: It cannot be created.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder)

    def judged_keys(self) -> frozenset[str]:
        """Keys of the documents that earlier scans checked.

        Raises:
            InputError: The file is damaged, or of another version.
        """
        path = self.folder / SEEN
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

    def finish(self, documents: Iterable[Document]) -> None:
        """Record the documents as checked, atomically.

        Raises:
            OSError: The folder cannot be written.
        """
        keys = sorted({document.key for document in documents} | self.judged_keys())
        write_file(self.folder / SEEN, [json.dumps({"format": FORMAT, "keys": keys}).encode()], mode=0o600)


def usual_folder(source: str, kind: str = "scan") -> Path:
    """Default location of a source's state: beside a file or folder, else in the working directory."""
    if source != "-" and Path(source).exists():
        path = Path(source)
        return path.resolve().with_name(f"{path.resolve().name}.{kind}")
    digest = blake2b(source.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Path(f"unpoison-{digest}.{kind}")  # the address may contain a password


def describe_source(source: str) -> str:
    """The name of a source in messages, without the password of an address."""
    scheme, mark, rest = source.partition("://")
    secret, at, host = rest.rpartition("@")
    return clip(f"{scheme}://{host}" if mark and at and secret else source, 120)
