"""Screens a whole file: in parts, on an engine, resumable, in order."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from unpoison.batch.parts import MAX_ROWS, Finished, Part, PartWork, Shards, cut
from unpoison.batch.ray import on_ray
from unpoison.batch.screener import BatchScreener
from unpoison.core import registry
from unpoison.errors import InputError, OptionError
from unpoison.io.file_rows import Source
from unpoison.io.files import open_source
from unpoison.io.output import check_rows_name, not_the_input
from unpoison.utils.checks import among, at_least
from unpoison.utils.processes import process_map
from unpoison.utils.threads import parallel_map

__all__ = ["Progress", "run", "usual_workers", "waits"]

ENGINES = ("local", "ray")

REMOTE = ("openai", "anthropic")
BUILT_IN = ("lexical", "extractive")

REMOTE_WORKERS = 8
"""Rows in flight for remote models."""

ASKING_ROWS = 8
"""Rows of a part with model calls, so that an interruption loses few paid calls."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress after one part of a batch.

    Attributes:
        source: What messages call the input.
        finished: Its rows and failures.
        position: Position in the input, in the unit of `size`.
        size: Length of the input, in bytes or rows; None if unknown.
        resumed: Whether an earlier run had finished the part.
    """

    source: str
    finished: Finished
    position: int
    size: int | None
    resumed: bool = False


def run(
    source: str,
    output: str,
    screener: BatchScreener,
    *,
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    limit: int | None = None,
    progress: Callable[[Progress], None] = lambda step: None,
) -> None:
    """Screen a file of rows into another, in order, however long it is.

    Finished parts are stored in `OUTPUT.parts`; at the end the output is written atomically and the folder deleted.
    After an interruption the same command resumes, and the output has the same bytes. A part is reused if its rows, the
    screener's settings and the package's version are the same and no model failed in it.

    Args:
        source: As `screen` takes it: JSON Lines, CSV, JSON, Parquet (by its suffix), or `-` for standard input.
        output: JSON Lines; `-` writes every part to standard output when it is done, and nothing can be resumed.
        screener: Screens each row.
        engine: `local`, processes or threads of this machine, or `ray`.
        workers: Parallel parts; None chooses by the models.
        limit: Maximum number of rows.
        progress: Called after each part.

    Raises:
        InputError: The source is damaged.
        OptionError, UnknownNameError, MissingExtraError: An option, the defense or a model.
        WorkerError: A worker died; finished parts are kept.
        OSError: A file cannot be read or written.
    """
    among("engine", engine, ENGINES)
    workers = None if workers is None else at_least("workers", workers, 1)
    limit = None if limit is None else at_least("limit", limit, 1)
    with open_source(source) as opened:
        batch = _Batch(opened, screener, engine, workers, limit, progress)
        if output == "-":
            for finished in batch.run_parts(None, []):
                sys.stdout.buffer.write(finished.lines)
                sys.stdout.buffer.flush()
        else:
            not_the_input(Path(output), source)
            check_rows_name(Path(output))
            batch.into(Path(output))


@dataclass(frozen=True, slots=True)
class _Batch:
    source: Source
    screener: BatchScreener
    engine: str
    workers: int | None
    limit: int | None
    progress: Callable[[Progress], None]

    def into(self, output: Path) -> None:
        """Write the output file atomically."""
        if output.is_dir():
            raise OptionError(f"{output} is a folder; name a file")
        shards = Shards(output.with_name(f"{output.name}.parts"))
        try:
            keys = list[str]()
            for _ in self.run_parts(shards, keys):
                pass
            draft = shards.draft("output")
            with draft.open("wb") as file:
                file.writelines(part.lines for part in _read_parts(shards, keys))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(output)
            shards.clear()
        finally:
            shards.leave()

    def run_parts(self, shards: Shards | None, keys: list[str]) -> Iterator[Finished]:
        """Process the unfinished parts and yield them in order; `keys` is filled with the keys of all parts."""
        work = PartWork(self.screener)
        purpose, waiting = work.purpose, deque[tuple[str, int]]()

        def parts() -> Iterator[Part]:
            for part in cut(self.source, most=ASKING_ROWS if self.screener.generator else MAX_ROWS, limit=self.limit):
                if shards is not None:
                    keys.append(part.key(purpose))
                    done = shards.read(keys[-1])
                    if done is not None and not done.transient:
                        self._tell(done, part.position, resumed=True)
                        continue
                waiting.append((keys[-1] if keys else "", part.position))
                yield part

        if self.engine == "ray":
            contents = on_ray(work, parts(), self.workers)
        else:
            contents = _on_this_machine(work, parts(), self.workers or usual_workers(self.screener))
        for content in contents:
            key, position = waiting.popleft()
            if shards is not None:
                shards.save(key, content)
            finished = Finished.from_bytes(content)
            self._tell(finished, position)
            yield finished

    def _tell(self, finished: Finished, position: int, *, resumed: bool = False) -> None:
        self.progress(Progress(self.source.name, finished, position, self.source.size, resumed))


def _read_parts(shards: Shards, keys: list[str]) -> Iterator[Finished]:
    for key in keys:
        finished = shards.read(key)
        if finished is None:
            raise InputError(f"{shards.folder} lost a part, perhaps to another run; run the same command again")
        yield finished


def _on_this_machine(work: PartWork, parts: Iterable[Part], workers: int) -> Iterator[bytes]:
    """Process the parts in parallel, and yield the results in order.

    One worker is this process; several are threads for remote models, else processes (`process_map`).

    Raises:
        WorkerError: A process was killed, or ran out of memory.
        OptionError, UnknownNameError, MissingExtraError: The defense cannot be made; no row is to blame.
    """
    work = work.per_worker(workers)
    if workers > 1 and not waits(work.screener):
        return process_map(work, parts, workers)
    _ = work.screener.loaded  # once, not by each thread
    return parallel_map(work, parts, workers, "unpoison-part")


def waits(screener: BatchScreener) -> bool:
    """Whether the work mostly waits for remote models, so that threads suffice."""
    return any(model in REMOTE for model in _models(screener))


def usual_workers(screener: BatchScreener) -> int:
    """One per processor for built-in models; one in all for a model that uses all processors itself."""
    if waits(screener):
        return REMOTE_WORKERS
    if any(model not in BUILT_IN for model in _models(screener)):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _models(screener: BatchScreener) -> list[str]:
    """The kinds of its models, such as "st" for `st:NAME`."""
    _, options = registry.parse(screener.defense)
    named = [options.get(name) for name in ("encoder", "generator", "nli", "cross_encoder", "language_model")]
    given = (screener.encoder, screener.generator, screener.nli)
    return [spec.partition(":")[0] for spec in (*named, *given) if spec is not None]
