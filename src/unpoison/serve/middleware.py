"""The middleware for every request: admission, body size, concurrency, time limit, and access log.

Plain ASGI, so that it covers every route and counts a body before the application reads it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Collection
from typing import Any
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unpoison.serve.admission import Admission, too_large
from unpoison.serve.bounds import Bounds
from unpoison.serve.replies import Refusal, failure_reply
from unpoison.serve.telemetry import LogRecord, Metrics, log_bug
from unpoison.serve.work import CLIENT, RoundRobin
from unpoison.utils.tracing import request_span

__all__ = ["RequestMiddleware", "Slots"]

QUEUE = 16
"""Waiting requests per slot. A waiting request holds its body and computes nothing."""


class Slots:
    """Slots for concurrent requests; further requests wait for a free one.

    Free slots go to the clients in turn, so that a client with many connections does not hold up one with few.
    Refusing at once would cost more: clients retry immediately, and their requests compete with the computation.

    Args:
        number: Of slots.
        wait: Seconds that a request waits for one.
    """

    def __init__(self, number: int, wait: float) -> None:
        self._free, self._most_waiting, self._wait = number, QUEUE * number, wait
        self._waiting = RoundRobin[asyncio.Future[None]]()

    async def acquire(self, client: str = "") -> bool:
        """Take a slot for a client; False on a timeout. Call `release` afterwards."""
        if self._free:
            self._free -= 1
            return True
        if self._waiting.of(client) >= self._most_waiting // 2 or len(self._waiting) >= self._most_waiting:
            return False
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(client, turn)
        try:
            async with asyncio.timeout(self._wait):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # it came in the same moment
                self.release()
            if isinstance(error, TimeoutError):
                return False
            raise
        return True

    def release(self) -> None:
        """Pass a slot on to the next client."""
        while self._waiting:
            if not (turn := self._waiting.take()).done():
                turn.set_result(None)
                return
        self._free += 1


QUIET = ("/healthz", "/readyz", "/health", "/metrics")
"""Paths of probes and metrics, which are logged at level DEBUG."""

PATIENCE = 2.0
"""Extra seconds for requests in monitor mode."""

ARRIVAL = 20.0
"""Timeout for a request's body, in seconds."""

CLIENT_GONE = 499
"""Status in log and metrics of a request whose client disconnected."""

BODIES = 128 * 2**20
"""Bytes of all bodies together, or four times the largest if that is more. No client may hold more than stays free for
others, so that one alone gets half of them.
"""

SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every reply that does not set them itself."""

log = logging.getLogger("unpoison.service")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestMiddleware:
    """An ASGI middleware.

    Args:
        app: The wrapped application.
        bounds: Limits.
        metrics: Counters.
        admission: Checks of every request.
        root: The path under which a proxy serves the application, such as "/unpoison"; stripped from requests.
        watched: Paths in monitor mode: without a free slot their requests pass unscreened.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        bounds: Bounds,
        metrics: Metrics,
        admission: Admission,
        root: str = "",
        watched: Collection[str] = (),
    ) -> None:
        self.app, self.bounds, self.metrics, self.admission = app, bounds, metrics, admission
        self.root, self.watched, self.held = root, frozenset(watched), Counter[str]()
        self.slots = Slots(bounds.max_concurrency, bounds.wait)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        sent_id = headers.get("x-request-id", "")
        record = LogRecord(sent_id if _REQUEST_ID.fullmatch(sent_id) else uuid4().hex, scope["method"])
        record.client = scope["client"][0] if scope.get("client") else None
        scope.setdefault("state", {}).update(record=record, middleware=self)
        reply = _Reply(send, record)
        # The middleware and the router see one path.
        if self.root and f"{scope['path']}/".startswith(f"{self.root}/"):
            scope = {**scope, "path": scope["path"][len(self.root) :] or "/"}
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}  # whose reply goes without its body
        with request_span(record.method, headers) as trace:
            if trace is not None:
                record.trace = f"{trace.get_span_context().trace_id:032x}"
            await self._serve(scope, headers, _Body(receive, self), reply)
            if trace is not None:
                trace.update_name(f"{record.method} {record.route}")
                trace.set_attributes({"http.route": record.route, "http.response.status_code": record.status})

    async def _serve(self, scope: Scope, headers: Headers, body: _Body, reply: _Reply) -> None:
        record: LogRecord = scope["state"]["record"]
        began = time.perf_counter()
        try:
            self.admission.admit(scope, headers, record)
            client = record.key or record.client or ""
            CLIENT.set(client)
            await self._work(scope, body, reply, client)
        except Refusal as refusal:
            self.metrics.rejected.labels(refusal.kind).inc()
            record.error, message = refusal.kind, str(refusal.detail)
            await failure_reply(refusal.status_code, refusal.kind, message, refusal.headers)(scope, body, reply)
        except asyncio.CancelledError:  # the server stops, and its grace is over
            if reply.started:
                raise
            record.error = "Stopping"
            await failure_reply(503, "Stopping", "the service stops; send it again")(scope, body, reply)
        except Exception as error:
            log_bug(error, record)
            record.error = "InternalError"
            if reply.started:
                raise
            message = f"this is a fault of the service, not of the request; its log says more under {record.id}"
            await failure_reply(500, "InternalError", message)(scope, body, reply)
        finally:
            body.let_go()
            record.route = getattr(scope.get("route"), "path", None) or record.route
            record.ms = round(1000 * (time.perf_counter() - began), 1)
            self.metrics.count_reply(record.route, record.status, record.ms / 1000, record.key)
            level = logging.DEBUG if record.route in QUIET else logging.INFO
            if log.isEnabledFor(level):
                log.log(level, "request", extra={"fields": record.fields()})

    async def _work(self, scope: Scope, body: _Body, reply: _Reply, client: str) -> None:
        """Forward requests without a body immediately; others take a slot and have a time limit."""
        if scope["method"] != "POST":
            await self.app(scope, body, reply)
            return
        try:  # before it takes a slot, so that slow senders delay no other client
            async with asyncio.timeout(ARRIVAL):
                await body.read(client)
        except TimeoutError:
            message = f"the body did not arrive within {ARRIVAL:g} s; send it faster, or less"
            raise Refusal(408, "SlowBody", message, {"Connection": "close"}) from None
        record: LogRecord = scope["state"]["record"]
        if await self.slots.acquire(client):
            await self._in_time(scope, body, reply)
        elif scope["path"] in self.watched:
            record.unscreened = "Overloaded"
            await self.app(scope, body, reply)
        else:
            message = f"{self.bounds.max_concurrency} requests are worked on already; try again in a second"
            raise Refusal(503, "Overloaded", message, {"Retry-After": "1"})

    async def _in_time(self, scope: Scope, body: _Body, reply: _Reply) -> None:
        self.metrics.in_flight.inc()
        # In monitor mode the route itself times out first, and replies without a screening.
        limit = self.bounds.timeout + (PATIENCE if scope["path"] in self.watched else 0)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  it runs in one
        watch = asyncio.create_task(body.cancel_when_gone(task, reply))
        try:
            async with asyncio.timeout(limit) as timer:
                scope["state"]["timer"] = timer
                await self.app(scope, body, reply)
        except asyncio.CancelledError:
            if not body.gone:
                raise
            task.uncancel()  # the client disconnected, and the computation has stopped
            record: LogRecord = scope["state"]["record"]
            record.error, record.status = "Disconnected", CLIENT_GONE
        except TimeoutError:
            if not timer.expired() or reply.started:
                raise
            message = f"there was no result within {self.bounds.timeout:g} s; send fewer or shorter passages"
            raise Refusal(504, "Timeout", message) from None
        finally:
            watch.cancel()
            self.slots.release()
            self.metrics.in_flight.dec()


class _Body:
    """A request's body, received whole before the application reads it. Its size and that of all bodies is limited."""

    def __init__(self, receive: Receive, middleware: RequestMiddleware) -> None:
        self._receive, self._middleware, self._most = receive, middleware, middleware.bounds.body
        self._held, self._client, self._size = bytearray(), "", 0
        self._read = self.gone = False

    async def cancel_when_gone(self, task: asyncio.Task[Any], reply: _Reply) -> None:
        """Cancel the work on a request whose client has closed the connection. The body must have been read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not reply.finished:
            self.gone = True
            task.cancel()

    async def __call__(self) -> Message:
        if self._read:
            self._read, body = False, bytes(self._held)
            self._held.clear()  # whoever reads the body is the only one to hold it
            return {"type": "http.request", "body": body, "more_body": False}
        return await self._receive()

    async def read(self, client: str) -> None:
        """Receive the whole body of a client.

        Raises:
            Refusal: The body is too large, all bodies together are, or the client disconnected.
        """
        self._client, held, more = client, self._middleware.held, True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise Refusal(400, "Disconnected", "the connection ended before the body did")
            part, more = message.get("body", b""), message.get("more_body", False)
            if self._size + len(part) > self._most:
                raise too_large(self._most)
            if held[client] + 2 * len(part) > max(BODIES, 4 * self._most) - held.total():
                raise Refusal(503, "Overloaded", "too much is being sent at once; try again", {"Retry-After": "1"})
            self._held += part
            self._size += len(part)
            held[client] += len(part)
        self._read = True

    def let_go(self) -> None:
        """Release its memory."""
        self._middleware.held -= Counter({self._client: self._size})
        self._held.clear()


class _Reply:
    """Adds the common headers to a reply and records its status."""

    def __init__(self, send: Send, record: LogRecord) -> None:
        self._send, self._record = send, record
        self.started = self.finished = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.body":
            if self._record.method == "HEAD":
                message = {**message, "body": b""}
            self.finished = not message.get("more_body", False)
        if message["type"] == "http.response.start":
            self.started, self._record.status = True, message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self._record.id
            for name, value in SECURITY.items():
                headers.setdefault(name, value)
        await self._send(message)
