"""Listening sockets: an address or a unix socket, and connections dealt out evenly to the processes that share one.

The system wakes all processes when a connection comes, and whoever runs first takes it: of sixteen connections that
come at once one process often takes all, and keeps them for as long as they stay open. So each says how many it has,
and whoever has more than another one lets that one go first.

The processes still share one queue: a connection never waits for a process that is dead or busy, which it would if each
had a socket and a queue of its own (SO_REUSEPORT), and the system's choice among those is chance too. An event loop
that accepts by itself, as uvloop does, asks nobody: then it is chance again.
"""

from __future__ import annotations

import mmap
import os
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.errors import InputError

__all__ = ["BACKLOG", "BalancedSocket", "Loads", "address", "close_socket", "listen"]

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
