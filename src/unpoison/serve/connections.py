"""Connections of the server, bounded in number and in time.

Idle connections cannot block the service. The server closes connections that rest between two requests; the class here
closes those that never begin a request and those that do not finish a request's head. At the limit, the connection that
has been idle for longest is closed for a new one, so `/healthz` is always answered.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, ClassVar, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from unpoison.serve.replies import failure_reply

__all__ = ["HEAD", "HEAD_BYTES", "KEEP_ALIVE", "MAX_HELD", "Corked", "ServerConnection", "max_connections"]

KEEP_ALIVE = 75
"""Seconds between two requests of a connection: longer than the 60 s that proxies keep theirs, so that they end it."""

HEAD = 10.0
"""Seconds from a connection's opening, or from a request's first byte, to the end of its head."""

HEAD_BYTES = 64 * 1024
"""Bytes of one head."""

MAX_HELD = 64 * 1024
"""Bytes of a reply that are held back at most, so that the transport notices a slow client."""

CONNECTIONS = 8192
"""Maximum number of connections, if the system allows it; an idle one takes about 10 KB."""

PER_ADDRESS = 1024
"""Connections of one address."""

OTHER_FILES = 128
"""File descriptors reserved for other purposes."""


class Corked:
    """A transport that joins all writes of one turn of the event loop: the head of a reply and its body.

    Each send yields to the computing threads, and each packet wakes the client.

    Args:
        transport: Sends the data; all its other methods are available unchanged.
        loop: Its loop.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held = bytearray()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send the data together with other writes of this turn."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held += data
        if len(self._held) > MAX_HELD:
            self._flush()

    def close(self) -> None:
        """Send pending data, then close the transport."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, bytearray()
        if held and not self._transport.is_closing():
            self._transport.write(held)


class ServerConnection(HttpToolsProtocol):
    """One connection.

    Attributes:
        most: Maximum number in this process.
        waiting: Connections without a complete request, oldest first.
        addresses: Number of connections by address.
    """

    most: ClassVar[int] = CONNECTIONS
    waiting: ClassVar[dict[ServerConnection, None]] = {}
    addresses: ClassVar[Counter[str]] = Counter()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timer: asyncio.TimerHandle | None = None
        self._in_head, self._head_size = False, 0
        self._peer = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, Corked(transport, self.loop)))
        self._peer = self.client[0] if self.client else ""
        self.addresses[self._peer] += 1
        if self._peer and self.addresses[self._peer] > PER_ADDRESS:
            transport.abort()
            return
        if len(self.connections) > self.most and self.waiting:
            longest = next(iter(self.waiting))
            del self.waiting[longest]
            longest.transport.abort()
        self.waiting[self] = None
        self._timer = self.loop.call_later(HEAD, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.waiting.pop(self, None)
        self.addresses[self._peer] -= 1
        if self.addresses[self._peer] <= 0:
            del self.addresses[self._peer]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.cycle is not before or (before is not None and not before.response_complete):
            self._stop_timer()  # a head is complete, or more of a body arrived
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD, self.transport.abort)
        if self._in_head:
            self._head_size += len(data)
            if self._head_size > HEAD_BYTES:
                self.send_400_response("")

    def on_message_begin(self) -> None:
        self._in_head, self._head_size = True, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if not self.url.startswith((b"/", b"*")):  # an absolute form takes precedence over Host (RFC 9112, 3.2.2)
            target = httptools.parse_url(self.url)
            if target.host is not None:
                port = b"" if target.port is None else b":%d" % target.port
                self.headers[:] = [pair for pair in self.headers if pair[0] != b"host"]
                self.headers.append((b"host", target.host + port))
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            self.waiting[self] = None

    def send_400_response(self, msg: str) -> None:
        """Reply to invalid HTTP with an error in the service's usual format."""
        if self._head_size > HEAD_BYTES:
            msg = f"the request's head has more than {HEAD_BYTES:,} bytes; send fewer headers"
        content = failure_reply(400, "InvalidRequest", msg).body
        head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + content)
        self.transport.close()

    def _count_head(self, size: int) -> None:
        """Count a part of a head that came whole in one piece.

        Raises:
            ValueError: The head is too large; the parser then gives up, and the server replies with 400.
        """
        self._head_size += size
        if self._head_size > HEAD_BYTES:
            raise ValueError("the head is too large")

    def _stop_timer(self) -> None:
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
    needed = CONNECTIONS + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return CONNECTIONS if soft == resource.RLIM_INFINITY else max(OTHER_FILES, min(CONNECTIONS, soft - OTHER_FILES))
