"""The gate in front of every request: who may come in, how large, how many at once and for how long; and the log.

Plain ASGI, so that it holds for every route, and so that a body is counted before anybody reads it.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
import traceback
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unpoison.rendering import plain
from unpoison.service.bounds import Bounds
from unpoison.service.failures import Refusal, failed
from unpoison.service.metrics import Metrics
from unpoison.service.overload import Places, Sampled

__all__ = ["Gate", "Record"]

OPEN = ("/", "/healthz", "/readyz", "/openapi.json", "/assets/", "/sample/")
"""What needs no key: nothing of it tells anything about what the service was asked."""

QUIET = ("/healthz", "/readyz", "/metrics")
"""What machines ask every few seconds is not worth a line of the log."""

PATIENCE = 2.0
"""Seconds in which the rest of a refused body is thrown away, so that the client reads the reply; and seconds more for
the reply of a request that was only watched in vain."""

ARRIVAL = 20.0
"""Seconds in which the whole body of a request has to arrive."""

BODIES = 32
"""What all bodies that are held at once may come to, in largest bodies."""

SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every reply that does not set them itself."""

log = logging.getLogger("unpoison.service")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(slots=True)
class Record:
    """One line of the access log. No texts, unless the service was started to log what it drops.

    Attributes:
        id: The request's, from its X-Request-Id header where that is a plain word.
        route: The route's pattern.
        defense, k, dropped: What was screened, None where nothing was.
        calls: Calls of language models.
        error: The kind of the failure, None for none.
        refused: Why the gate let nothing of it in, None where it did.
        unscreened: Why documents were passed through unscreened in monitor mode, None where they were not.
        ms: Milliseconds to reply.
        client: The address that the request came from: the proxy's where there is one in front.
        texts: The question and what was dropped of it, where that is wanted.
    """

    id: str
    method: str
    route: str = "other"
    status: int = 500
    defense: str | None = None
    k: int | None = None
    dropped: int | None = None
    calls: int | None = None
    error: str | None = None
    unscreened: str | None = None
    refused: str | None = None
    ms: float = 0.0
    client: str | None = None
    texts: dict[str, Any] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        found = asdict(self)
        del found["refused"]  # its error says as much
        return {name: value for name, value in {**found, **found.pop("texts")}.items() if value not in (None, {})}


