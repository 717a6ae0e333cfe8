"""The application under uvicorn, and connections that are bounded in number and in time.

Nobody can hold the service by holding sockets. The server closes connections that rest between two requests; the
classes here close those that never begin one, and those that begin one and do not come to the end of its head. When
there are as many connections as may be, the one that has been without a request for longest makes room: silence can
only displace silence, and `/healthz` is always answered.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from unpoison.errors import ModelError, StoreError
from unpoison.serve.bounds import Bounds
from unpoison.serve.logs import log_to_stderr
from unpoison.serve.replies import failure_reply
from unpoison.serve.sockets import BACKLOG, BalancedSocket, address
from unpoison.serve.work import warm_up

__all__ = ["KEEP_ALIVE", "Connection", "Draining", "connection_class", "serve"]

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


CONNECTIONS = 8192
"""Connections at most, where the system allows so many; each that rests costs about 10 KB."""

OTHER_FILES = 128
"""Files and sockets that the process may need for anything else."""

AT_ONCE = 1
"""Connections that a process takes at once: of several on one socket, the first to wake would take all that wait."""

log = logging.getLogger("unpoison.service")


class Draining(uvicorn.Server):
    """A server that ends in three steps, so that a load balancer never sends a request to a closed door.

    SIGTERM: `/readyz` says no from then on and everything is still served, each reply closing its connection. After
    `drain` seconds nothing new is taken. Requests in work have `timeout_graceful_shutdown` seconds to end. SIGINT, and
    a second SIGTERM, leave the first step out.

    Args:
        config: As for `uvicorn.Server`.
        drain: Seconds of the first step.
        stopping: Called when it begins.
        clock: Seconds, rising.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        drain: float,
        stopping: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(config)
        self._drain, self._stopping, self._clock = drain, stopping, clock
        self._end: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping()
        if sig == signal.SIGTERM:  # uvicorn would raise it again in the end, but this end was asked for
            self._end = self._clock() + (self._drain if self._end is None else 0.0)
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if self._end is not None and self._clock() >= self._end:
            self.should_exit = True
        return await super().on_tick(counter)


def serve(
    app: FastAPI,
    *,
    listening: socket.socket,
    bounds: Bounds,
    drain: float = 0.0,
    grace: float | None = None,
    log_level: str = "info",
) -> None:
    """Serve until a signal says stop; see `Draining`.

    Args:
        app: What `create_app` made.
        listening: What `sockets.listen` opened; the log says where.
        bounds: Those of the application.
        drain: Seconds to serve on after SIGTERM, while `/readyz` says no.
        grace: Seconds for the requests in work to end then; by default the timeout of one.
        log_level: "debug", "info", "warning" or "error".

    Raises:
        UnpoisonError: A model cannot be used; in monitor mode one that is down now may be there later.
    """
    log_to_stderr(log_level, "unpoison.service", "uvicorn")
    try:
        warm_up(app.state.service.choices.values())
    except (ModelError, StoreError) as error:
        if app.state.service.on_poison != "monitor":
            raise
        fields = {"error": type(error).__name__}  # it passes everything on until then, and counts that
        log.warning(
            "a model cannot be used yet; in monitor mode the service starts all the same", extra={"fields": fields}
        )
    gc.collect()
    gc.freeze()  # what is loaded stays: each look through all of it would stop every request for about 50 ms
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=AT_ONCE,
        timeout_graceful_shutdown=int(bounds.timeout if grace is None else grace) + 1,
        timeout_keep_alive=KEEP_ALIVE,
        http=connection_class(_most_connections()),
        ws="none",
        loop="asyncio",  # uvloop accepts by itself, and sockets.py could deal nothing out
    )

    def begin_shutdown() -> None:
        app.state.service.stopping = True

    server = _Announced(config, drain=drain, stopping=begin_shutdown)
    server.listening = listening
    server.run(sockets=[listening])


class _Announced(Draining):
    """Logs its address once it serves there, for uvicorn does not for a socket that it is given; and says its load."""

    listening: socket.socket

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.listening.listen(BACKLOG)  # asyncio takes one number for how many wait and how many are taken at once
        if self.started:
            log.info("running on %s", address(self.listening))

    async def on_tick(self, counter: int) -> bool:
        if isinstance(self.listening, BalancedSocket):
            self.listening.say()
        return await super().on_tick(counter)


def _most_connections() -> int:
    """As many as the system lets this process have; its own limit is raised as far as it may be."""
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
