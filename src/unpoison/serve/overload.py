"""Under more load than can be carried: slots that requests wait for, and a log that refusals do not flood."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

__all__ = ["Sampled", "Slots"]

QUEUE = 16
"""Requests that may wait for each slot. A waiting request holds the beginning of its body and computes nothing."""

LINES = 10
"""Lines of the log for each kind of refusal and second."""


class Slots:
    """Slots for requests in work. Who finds none waits in line for a while, which costs nothing.

    A refusal at once would be cheap for nobody: clients come back as fast as they are refused, and what reads and
    answers them competes with what computes.

    Args:
        number: How many there are.
        wait: Seconds that a request waits for one.
    """

    def __init__(self, number: int, wait: float) -> None:
        self._free = asyncio.Semaphore(number)
        self._most_waiting = QUEUE * number
        self._waiting = 0
        self._wait = wait

    async def acquire(self) -> bool:
        """Take a slot, or say False when none came free in time. What is taken must be given back."""
        if not self._free.locked():
            return await self._free.acquire()  # at once
        if self._waiting >= self._most_waiting:
            return False
        self._waiting += 1
        try:
            async with asyncio.timeout(self._wait):
                await self._free.acquire()
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return True

    def release(self) -> None:
        self._free.release()


class Sampled:
    """Which refusals are worth a line of the log: the first few of each kind and second.

    Args:
        clock: Seconds, rising.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._second = 0
        self._counts: dict[str, int] = {}
        self._unlogged = 0

    def worth(self, refused: str | None) -> dict[str, int] | None:
        """None for no line; else what to add to it: how many were left out since the last, where any were."""
        if refused is not None:
            second = int(self._clock())
            if second != self._second:
                self._second, self._counts = second, {}
            self._counts[refused] = count = self._counts.get(refused, 0) + 1
            if count > LINES:
                self._unlogged += 1
                return None
        left, self._unlogged = self._unlogged, 0
        return {"unlogged": left} if left else {}
