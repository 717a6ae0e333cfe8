"""How fast, how many, how long: the bounds under which a target is spoken to."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, fields
from threading import Event, Lock
from typing import Any, Self, TypeVar

from unpoison.errors import OptionError, TargetError, UnknownNameError, UnpoisonError, clip
from unpoison.utils.checks import at_least, within
from unpoison.utils.threads import start_thread

__all__ = ["Bounds", "Clock", "InterruptedTestError", "Pace", "Wait"]

T = TypeVar("T")

MAX_PAUSE = 60.0
"""Seconds that a target may ask us to wait before the next try."""

FIRST_PAUSE = 0.5
"""Seconds before the second try; each pause is twice the last one."""


class InterruptedTestError(UnpoisonError):
    """The run was asked to end, or its budget is used up; no new question is begun."""


class Clock:
    """Time, as a test may replace it."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float, until: Event | None = None) -> None:
        """Wait, or until the event."""
        if until is None:
            time.sleep(seconds)
        else:
            until.wait(seconds)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The section `limits` of a configuration.

    Attributes:
        in_flight: Questions at the same time, 1 to 64; so many times `poisons` documents are planted at most.
        rate: Requests per second, above 0; None for no bound.
        budget: Requests of a run, asking and planting; removing is never refused. At least 1.
        timeout: Seconds for one request, above 0 and up to 3600.
        retries: Further tries of a request that failed for a moment, 0 to 10. A document is planted again only where
            the first try certainly did nothing.
    """

    in_flight: int = 4
    rate: float | None = None
    budget: int = 100_000
    timeout: float = 30.0
    retries: int = 3

    def __post_init__(self) -> None:
        at_least("limits.in_flight", self.in_flight, 1, 64)
        at_least("limits.budget", self.budget, 1)
        at_least("limits.retries", self.retries, 0, 10)
        for name, high in (("timeout", 3600.0), ("rate", 10_000.0)):
            if (value := getattr(self, name)) is not None and within(f"limits.{name}", value, 0.0, high) == 0:
                raise OptionError(f"limits.{name} must be above 0")

    @classmethod
    def of(cls, values: object) -> Self:
        """Read the section.

        Raises:
            UnknownNameError, OptionError: An unknown field, or a value out of its range.
        """
        return cls(**_section(cls, "limits", values))


@dataclass(frozen=True, slots=True)
class Wait:
    """The section `wait` of a configuration: how long a system may take to index what is planted.

    Attributes:
        seconds: The longest wait until a document is served, or is gone; 0 asks once. Up to 3600.
        every: The first pause between two looks; each is twice the last one, at most a quarter of `seconds`.
    """

    seconds: float = 5.0
    every: float = 0.25

    def __post_init__(self) -> None:
        within("wait.seconds", self.seconds, 0.0, 3600.0)
        if within("wait.every", self.every, 0.0, 600.0) == 0:
            raise OptionError("wait.every must be above 0")

    @classmethod
    def of(cls, values: object) -> Self:
        """Read the section.

        Raises:
            UnknownNameError, OptionError: An unknown field, or a value out of its range.
        """
        return cls(**_section(cls, "wait", values))

    def pause(self, looks: int) -> float:
        """Seconds between look number `looks` and the next."""
        return max(self.every, min(self.every * 2.0 ** min(looks - 1, 30), self.seconds / 4))


def _section(kind: Any, name: str, values: object) -> dict[str, Any]:
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise OptionError(f"{name} must be a mapping, got {clip(values)}")
    allowed = [field.name for field in fields(kind)]
    for key in values:
        if key not in allowed:
            raise UnknownNameError(f"field of {name}", str(key), allowed)
    return values


class Pace:
    """Calls a target under bounds, and again where that may help. Used by several threads at once.

    Args:
        bounds: The bounds.
        clock: Time.
    """

    def __init__(self, bounds: Bounds, clock: Clock | None = None) -> None:
        self.bounds, self.clock = bounds, clock or Clock()
        self.calls = 0
        self._next = self.clock.now()
        self._lock = Lock()
        self._stop = Event()

    def stop(self) -> None:
        """Let no new question begin; removing goes on."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def check(self) -> None:
        """Refuse to begin something new.

        Raises:
            InterruptedTestError: The run was asked to end, or its budget is used up.
        """
        if self.stopped:
            raise InterruptedTestError("the run was interrupted")
        if self.calls >= self.bounds.budget:
            raise InterruptedTestError(f"the budget of {self.bounds.budget:,} requests is used up")

    def sleep(self, seconds: float, *, free: bool = False) -> None:
        """Wait; not on when the run is asked to end, unless it is to clean up."""
        self.clock.sleep(seconds, None if free else self._stop)

    def call(self, what: str, work: Callable[[], T], *, repeat: bool = True, free: bool = False) -> T:
        """Call the target.

        Args:
            what: For messages, such as "ask".
            work: The call.
            repeat: Whether it may be called again although the last try may have had an effect.
            free: Whether the budget does not bound it: cleaning up is never refused.

        Raises:
            TargetError: It failed for good.
            InterruptedTestError: The budget is used up.
        """
        nothing_done = True
        for tries in range(self.bounds.retries + 1):
            self._admit(free)
            try:
                return self._call_with_timeout(what, work)
            except TargetError as error:
                again = error.retryable and (repeat or error.refused)
                error.refused = nothing_done = nothing_done and error.refused  # an earlier try may have had an effect
                if not again or tries == self.bounds.retries or (self.stopped and not free):
                    raise
                pause = FIRST_PAUSE * 2**tries if error.retry_after is None else error.retry_after
                self.sleep(min(max(pause, 0.0), MAX_PAUSE), free=free)
        raise AssertionError("unreachable")

    def _call_with_timeout(self, what: str, work: Callable[[], T]) -> T:
        """The call on a thread of its own, which is left behind if the target hangs."""
        try:
            return start_thread(work).result(self.bounds.timeout * 1.5 + 1)  # its own timeout speaks first
        except (FutureTimeoutError, TimeoutError):
            raise TargetError(f"{what} had no reply after {self.bounds.timeout:g} s", retryable=True) from None
        except UnpoisonError:
            raise
        except Exception as error:  # somebody else's code
            raise TargetError(f"{what} failed with {type(error).__name__}: {clip(str(error), 200)}") from None

    def _admit(self, free: bool) -> None:
        """Count the call, and wait for its turn."""
        with self._lock:
            if not free and self.calls >= self.bounds.budget:
                raise InterruptedTestError(f"the budget of {self.bounds.budget:,} requests is used up")
            self.calls += 1
            now = self.clock.now()
            turn = max(now, self._next)
            self._next = turn + (0.0 if self.bounds.rate is None else 1 / self.bounds.rate)
        if turn > now:
            self.sleep(turn - now, free=free)
