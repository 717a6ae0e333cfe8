"""Limits on the calls to a system under test: how many at once, how long, how often again, and how long to wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError
from threading import Event
from typing import Annotated, TypeVar

from pydantic import Field

from unpoison.errors import TargetError, UnpoisonError, clip
from unpoison.utils.threads import start_thread
from unpoison_lab.redteam.settings import SettingsSection

__all__ = ["Clock", "InterruptedTestError", "Pace", "RequestLimits", "Wait"]


class RequestLimits(SettingsSection):
    """The section `limits`.

    Attributes:
        in_flight: Concurrent questions, 1 to 64; each plants at most `poisons` documents.
        timeout: Seconds for one request, above 0 and up to 3600.
        retries: Further tries of a request that failed for a moment, 0 to 10. A document is planted again only where
            the first try certainly did nothing.
    """

    in_flight: Annotated[int, Field(ge=1, le=64)] = 4
    timeout: Annotated[float, Field(gt=0, le=3600)] = 30.0
    retries: Annotated[int, Field(ge=0, le=10)] = 3


class Wait(SettingsSection):
    """The section `wait`: how long a system may take to index planted documents.

    Attributes:
        seconds: The longest wait until a document is served, or is gone, 0 to 3600; 0 asks once.
        every: The first pause between two looks; each is twice the last one, at most a quarter of `seconds`.
    """

    seconds: Annotated[float, Field(ge=0, le=3600)] = 5.0
    every: Annotated[float, Field(gt=0, le=600)] = 0.25

    def pause(self, looks: int) -> float:
        """Seconds to wait after `looks` polls."""
        return max(self.every, min(self.every * 2.0 ** min(looks - 1, 30), self.seconds / 4))


T = TypeVar("T")

FIRST_PAUSE = 0.5
"""Seconds before the second try; each pause is twice the last one."""


class InterruptedTestError(UnpoisonError):
    """The run was stopped; no new question starts."""


class Clock:
    """The clock, replaceable in tests."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float, until: Event | None = None) -> None:
        """Wait, or until the event."""
        if until is None:
            time.sleep(seconds)
        else:
            until.wait(seconds)


class Pace:
    """Calls a target within limits and retries if that may help. Thread-safe.

    Args:
        limits: The limits.
        clock: Time.
    """

    def __init__(self, limits: RequestLimits, clock: Clock | None = None) -> None:
        self.limits, self.clock = limits, clock or Clock()
        self._stop = Event()

    def stop(self) -> None:
        """Stop new questions; removals continue."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def check(self) -> None:
        """Check that new work may start.

        Raises:
            InterruptedTestError: The run was stopped.
        """
        if self.stopped:
            raise InterruptedTestError("the run was interrupted")

    def sleep(self, seconds: float, *, removing: bool = False) -> None:
        """Wait; a stopped run ends the wait, except for removals."""
        self.clock.sleep(seconds, None if removing else self._stop)

    def poll(self, wait: Wait, end: float, *, removing: bool = False) -> Iterator[None]:
        """Yield once per poll, with pauses between polls, until `end`."""
        looks = 0
        while True:
            yield
            looks += 1
            left = end - self.clock.now()
            if left <= 0:
                return
            self.sleep(min(wait.pause(looks), left), removing=removing)

    def call(self, what: str, work: Callable[[], T], *, repeat: bool = True, removing: bool = False) -> T:
        """Call the target.

        Args:
            what: For messages, such as "ask".
            work: The call.
            repeat: Whether it may be called again after a try that may have had an effect.
            removing: Whether to retry in a stopped run too.

        Raises:
            TargetError: It failed for good.
        """
        nothing_done = True
        for tries in range(self.limits.retries + 1):
            try:
                return self._call_with_timeout(what, work)
            except TargetError as error:
                again = error.retryable and (repeat or error.refused)
                error.refused = nothing_done = nothing_done and error.refused  # an earlier try may have had an effect
                if not again or tries == self.limits.retries or (self.stopped and not removing):
                    raise
                self.sleep(FIRST_PAUSE * 2**tries, removing=removing)
        raise AssertionError("unreachable")

    def _call_with_timeout(self, what: str, work: Callable[[], T]) -> T:
        """Run the call on its own thread, which is abandoned if the target hangs."""
        try:
            return start_thread(work).result(self.limits.timeout * 1.5 + 1)  # its own timeout comes first
        except (FutureTimeoutError, TimeoutError):
            why = f"{what} was not done within {self.limits.timeout:g} s; raise limits.timeout"
            raise TargetError(why, retryable=True) from None
        except UnpoisonError:
            raise
        except Exception as error:  # third-party code
            raise TargetError(f"{what} failed with {type(error).__name__}: {clip(str(error), 200)}") from None