class Gate:
    """An ASGI middleware.

    Args:
        app: What it guards.
        bounds: Sizes and numbers.
        metrics: Where everything is counted.
        key: What `Authorization: Bearer` must say, None for nothing.
        hosts: The names by which the service may be called, empty for any. For a service on this machine it shuts out
            web pages that point a name of their own at it.
        watched: Paths where the service only watches: what finds no place there goes on unscreened instead of being
            refused.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        bounds: Bounds,
        metrics: Metrics,
        key: str | None = None,
        hosts: Collection[str] = (),
        watched: Collection[str] = (),
    ) -> None:
        self.app = app
        self.bounds = bounds
        self.metrics = metrics
        self.key = None if key is None else key.encode()
        self.hosts = frozenset(hosts)
        self.watched = frozenset(watched)
        self.held = 0
        self.places = Places(bounds.at_once, bounds.wait)
        self.passing = Places(bounds.at_once, bounds.wait)
        self.lines = Sampled()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        asked = headers.get("x-request-id", "")
        record = Record(asked if _REQUEST_ID.fullmatch(asked) else uuid4().hex, scope["method"])
        record.client = scope["client"][0] if scope.get("client") else None
        scope.setdefault("state", {}).update(record=record, gate=self)
        reply = _Reply(send, record)
        if record.method == "HEAD":  # what GET says, without its body
            scope = {**scope, "method": "GET"}
        body = _Body(receive, self)
        began = time.perf_counter()
        try:
            self._admit(scope, headers)
            await self._work(scope, body, reply)
        except Refusal as refusal:
            await self._refuse(refusal, scope, body, reply)
        except Exception as error:
            _log_bug(error, record)
            record.error = "InternalError"
            if reply.started:
                raise
            message = f"this is a fault of the service, not of the request; its log says more under {record.id}"
            await failed(500, "InternalError", message)(scope, receive, reply)
        finally:
            body.let_go()
            route = getattr(scope.get("route"), "path", None)
            record.route = route or record.route
            record.ms = round(1000 * (time.perf_counter() - began), 1)
            self.metrics.replied(record.route, record.status, record.ms / 1000)
            level = logging.DEBUG if record.route in QUIET else logging.INFO
            if log.isEnabledFor(level) and (left := self.lines.worth(record.refused)) is not None:
                log.log(level, "request", extra={"fields": {**record.fields(), **left}})

    def _admit(self, scope: Scope, headers: Headers) -> None:
        host = headers.get("host", "")
        if self.hosts and re.sub(r":\d*$", "", host).lower() not in self.hosts:
            message = "the service is not called by this name; start it with --allow-host NAME"
            raise Refusal(421, "MisdirectedRequest", message)
        if self.key is not None and not _is_open(scope["path"]):
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if not (scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode("latin-1"), self.key)):
                message = "the key is missing or wrong; send the header Authorization: Bearer KEY"
                raise Refusal(401, "Unauthorized", message, {"WWW-Authenticate": "Bearer"})
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and kind != "application/json":  # the one kind that no foreign page sends unasked
            message = "the body must be JSON and say so; send the header Content-Type: application/json"
            raise Refusal(415, "UnsupportedMediaType", message)
        size = headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,18}", size) or int(size) > self.bounds.body:
            raise _too_large(self.bounds.body)

    async def _work(self, scope: Scope, body: _Body, reply: _Reply) -> None:
        """Pass on what is small at once; what brings a body takes a place and has a time."""
        if scope["method"] != "POST":
            await self.app(scope, body, reply)
            return
        await self._arrived(body)
        record: Record = scope["state"]["record"]
        if await self.places.taken():
            await self._in_time(self.places, scope, body, reply)
        elif scope["path"] in self.watched and await self.passing.taken():
            record.unscreened = "Overloaded"
            await self._in_time(self.passing, scope, body, reply)
        else:
            message = f"{self.bounds.at_once} requests are worked on already; try again in a second"
            raise Refusal(503, "Overloaded", message, {"Retry-After": "1"})

    async def _arrived(self, body: _Body) -> None:
        """Wait for the whole body before it takes a place, so that slow senders hold up nobody but themselves."""
        try:
            async with asyncio.timeout(ARRIVAL):
                await body.read()
        except TimeoutError:
            message = f"the body did not arrive within {ARRIVAL:g} s; send it faster, or less"
            raise Refusal(408, "SlowBody", message, {"Connection": "close"}) from None

    async def _in_time(self, places: Places, scope: Scope, body: _Body, reply: _Reply) -> None:
        self.metrics.in_flight.inc()
        # Where the service only watches, the route gives up in time by itself and replies without a screening.
        limit = self.bounds.timeout + (PATIENCE if scope["path"] in self.watched else 0)
        try:
            async with asyncio.timeout(limit) as timer:
                await self.app(scope, body, reply)
        except TimeoutError:
            if not timer.expired() or reply.started:
                raise
            message = f"there was no result within {self.bounds.timeout:g} s; send fewer or shorter passages"
            raise Refusal(504, "Timeout", message) from None
        finally:
            places.give_back()
            self.metrics.in_flight.dec()

    async def _refuse(self, refusal: Refusal, scope: Scope, body: _Body, reply: _Reply) -> None:
        self.metrics.rejected.labels(refusal.kind).inc()
        record: Record = scope["state"]["record"]
        record.error = record.refused = refusal.kind
        if refusal.status_code != 504:
            with suppress(TimeoutError, Refusal):
                async with asyncio.timeout(PATIENCE):
                    await body.drain()
        await failed(refusal.status_code, refusal.kind, str(refusal.detail), refusal.headers)(scope, body, reply)


class _Body:
    """A request's body, received whole before anybody reads it, and no more than so many bytes of it.

    What all bodies hold together is bounded too.
    """

    def __init__(self, receive: Receive, gate: Gate) -> None:
        self._receive = receive
        self._gate = gate
        self._most = gate.bounds.body
        self._size = 0
        self._held = bytearray()
        self._more = True
        self._read = False

    async def __call__(self) -> Message:
        if self._read:
            self._read = False
            return {"type": "http.request", "body": bytes(self._held), "more_body": False}
        return await self._receive()

    async def read(self) -> None:
        """Receive all of it.

        Raises:
            Refusal: It is too large, all bodies together are, or its sender is gone.
        """
        while self._more:
            part = await self._next()
            if self._size > self._most:
                raise _too_large(self._most)
            if self._gate.held + len(part) > BODIES * self._most:
                raise Refusal(503, "Overloaded", "too much is being sent at once; try again", {"Retry-After": "1"})
            self._held += part
            self._gate.held += len(part)
        self._read = True

    async def drain(self) -> None:
        """Throw the rest away, up to a few times what is allowed."""
        while self._more and self._size <= 4 * self._most:
            await self._next()

    def let_go(self) -> None:
        """Its bytes are held no longer."""
        self._gate.held -= len(self._held)
        self._held = bytearray()

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] != "http.request":
            self._more = False
            raise Refusal(400, "Disconnected", "the connection ended before the body did")
        part: bytes = message.get("body", b"")
        self._size += len(part)
        self._more = message.get("more_body", False)
        return part


class _Reply:
    """Sends a reply with the headers that all have, and remembers its status."""

    def __init__(self, send: Send, record: Record) -> None:
        self._send = send
        self._record = record
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started, self._record.status = True, message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self._record.id
            for name, value in SECURITY.items():
                headers.setdefault(name, value)
        elif self._record.method == "HEAD" and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)


def _too_large(most: int) -> Refusal:
    message = f"the body has more than the {most:,} bytes that are taken; send fewer or shorter passages"
    return Refusal(413, "TooLarge", message)


def _is_open(path: str) -> bool:
    return any(path.startswith(name) if name.endswith("/") and name != "/" else path == name for name in OPEN)


def _log_bug(error: Exception, record: Record) -> None:
    """Where it happened, without the error's own words: they may quote a passage."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    where = [f"{plain(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
    fields = {"id": record.id, "error": type(error).__name__, "where": where}
    log.error("internal error", extra={"fields": fields})
