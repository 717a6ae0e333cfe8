"""Listening sockets, and several processes that share one and take its connections evenly.

A parent opens the socket, starts the processes, starts those again that die, and stops them. Each runs the same command
with `SOCKET` in its environment, loads its own models, and writes its counts to files in one folder, so that each can
tell Prometheus what all did. A process ends when its parent is gone, however that ended.

The system wakes all processes when a connection comes, and whoever runs first takes it: of sixteen connections that
come at once one process often takes all, and keeps them for as long as they stay open. So each says how many it has,
and whoever has more than another one lets that one go first.

The processes still share one queue: a connection never waits for a process that is dead or busy, which it would if each
had a socket and a queue of its own (SO_REUSEPORT), and the system's choice among those is chance too. An event loop
that accepts by itself, as uvloop does, asks nobody: `server.py` takes asyncio's.
"""

from __future__ import annotations

import logging
import mmap
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.errors import InputError
from unpoison.serve.logs import log_to_stderr

__all__ = [
    "BACKLOG",
    "BalancedSocket",
    "Loads",
    "address",
    "close_socket",
    "inherit_socket",
    "listen",
    "supervise",
]

BACKLOG = 2048
"""Connections that the system holds until they are accepted."""


def listen(host: str, port: int, path: Path | None = None) -> socket.socket:
    """A listening socket.

    Args:
        host: An address or a name of this machine.
        port: 0 for a free one.
        path: A unix socket instead, for its owner and group alone (mode 660); one that nobody listens on any more is
            replaced.

    Raises:
        InputError: It cannot be listened on; the message says why.
    """
    try:
        if path is not None:
            return _unix(path)
        family, _, _, _, endpoint = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.create_server(endpoint[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        where = path if path is not None else f"{host}:{port}"
        other = "another path" if path is not None else "another address or port, 0 for a free one"
        raise InputError(f"cannot listen on {where}: {error.strerror or error}; choose {other}") from None
    # asyncio sets this only where a socket names its protocol. Without it the second part of every reply waits for the
    # client's delayed acknowledgement of the first, 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address(listening: socket.socket) -> str:
    """How to speak to it."""
    name = listening.getsockname()
    if listening.family == getattr(socket, "AF_UNIX", None):
        return f"unix:{name}"
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"http://{host}:{name[1]}"


def close_socket(listening: socket.socket, path: Path | None) -> None:
    """Close it, and remove a unix socket's file."""
    listening.close()
    if path is not None:
        path.unlink(missing_ok=True)


def _unix(path: Path) -> socket.socket:
    if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
            else:
                raise OSError("something listens there already")
    listening = socket.socket(socket.AF_UNIX)
    before = os.umask(0o117)
    try:
        listening.bind(str(path))
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(before)
    listening.listen(BACKLOG)
    return listening


SILENCE = 1.0
"""Seconds after which a process that has not said its load is not waited for; a server says it ten times a second."""

TURN = 0.001
"""Seconds for which a process lets the others go first."""

TURNS = 30
"""So many times in a row at most; then it takes the connection itself, whoever has fewer."""


class Loads:
    """How many connections each process has, in memory that all share.

    Args:
        file: A file with `BYTES` for each process, zero at first.
        own: Which of them is this process, from 0.
        clock: Seconds, the same for all processes.
    """

    BYTES = 16

    def __init__(self, file: int, own: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._counts, self._times = np.frombuffer(mmap.mmap(file, 0)).reshape(-1, 2).T
        self._own, self._clock = own, clock

    def say(self, count: int) -> None:
        """This process has so many."""
        self._counts[self._own], self._times[self._own] = count, self._clock()

    def fewest(self) -> float:
        """Connections of the other process that has the fewest, of those that live; infinite for none."""
        living = self._times > self._clock() - SILENCE
        living[self._own] = False
        return float(self._counts[living].min(initial=np.inf))


class BalancedSocket(socket.socket):
    """A listening socket of several processes, from which each takes its share of the connections.

    Args:
        file: The number of the socket.
        loads: Those of all processes.
    """

    def __init__(self, file: int, loads: Loads) -> None:
        super().__init__(fileno=file)
        self._loads = loads
        self._open = self._turns = 0

    def say(self) -> None:
        """Say that this process lives, and its load."""
        self._loads.say(self._open)

    def accept(self) -> tuple[socket.socket, Any]:
        """A connection and its address.

        Raises:
            BlockingIOError: There is none, or it is another process's turn.
        """
        self.say()
        if self._open > self._loads.fewest() and self._turns < TURNS:
            self._turns += 1
            time.sleep(TURN)  # an event loop would ask again at once, and keep the others from running
            raise BlockingIOError
        self._turns = 0
        connection, address = super().accept()
        self._open += 1
        self.say()
        parts = connection.family, connection.type, connection.proto, connection.detach()
        return _Counted(*parts, on_close=self._count_close), address

    def _count_close(self) -> None:
        self._open -= 1


class _Counted(socket.socket):
    """A connection that says when it is closed."""

    def __init__(self, *parts: int, on_close: Callable[[], None]) -> None:
        super().__init__(*parts)
        self._on_close = on_close

    def close(self) -> None:
        if self.fileno() >= 0:
            self._on_close()
        super().close()


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
