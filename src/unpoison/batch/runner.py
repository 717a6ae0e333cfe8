"""Screens a whole file: in parts, on the processes of this machine or on Ray, resumable, in order."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

from unpoison.batch.screener import MAX_ROWS, BatchPart, BatchScreener, Finished, cut
from unpoison.core import registry
from unpoison.errors import InputError, OptionError, UnpoisonError, WorkerError
from unpoison.io.files import open_source
from unpoison.io.output import Journal, check_output, check_rows_name, read_rows, write_rows
from unpoison.utils.checks import among, at_least
from unpoison.utils.extras import require
from unpoison.utils.files import Closing, lock_file
from unpoison.utils.processes import process_map
from unpoison.utils.threads import cores, parallel_map

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

    Finished parts are in `OUTPUT.part`, which is renamed at the end; `OUTPUT.parts` lists them. After an interruption
    the same command resumes, and the output has the same bytes. It starts at the first part whose rows, settings or
    version of the package have changed, or in which a model failed.

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
        parts = cut(opened, most=screener.part or (ASKING_ROWS if screener.generator else MAX_ROWS), limit=limit)

        def tell(finished: Finished, part: BatchPart, *, resumed: bool = False) -> None:
            progress(Progress(opened.name, finished, part.position, opened.size, resumed))

        taken = deque[BatchPart]()

        def take(parts: Iterable[BatchPart]) -> Iterator[BatchPart]:
            for part in parts:
                taken.append(part)
                yield part

        def screened(parts: Iterable[BatchPart]) -> Iterator[tuple[BatchPart, Finished]]:
            for finished in (on_ray if engine == "ray" else _on_this_machine)(screener, take(parts), workers):
                yield (part := taken.popleft()), finished
                tell(finished, part)

        if output == "-":
            for _, finished in screened(parts):
                sys.stdout.buffer.write(finished.lines)
                sys.stdout.buffer.flush()
            return
        check_output(Path(output), source)
        check_rows_name(Path(output))
        with Draft(Path(output)) as draft:
            for part, finished in screened(draft.resume(parts, screener.purpose, tell)):
                draft.append(part, finished)
            draft.finish()


class Draft(Closing):
    """The unfinished output, `OUTPUT.part`, and the journal of its parts, `OUTPUT.parts`.

    Args:
        output: The file to write.

    Raises:
        InputError: Another process writes it.
        OSError: It cannot be written.
    """

    def __init__(self, output: Path) -> None:
        self._output = output
        self._path, self._record = output.with_name(f"{output.name}.part"), output.with_name(f"{output.name}.parts")
        self._file = self._path.open("ab+")
        if not lock_file(self._file.fileno()):
            self._file.close()
            raise InputError(f"another process writes {self._path}; wait for it, or end it first")

    def resume(self, parts: Iterator[BatchPart], purpose: str, tell: Callable[..., None]) -> Iterator[BatchPart]:
        """The parts that are still to be done; tells those that are done."""
        self._purpose, done, end = purpose, list[dict[str, Any]](), 0
        self._file.seek(0)
        for row, part in zip(read_rows(self._record), parts):
            same = row["key"] == part.key(purpose) and not row["transient"]
            if not same or crc32(self._file.read(max(row["end"] - end, 0))) != row.get("sum"):  # zeros after a failure
                parts = chain([part], parts)
                break
            done.append(row)
            end = row["end"]
            tell(Finished(b"", row["rows"], row["failures"], 0), part, resumed=True)
        self._file.truncate(end)
        write_rows(self._record, done)
        return parts

    def append(self, part: BatchPart, finished: Finished) -> None:
        """Write a part to disk."""
        self._file.write(finished.lines)
        self._file.flush()
        os.fsync(self._file.fileno())
        counts = {"rows": finished.rows, "failures": finished.failures, "transient": finished.transient}
        where = {"key": part.key(self._purpose), "end": self._file.tell(), "sum": crc32(finished.lines)}
        with Journal(self._record) as journal:
            journal.append({**where, **counts}, sync=True)

    def finish(self) -> None:
        """Give the output its name."""
        self._path.replace(self._output)
        self._record.unlink()

    def close(self) -> None:
        """Close the files; without a part they are deleted."""
        if not self._file.tell() and self._path.exists():
            self._path.unlink()
            self._record.unlink(missing_ok=True)
        self._file.close()


def _on_this_machine(screener: BatchScreener, parts: Iterable[BatchPart], workers: int | None) -> Iterator[Finished]:
    """Screen the parts in parallel, and yield the results in order.

    One worker is this process; several are threads for remote models, else processes (`process_map`).

    Raises:
        WorkerError: A process was killed, or ran out of memory.
        OptionError, UnknownNameError, MissingExtraError: The defense cannot be made; no row is to blame.
    """
    workers = workers or usual_workers(screener)
    screener = screener.shared_by(workers)
    if workers > 1 and not waits(screener):
        return process_map(screener.screen_part, parts, workers)
    _ = screener.loaded  # once, not by each thread
    return parallel_map(screener.screen_part, parts, workers, "unpoison-part")


def waits(screener: BatchScreener) -> bool:
    """Whether the work mostly waits for remote models, so that threads suffice."""
    return screener.threads or any(model in REMOTE for model in _models(screener))


def usual_workers(screener: BatchScreener) -> int:
    """One per processor for built-in models; one in all for a model that uses all processors itself."""
    if waits(screener):
        return REMOTE_WORKERS
    if any(model not in BUILT_IN for model in _models(screener)):
        return 1
    return cores()


def _models(screener: BatchScreener) -> list[str]:
    """The kinds of its models, such as "st" for `st:NAME`."""
    _, options = registry.parse(screener.defense)
    named = [options.get(name) for name in ("encoder", "generator", "nli", "cross_encoder", "language_model")]
    given = (screener.encoder, screener.generator, screener.nli)
    return [spec.partition(":")[0] for spec in (*named, *given) if spec is not None]


WINDOW = 256 * 2**20
"""Bytes of parts in one Ray data set, which bounds the object store."""

MAX_PARTS = 1024
"""Parts in one Ray data set."""


def on_ray(screener: BatchScreener, parts: Iterable[BatchPart], workers: int | None) -> Iterator[Finished]:
    """Process the parts on Ray actors, and yield the results in order.

    Uses the Ray cluster of this process, else that of RAY_ADDRESS, else starts one on this machine and stops it at the
    end. The nodes need the same version of unpoison and the models, but not the file.

    Args:
        screener: Screens a part.
        parts: Read lazily.
        workers: Actors, one processor each; None for as many as Ray has processors.

    Raises:
        MissingExtraError: Ray is not installed.
        OptionError: The defense cannot be created.
        WorkerError: Ray failed.
    """
    ray = require("ray", "the engine ray")
    require("ray.data", "the engine ray")
    ours = not ray.is_initialized()
    if ours:
        _start_ray(ray, workers)
    try:
        actors = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        for window in _windows(parts):
            yield from _process_window(ray, screener.shared_by(actors), window, actors)
    except ray.exceptions.RayError as error:
        raise WorkerError(f"Ray gave up: {str(error).strip().splitlines()[-1]}") from error
    finally:
        if ours:
            ray.shutdown()


def _start_ray(ray: Any, workers: int | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # or it warns of what its own actors do
    quiet = {"log_to_driver": False, "logging_level": "error"}
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    if os.environ.get("RAY_ADDRESS"):
        ray.init(**quiet)
    else:
        ray.init(num_cpus=workers, include_dashboard=False, **quiet)


def _windows(parts: Iterable[BatchPart]) -> Iterator[list[BatchPart]]:
    window, size = list[BatchPart](), 0
    for part in parts:
        window.append(part)
        size += part.size
        if size >= WINDOW or len(window) == MAX_PARTS:
            yield window
            window, size = [], 0
    if window:
        yield window


def _process_window(ray: Any, screener: BatchScreener, window: list[BatchPart], actors: int) -> Iterator[Finished]:
    class Actor:
        """Defined here, so that Ray sends it by value."""

        def __call__(self, table: Any) -> dict[str, list[Any]]:
            return _actor_batch(screener, table)

    rows = [{name: getattr(part, name) for name in BatchPart.__slots__} for part in window]
    given = ray.data.from_items(rows, override_num_blocks=len(rows))
    given.context.execution_options.preserve_order = True
    given.context.enable_progress_bars = False
    given.context.print_on_execution_start = False
    done = given.map_batches(
        Actor, compute=ray.data.ActorPoolStrategy(size=min(actors, len(rows))), batch_size=None, batch_format="pyarrow"
    )
    for row in done.iter_rows():
        if row["refused"] is not None:
            raise OptionError(row["refused"])
        yield Finished(row["lines"], *json.loads(row["counts"]))


def _actor_batch(screener: BatchScreener, table: Any) -> dict[str, list[Any]]:
    """One batch in an actor; the table may be shared memory and is only read."""
    columns: dict[str, list[Any]] = {"lines": [], "counts": [], "refused": []}
    for row in table.to_pylist():
        part = BatchPart(**{**row, "lines": tuple(row["lines"])})
        try:
            (lines, *counts), refused = screener.screen_part(part), None
        except UnpoisonError as error:
            lines, counts, refused = b"", [], str(error)
        columns["lines"].append(lines)
        columns["counts"].append(json.dumps(counts))
        columns["refused"].append(refused)
    return columns
