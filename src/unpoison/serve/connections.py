"""Connections that are bounded in number and in time, so that nobody can hold the service by holding sockets.

The server closes connections that rest between two requests; these classes close those that never begin one, and those
that begin one and do not come to the end of its head. When there are as many connections as may be, the one that has
been without a request for longest makes room: silence can only displace silence, and `/healthz` is always answered.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from unpoison.serve.failures import failure_reply

__all__ = ["KEEP_ALIVE", "Connection", "connection_class"]

KEEP_ALIVE = 75
"""Seconds between two requests of a connection: longer than the 60 s that proxies keep theirs, so that they end it."""

HEAD = 10.0
"""Seconds from a connection's opening, or from a request's first byte, to the end of its head."""

HEAD_BYTES = 64 * 1024
"""Bytes of one head."""

MAX_HELD = 64 * 1024
"""Bytes of a reply that wait for more of it: beyond that the transport has to say whether the client keeps up."""


class Corked:
    """A transport that sends what is written to it in one turn of the loop as one: the head of a reply and its body.

    Each send gives way to the threads that compute, and each packet wakes the client.

    Args:
        transport: Sends it. For everything but writing and closing it speaks for itself.
        loop: Its loop.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held = bytearray()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held += data
        if len(self._held) > MAX_HELD:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, bytearray()
        if held and not self._transport.is_closing():
            self._transport.write(held)


class Connection(HttpToolsProtocol):
    """One connection; see `connection_class`.

    Attributes:
        most: How many there may be.
        waiting: Those whose request has not arrived whole, longest first.
    """

    most: int
    waiting: dict[Connection, None]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timer: asyncio.TimerHandle | None = None
        self._in_head, self._head_size = False, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, Corked(transport, self.loop)))
        if len(self.connections) > self.most and self.waiting:
            longest = next(iter(self.waiting))
            del self.waiting[longest]
            longest.transport.abort()
        self.waiting[self] = None
        self._timer = self.loop.call_later(HEAD, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.waiting.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.cycle is not before or (before is not None and not before.response_complete):
            self._stop_timer()  # a head has come to its end, or more of a body
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD, self.transport.abort)
        if self._in_head:
            self._head_size += len(data)
            if self._head_size > HEAD_BYTES:
                self.send_400_response(f"the request's head has more than {HEAD_BYTES:,} bytes; send fewer headers")

    def on_message_begin(self) -> None:
        self._in_head, self._head_size = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            self.waiting[self] = None

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told so in the form of all our failures."""
        content = failure_reply(400, "InvalidRequest", msg).body
        head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + content)
        self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def connection_class(most: int) -> type[Connection]:
    """A protocol class for `uvicorn` whose connections number `most` together."""
    return type("BoundedConnection", (Connection,), {"most": most, "waiting": {}})
