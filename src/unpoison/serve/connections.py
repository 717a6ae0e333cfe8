"""Connections of the server, bounded in number and in time.

Idle connections cannot block the service. The server closes connections that rest between two requests; the class here
closes those that never begin a request and those that do not finish a request's head. At the limit, the connection that
has been idle for longest is closed for a new one, so `/healthz` is always answered. h11 bounds the size of a head.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HEAD", "KEEP_ALIVE", "ServerConnection", "max_connections"]

KEEP_ALIVE = 75
"""Seconds between two requests of a connection: longer than the 60 s that proxies keep theirs, so that they end it."""

HEAD = 10.0
"""Seconds from a connection's opening, or from a request's first byte, to the end of its head."""

CONNECTIONS = 8192
"""Maximum number of connections, if the system allows it; an idle one takes about 10 KB."""

OTHER_FILES = 128
"""File descriptors reserved for other purposes."""


class ServerConnection(H11Protocol):
    """One connection.

    Attributes:
        most: Maximum number in this process.
        waiting: Connections without a complete request, oldest first.
    """

    most: ClassVar[int] = CONNECTIONS
    waiting: ClassVar[dict[ServerConnection, None]] = {}

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most and self.waiting:
            longest = next(iter(self.waiting))
            del self.waiting[longest]
            longest.transport.abort()
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._timer is None and not self.transport.is_closing():
            self._wait_for_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.waiting[self] = None

    def _wait_for_head(self) -> None:
        self.waiting[self] = None
        self._timer = self.loop.call_later(HEAD, self.transport.abort)

    def _stop_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def max_connections() -> int:
    """How many connections this process may have; its limit of open files is raised as far as the system allows."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard > CONNECTIONS + OTHER_FILES:
        hard = CONNECTIONS + OTHER_FILES
    if 0 <= soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return max(OTHER_FILES, min(CONNECTIONS, hard - OTHER_FILES))
