"""Connections dealt out evenly to the processes that listen on one socket.

The system wakes all of them when a connection comes, and whoever runs first takes it: of sixteen connections that come
at once one process often takes all, and keeps them for as long as they stay open. So each says how many it has, and
whoever has more than another one lets that one go first.

The processes still share one queue: a connection never waits for a process that is dead or busy, which it would if each
had a socket and a queue of its own (SO_REUSEPORT), and the system's choice among those is chance too. An event loop
that accepts by itself, as uvloop does, asks nobody: then it is chance again.
"""

from __future__ import annotations

import mmap
import socket
import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["BalancedSocket", "Loads"]

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
