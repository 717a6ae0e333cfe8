"""Work on other processes: an ordered map that reports the death of a worker, and what can be pickled for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from threading import Lock
from typing import Any, Self, TypeVar, cast

from unpoison.errors import WorkerError

__all__ = ["CopyableLock", "Remade", "process_map"]

S = TypeVar("S")
T = TypeVar("T")

AHEAD = 2
"""Items read ahead per process."""


def process_map(work: Callable[[S], T], items: Iterable[S], workers: int) -> Iterator[T]:
    """Map `work` over the items on up to `workers` processes, and yield the results in order.

    Each process has a separate pipe, so that the death of either side is an end of file for the other; with a shared
    queue a killed process could leave a lock behind. Processes are spawned, so a script needs the usual
    `if __name__ == "__main__":`. Ctrl-C only reaches the parent.

    Args:
        work: Pickled once per process.
        items: Read lazily, at most `2 * workers` ahead; pickled.
        workers: At least 1.

    Raises:
        WorkerError: A process was killed, or ran out of memory.
    """
    remaining, idle, busy = iter(items), list[Connection](), dict[Connection, int]()
    results, taken, yielded = dict[int, T](), 0, 0
    try:
        while True:
            while (idle or len(busy) < workers) and taken - yielded < AHEAD * workers:
                try:
                    item = next(remaining)
                except StopIteration:
                    break
                connection = idle.pop() if idle else _start(work)
                busy[connection] = taken
                taken += 1
                with _died():
                    connection.send(item)
            if yielded in results:
                yield results.pop(yielded)
                yielded += 1
            elif busy:
                for connection in cast("list[Connection]", wait(list(busy))):
                    with _died():
                        result, error = connection.recv()
                    if error is not None:
                        raise error
                    results[busy.pop(connection)] = result
                    idle.append(connection)
            else:
                return
    finally:
        for connection in (*idle, *busy):
            connection.close()  # ends each process, at the latest after its item


@contextmanager
def _died() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):
        raise WorkerError(
            "a worker process was killed or ran out of memory; run the same command again, with fewer --workers if "
            "memory is short"
        ) from None


def _start(work: Callable[[Any], Any]) -> Connection:
    """Start a process, and return the parent's end of its pipe."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    with _without_interrupts():
        process.start()
    theirs.close()  # else the death of the process would not be an end of file
    with _died():
        ours.send(work)
    return ours


def _serve(parent: Connection) -> None:
    """The main loop of a process, until its parent closes the pipe or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before the work is loaded, and NumPy with it
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        work = parent.recv()
        while True:
            item = parent.recv()
            try:
                reply: tuple[Any, Exception | None] = work(item), None
            except Exception as error:
                reply = None, error
            parent.send(reply)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT, so that processes started inside inherit the mask; the parent receives it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class CopyableLock:
    """A lock that can be copied and pickled; each copy is a new lock."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class Remade:
    """A model or a connection: pickled as the arguments of its constructor, and its own deep copy.

    Loaded data and caches stay in their process. Pickles with the same arguments are loaded once per process.
    """

    __slots__ = ("_made_by",)  # not in the instance's dictionary, which logs may show: an argument may be a key

    _made_by: tuple[Callable[..., Any], tuple[Any, ...], tuple[tuple[str, Any], ...]]

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        made = super().__new__(cls)
        made._made_by = cls, arguments, tuple(options.items())
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, self._made_by

    def __deepcopy__(self, _memo: object) -> Self:
        return self


def _make(kind: Callable[..., Any], arguments: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> Any:
    try:
        return _made_again(kind, arguments, options)
    except TypeError:  # an argument that cannot be hashed
        return kind(*arguments, **dict(options))


@lru_cache(8)
def _made_again(kind: Callable[..., Any], arguments: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> Any:
    return kind(*arguments, **dict(options))
