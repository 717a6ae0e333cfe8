"""The local engine: parts on processes of this machine, or on threads where the work is waiting."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread

from unpoison.batch.parts import Part, PartWork
from unpoison.batch.screener import Screener
from unpoison.core import registry
from unpoison.errors import WorkerError

__all__ = ["local", "usual_workers", "waits"]

REMOTE = ("openai", "anthropic")
BUILT_IN = ("lexical", "extractive")

REMOTE_WORKERS = 8
"""Rows that wait for a model somewhere else at the same time."""

QUEUED = 2
"""Parts for each worker that are read and not yet given back: one at work, one ready."""


def local(work: PartWork, parts: Iterable[Part], workers: int) -> Iterator[bytes]:
    """Do the parts, `workers` at the same time, and yield in their order.

    At most `2 * workers` parts are in memory. Processes are spawned, so a script that calls this needs the usual
    `if __name__ == "__main__":`; they end when this process ends, however it ends. One worker is this process.

    Raises:
        WorkerError: A process was killed, or ran out of memory.
        OptionError, UnknownNameError, MissingExtraError: The defense cannot be made; no row is to blame.
    """
    work = work.per_worker(workers)
    if workers == 1:
        yield from map(work, parts)
    elif waits(work.screener):
        _ = work.screener.loaded  # once, not by each thread
        yield from _map_parts(ThreadPoolExecutor(workers, thread_name_prefix="unpoison-part"), work, parts, workers)
    else:
        pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin, initargs=(work,))
        try:
            with _single_threaded_algebra():
                yield from _map_parts(pool, _do, parts, workers)
        except BrokenProcessPool:
            raise WorkerError(
                "a worker process was killed or ran out of memory; what is finished is kept: run the same command "
                "again, with fewer --workers if memory is short"
            ) from None


def _map_parts(pool: Executor, work: Callable[[Part], bytes], parts: Iterable[Part], workers: int) -> Iterator[bytes]:
    waiting: deque[Future[bytes]] = deque()
    try:
        for part in parts:
            with _block_interrupts():
                waiting.append(pool.submit(work, part))
            if len(waiting) == QUEUED * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Processes that begin meanwhile never hear of Ctrl-C, not even before they can say so: the parent decides.

    The parent hears of it afterwards.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _single_threaded_algebra() -> Iterator[None]:
    """Processes that begin meanwhile multiply their small matrices on one thread each, not on all processors."""
    name = "OPENBLAS_NUM_THREADS"
    ours = name not in os.environ
    if ours:
        os.environ[name] = "1"
    try:
        yield
    finally:
        if ours:
            del os.environ[name]


def waits(screener: Screener) -> bool:
    """Whether the work is mostly waiting for models somewhere else, which threads do as well as processes."""
    return any(model in REMOTE for model in _models(screener))


def usual_workers(screener: Screener) -> int:
    """As many as there are processors for the built-in models; one where a model uses all of them by itself."""
    if waits(screener):
        return REMOTE_WORKERS
    if any(model not in BUILT_IN for model in _models(screener)):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _models(screener: Screener) -> list[str]:
    """The kinds of models that its strings name, such as "st" for `st:NAME`."""
    _, options = registry.parse(screener.defense)
    named = [
        options.get(name)
        for name in ("encoder", "generator", "nli", "injection_model", "cross_encoder", "language_model")
    ]
    given = (screener.encoder, screener.generator, screener.nli, screener.injection_model)
    return [spec.partition(":")[0] for spec in (*named, *given) if spec is not None]


_work: PartWork | None = None
"""In a worker process: what it does, with its models loaded."""


def _begin(work: PartWork) -> None:
    global _work  # noqa: PLW0603  a process of a pool has no other place for what all its tasks share
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    Thread(target=_end_with_parent, daemon=True).start()


def _do(part: Part) -> bytes:
    assert _work is not None  # noqa: S101  _begin came first
    return _work(part)


def _end_with_parent() -> None:
    """A pool's processes would wait for work for ever when their parent is killed."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
