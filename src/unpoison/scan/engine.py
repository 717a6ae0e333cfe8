"""The engine of a scan: every question is put to the defense with ten units at a time, a batch like any other.

What is finished is kept in the state's folder, so that a scan goes on where it was broken off and the next one judges
only what is new.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Literal

from unpoison.batch.local import local, usual_workers
from unpoison.batch.parts import MAX_ROWS, Finished, Part, PartWork, Shards
from unpoison.batch.ray import on_ray
from unpoison.batch.screener import Screener
from unpoison.errors import InputError, clip
from unpoison.io.file_rows import json_line
from unpoison.scan.documents import Document

__all__ = ["Engine", "ScanQuestion", "State", "screen_questions", "usual_folder"]


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
    work = PartWork(Screener(defense=engine.defense, scores_only=True), results_only=True)
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
    """The probabilities, rounded, a list for each question."""
    lines = b"".join(encode_list(_probabilities(line)) for line in done.lines.splitlines())
    return replace(done, lines=lines)


def encode_list(values: list[float]) -> bytes:
    return json.dumps(values).encode() + b"\n"


def _probabilities(line: bytes) -> list[float]:
    return [round(1.0 - score, 6) for score in json.loads(line).get("scores", ())]


SEEN = "judged.json"
FORMAT = 1
"""Of the file; another version's is judged anew."""


@dataclass(frozen=True, slots=True)
class State:
    """A folder that belongs to one source.

    Attributes:
        folder: Made by `open`, for its owner alone.
    """

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> State:
        """The state in a folder, which is made where there is none.

        Raises:
            OSError: It cannot be made.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder)

    @property
    def parts(self) -> Path:
        """Where parts of an unfinished scan lie."""
        return self.folder / "parts"

    def judged_keys(self) -> frozenset[str]:
        """Keys of the documents that earlier scans judged.

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
            raise InputError(f"{path} is damaged or of another version; delete it, and everything is judged anew")
        return frozenset(keys)

    def finish(self, documents: Iterable[Document]) -> None:
        """Remember the documents as judged, in one step, and forget the parts.

        Raises:
            OSError: The folder cannot be written.
        """
        draft = self.folder / f"{SEEN}.{os.getpid()}.draft"
        keys = sorted({document.key for document in documents} | self.judged_keys())
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, "keys": keys}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.folder / SEEN)
        if self.parts.exists():
            Shards(self.parts).clear()


def usual_folder(source: str, kind: str = "scan") -> Path:
    """Where the state of a source is kept if nobody says: beside a file or folder, else in the working directory."""
    if source != "-" and Path(source).exists():
        path = Path(source)
        return path.resolve().with_name(f"{path.resolve().name}.{kind}")
    digest = blake2b(source.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Path(f"unpoison-{digest}.{kind}")  # never the address itself, which may hold a password


def is_unfinished(state: State) -> bool:
    """Whether an earlier scan was broken off."""
    return state.parts.exists() and any(state.parts.iterdir())


def describe_source(source: str) -> str:
    """A source as messages name it, without the password of an address."""
    scheme, mark, rest = source.partition("://")
    secret, at, host = rest.rpartition("@")
    return clip(f"{scheme}://{host}" if mark and at and secret else source, 120)
