"""What a server behind a proxy may do to its host."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.utils.checks import at_least, within

__all__ = ["Pace", "ProxyBounds"]


@dataclass(frozen=True, slots=True)
class ProxyBounds:
    """What a server may do to its host.

    Attributes:
        message_bytes: Of one message.
        seconds: For one request, until the host gets an error; what is answered later is dropped.
        bad_messages: Lines that are no messages, or answer nothing that was asked, until the server is ended.
        pending: Requests of the host that wait for an answer.
        per_second: Notifications and requests of the server in one second; it is not read faster, so none is lost.
        in_flight: Requests of the server that wait for the host; more of them are refused.
    """

    message_bytes: int = 16 * 2**20
    seconds: float = 120.0
    bad_messages: int = 1_000
    pending: int = 1_000
    per_second: int = 1_000
    in_flight: int = 100

    def __post_init__(self) -> None:
        at_least("message_bytes", self.message_bytes, 1_024)
        within("seconds", self.seconds, 0.001, 86_400.0)
        for name in ("bad_messages", "pending", "per_second", "in_flight"):
            at_least(name, getattr(self, name), 1)


class Pace:
    """So many in each second.

    Args:
        most: In one second.
    """

    def __init__(self, most: int) -> None:
        self.most, self._begun, self._count = most, -1.0, 0

    def wait(self, now: float) -> float:
        """Count one at this time, in seconds; how long it is to wait, 0 for not at all."""
        if now >= self._begun + 1:
            self._begun, self._count = now, 0
        self._count += 1
        if self._count <= self.most:
            return 0.0
        self._begun, self._count = self._begun + 1, 1
        return self._begun - now
