"""Limits on the model calls of one answer."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.errors import OptionError

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the model calls of one answer.

    Attributes:
        in_flight: Maximum number of concurrent model calls, at least 1.
        deadline: Seconds for the whole answer; None for no limit. A local computation (an encoder or NLI model on
            this machine) is not interrupted: `screen` and `answer` return late, or raise at the next call.
        timeout: Seconds for one call, after which it counts as failed and may be retried; None for the deadline
            alone. A local model that takes all prompts in one call may use the whole deadline.
        retries: Maximum number of retries of a call that failed transiently, at least 0.
        backoff: Seconds before the first retry; doubled each time, with jitter, unless the server names a delay.
        longest_wait: Maximum seconds of a single wait, whatever the server asks.
    """

    in_flight: int = 32
    deadline: float | None = 120.0
    timeout: float | None = 60.0
    retries: int = 3
    backoff: float = 0.5
    longest_wait: float = 30.0

    def __post_init__(self) -> None:
        if self.in_flight < 1:
            raise OptionError(f"in_flight must be at least 1, got {self.in_flight}")
        if self.retries < 0:
            raise OptionError(f"retries must be 0 or more, got {self.retries}")
        for name in ("deadline", "timeout"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:
                raise OptionError(f"{name} must be positive seconds or None, got {seconds}")
        for name in ("backoff", "longest_wait"):
            if not getattr(self, name) >= 0:
                raise OptionError(f"{name} must be 0 or more seconds, got {getattr(self, name)}")
