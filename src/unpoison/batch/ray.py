"""The Ray engine: the same parts through `ray.data.map_batches`, on one machine or many."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from typing import Any

from unpoison.batch.screener import BatchPart, BatchScreener, Finished
from unpoison.errors import OptionError, UnpoisonError, WorkerError
from unpoison.utils.extras import require

__all__ = ["on_ray"]

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
        _start(ray, workers)
    try:
        actors = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        for window in _windows(parts):
            yield from _process_window(ray, screener.shared_by(actors), window, actors)
    except ray.exceptions.RayError as error:
        raise WorkerError(f"Ray gave up: {str(error).strip().splitlines()[-1]}") from error
    finally:
        if ours:
            ray.shutdown()


def _start(ray: Any, workers: int | None) -> None:
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
