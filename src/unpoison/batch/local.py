"""The local engine: processes of this machine, or threads for remote models."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from unpoison.batch.parts import Part, PartWork
from unpoison.batch.screener import BatchScreener
from unpoison.core import registry
from unpoison.utils.processes import process_map
from unpoison.utils.threads import parallel_map

__all__ = ["local", "usual_workers", "waits"]

REMOTE = ("openai", "anthropic")
BUILT_IN = ("lexical", "extractive")

REMOTE_WORKERS = 8
"""Rows in flight for remote models."""


def local(work: PartWork, parts: Iterable[Part], workers: int) -> Iterator[bytes]:
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
    named = [
        options.get(name)
        for name in ("encoder", "generator", "nli", "injection_model", "cross_encoder", "language_model")
    ]
    given = (screener.encoder, screener.generator, screener.nli, screener.injection_model)
    return [spec.partition(":")[0] for spec in (*named, *given) if spec is not None]
