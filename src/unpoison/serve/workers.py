"""Several processes on one socket: a parent that opens it, starts them, starts those again that die, and stops them.

Each runs the same command with `SOCKET` in its environment, loads its own models, and writes its counts to files in one
folder, so that each can tell Prometheus what all did. A process ends when its parent is gone, however that ended.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from unpoison.serve.logs import log_to_stderr
from unpoison.serve.sockets import BalancedSocket, Loads

__all__ = ["SOCKET", "inherit_socket", "supervise"]

SOCKET = "UNPOISON_WORKER"
"""Environment variable of a worker: the numbers of the socket, of the pipe that says that the parent lives, of the file
of loads, and which of them is the worker's."""

COUNTS = "PROMETHEUS_MULTIPROC_DIR"
"""Where prometheus_client keeps the counts of several processes."""

POLL = 0.2
"""Seconds between two looks at the workers."""

MAX_DEATHS, MINUTE = 5, 60.0
"""So many deaths in so many seconds are no accident: the service ends, and whoever started it hears of it."""

log = logging.getLogger("unpoison.service")


def inherit_socket() -> BalancedSocket | None:
    """The socket that a parent opened for this worker, None in any other process. Ends the process with its parent."""
    numbers = os.environ.pop(SOCKET, None)
    if numbers is None:
        return None
    listening, alive, loads, own = map(int, numbers.split(","))

    def watch() -> None:
        os.read(alive, 1)  # nothing is ever written: it returns when the parent is gone
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="unpoison-parent", daemon=True).start()
    return BalancedSocket(listening, Loads(loads, own))


def supervise(
    number: int, listening: socket.socket, *, patience: float, log_level: str, command: Sequence[str] | None = None
) -> int:
    """Keep so many workers running until a signal says stop.

    Args:
        number: Workers.
        listening: Their socket.
        patience: Seconds that they have to end.
        log_level: As of `serve`.
        command: What a worker runs; by default what this process runs.

    Returns:
        The exit status: 0 after a signal, or that of the workers where they cannot run.
    """
    log_to_stderr(log_level, "unpoison.service")
    with tempfile.TemporaryDirectory(prefix="unpoison-counts-") as counts, tempfile.TemporaryFile() as loads:
        loads.truncate(number * Loads.BYTES)
        passed = listening.fileno(), loads.fileno()
        workers = _Workers(number, passed, counts, command or [sys.executable, *sys.orig_argv[1:]])
        signals = (signal.SIGTERM, signal.SIGINT)
        before = {sig: signal.signal(sig, workers.on_signal) for sig in signals}
        try:
            return workers.run(patience)
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)


class _Workers:
    def __init__(self, number: int, passed: tuple[int, int], counts: str, command: Sequence[str]) -> None:
        self._number, self._counts, self._command = number, counts, list(command)
        self._listening, self._loads = passed
        self._alive, self._held = os.pipe()
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._deaths: deque[float] = deque(maxlen=MAX_DEATHS)
        self._signals: deque[int] = deque()

    def on_signal(self, sig: int, _: Any) -> None:
        """A signal came; the loop passes it on."""
        self._signals.append(sig)

    def run(self, patience: float) -> int:
        status, end = 0, float("inf")
        try:
            for own in range(self._number):
                self._start(own)
            while self._running:
                while self._signals:
                    self._pass_on(self._signals.popleft())
                    end = min(end, time.monotonic() + patience)
                if time.monotonic() > end:
                    self._each(subprocess.Popen.kill)
                died = [own for own, worker in self._running.items() if worker.poll() is not None]
                for own in died:
                    worker = self._reap(own)
                    if end == float("inf") and (status := self._replace(own, worker)):
                        self._pass_on(signal.SIGTERM)
                        end = time.monotonic() + patience
                time.sleep(POLL)
        finally:
            self._each(subprocess.Popen.kill)
            os.close(self._held)
            os.close(self._alive)
        return status

    def _start(self, own: int) -> None:
        passed = self._listening, self._alive, self._loads
        environment = {**os.environ, SOCKET: ",".join(map(str, (*passed, own))), COUNTS: self._counts}
        self._running[own] = subprocess.Popen(  # noqa: S603  the command that this process was started with
            self._command, env=environment, pass_fds=passed, start_new_session=True
        )

    def _replace(self, own: int, worker: subprocess.Popen[bytes]) -> int:
        """Start another for one that died unasked; else the status to end with."""
        self._deaths.append(time.monotonic())
        fields = {"pid": worker.pid, "status": worker.returncode}
        if worker.returncode == 2:  # its options or models cannot be used, and it said so
            return 2
        if len(self._deaths) == MAX_DEATHS and self._deaths[-1] - self._deaths[0] < MINUTE:
            log.error("workers die one after the other; the service ends", extra={"fields": fields})
            return 1
        log.error("a worker died; another is started", extra={"fields": fields})
        self._start(own)
        return 0

    def _reap(self, own: int) -> subprocess.Popen[bytes]:
        from prometheus_client.multiprocess import mark_process_dead

        worker = self._running.pop(own)
        mark_process_dead(worker.pid, self._counts)  # type: ignore[no-untyped-call]  # its gauges; what it counted stays counted
        return worker

    def _pass_on(self, sig: int) -> None:
        self._each(lambda worker: worker.send_signal(sig))

    def _each(self, do: Callable[[subprocess.Popen[bytes]], None]) -> None:
        for worker in self._running.values():
            with suppress(ProcessLookupError):
                do(worker)
