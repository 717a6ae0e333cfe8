"""A proxy in front of an MCP server, over standard input and output.

Messages without a finding are forwarded byte for byte. If the server crashes, hangs, floods or sends invalid messages,
the host gets a protocol error within the time limit.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any, NamedTuple

from unpoison.agents.mcp_messages import McpGate, plain_method
from unpoison.agents.mcp_servers import (
    CHUNK,
    Key,
    MessageLines,
    Server,
    TooLong,
    dump,
    error_reply,
    key_of,
    parse,
)
from unpoison.errors import InputError
from unpoison.utils.checks import at_least, within

__all__ = ["Proxy", "ProxyBounds", "log_to_stderr", "run_proxy"]

CLOSED, TIMED_OUT, INVALID, INVALID_PARAMS, INTERNAL = -32000, -32001, -32600, -32602, -32603

LONG_RUNNING = ("subscriptions/listen",)
"""Requests without a time limit, answered when they end."""

_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")')
"""Finds the request id in a line that is not valid JSON."""

_log = logging.getLogger("unpoison.agents")


@dataclass(frozen=True, slots=True)
class ProxyBounds:
    """Limits of a session.

    Attributes:
        message_bytes: Of one message, in either direction.
        seconds: For one request.
        bad_messages: Invalid lines and unrequested answers after which the server is stopped.
        pending: Requests of each side that wait for an answer.

    Raises:
        OptionError: A bound out of its range.
    """

    message_bytes: int = 16 * 2**20
    seconds: float = 120.0
    bad_messages: int = 1_000
    pending: int = 1_000

    def __post_init__(self) -> None:
        at_least("message_bytes", self.message_bytes, 1_024)
        within("seconds", self.seconds, 0.001, 86_400.0)
        at_least("bad_messages", self.bad_messages, 1)
        at_least("pending", self.pending, 1)


class _Pending(NamedTuple):
    method: str
    params: Mapping[str, Any]
    deadline: float


class Proxy:
    """The messages between a host and a server.

    Args:
        server: The started server.
        gate: Screens the replies.
        write: Sends a line to the host.
        bounds: Limits of the session.
    """

    def __init__(self, server: Server, gate: McpGate, write: Callable[[bytes], None], bounds: ProxyBounds) -> None:
        self.server, self.gate, self.bounds = server, gate, bounds
        self._write = write
        self._pending: dict[Key, _Pending] = {}
        self._asked: set[Key] = set()
        self._bad = 0
        self._turn = asyncio.Lock()

    async def from_host(self, line: bytes | TooLong) -> None:
        """Forward a message of the host, and record its requests."""
        message = None if isinstance(line, TooLong) else parse(line)
        if message is None or isinstance(line, TooLong):
            await self._reply(error_reply(None, -32700, "this is no JSON-RPC message, or too long a one"))
            return
        value = message.value
        if "method" not in value:
            self._asked.discard(key_of(value.get("id")))
        elif "id" in value and not await self._admit(value):
            return
        await self.server.send(line, value)

    async def _admit(self, value: Mapping[str, Any]) -> bool:
        """Record a request of the host, or refuse it; whether to forward it."""
        key, refused = key_of(value["id"]), self.gate.refuse_call(value)
        if key[1] is None:
            refusal = error_reply(None, INVALID, "[unpoison] the id of a request must be a string or a whole number")
        elif key in self._pending:
            said = "a request with this id waits for its answer already; give every request an id of its own"
            refusal = error_reply(None, INVALID, f"[unpoison] {said}")
        elif refused or len(self._pending) >= self.bounds.pending:
            said = refused or "too many requests wait for an answer"
            refusal = error_reply(value["id"], INVALID_PARAMS, f"[unpoison] {said}")
        else:
            params, method = value.get("params"), str(value["method"])
            limit = float("inf") if method in LONG_RUNNING else self.bounds.seconds
            deadline = asyncio.get_running_loop().time() + limit
            self._pending[key] = _Pending(method, params if isinstance(params, dict) else {}, deadline)
            return True
        await self._reply(refusal)
        return False

    async def from_server(self, line: bytes | TooLong) -> bool:
        """Forward a message of the server; False to stop the server."""
        if isinstance(line, TooLong):
            if not await self._answer_unreadable(line.head, why := "it sent a message of too many bytes"):
                await self._give_up(list(self._pending), f"the server failed: {why}", INTERNAL)
            return True
        message = await asyncio.to_thread(parse, line) if len(line) > CHUNK else parse(line)
        if message is None:
            if await self._answer_unreadable(line, "its answer is no JSON-RPC message"):
                return True
            return self._count_bad("a line that is no message")
        value = message.value
        if "method" in value:
            if "result" in value or "error" in value or not isinstance(value["method"], str):
                return self._count_bad("a message that is a request and a reply")
            if not await self._may_ask(value):
                return True
            said = value if "id" in value else await self._screen_notice(value)
            if said is not None:
                await self._send(line if said is value and message.plain else dump(said))
            return True
        pending = self._pending.pop(key_of(value.get("id")), None)
        if pending is None:
            return self._count_bad("an answer to what nobody asked")
        new = await self._screen(pending, value)
        await self._send(line if new is value and message.plain else dump(new))
        return True

    async def _screen(self, pending: _Pending, value: dict[str, Any]) -> dict[str, Any]:
        """A reply as the host may read it, or an error."""
        try:
            return await asyncio.to_thread(self.gate.screen_reply, pending.method, pending.params, value)
        except InputError as error:
            said = str(error)
        except Exception as error:  # fail closed: no unscreened reply is forwarded
            _log.exception("a reply could not be screened")
            said = f"not screened, so not passed ({type(error).__name__})"
        return error_reply(value["id"], INTERNAL, f"[unpoison] {said}")

    async def _screen_notice(self, value: dict[str, Any]) -> dict[str, Any] | None:
        """A notification as the host may read it; None to drop it."""
        try:
            return await asyncio.to_thread(self.gate.screen_notice, value)
        except Exception:  # fail closed: no unscreened notification is forwarded
            _log.exception("a notification could not be screened")
            return None

    async def _may_ask(self, value: dict[str, Any]) -> bool:
        """Whether to forward a notification or a request of the server."""
        if "id" not in value:
            params = value.get("params")
            if value["method"] == "notifications/cancelled" and isinstance(params, dict):
                self._asked.discard(key_of(params.get("requestId")))
            return True
        refused = "" if plain_method(value["method"]) else "the name of the method is none"
        if len(self._asked) >= self.bounds.pending:
            refused = "too many requests wait for the host"
        if not refused:
            self._asked.add(key_of(value["id"]))
            return True
        refusal = error_reply(value["id"], CLOSED, f"[unpoison] {refused}")
        with suppress(TimeoutError):  # a server that floods and does not read
            await asyncio.wait_for(self.server.send(dump(refusal), refusal), 2.0)
        return False

    async def expire(self) -> None:
        """Answer requests that timed out."""
        while True:
            await asyncio.sleep(min(self.bounds.seconds / 4, 1.0))
            now = asyncio.get_running_loop().time()
            late = [key for key, pending in self._pending.items() if now > pending.deadline]
            await self._give_up(late, f"the server did not answer in {self.bounds.seconds:g} seconds", TIMED_OUT)

    async def serve(self) -> None:
        """Until the server ends."""
        async for line in self.server.lines():
            if not await self.from_server(line):
                break
        await self._give_up(list(self._pending), "the server failed: it ended before it answered", CLOSED)

    async def _answer_unreadable(self, head: bytes, why: str) -> bool:
        """Report an invalid line as an error for the requests whose id it contains; whether there are any."""
        keys = {key_of(json.loads(found, strict=False)) for found in _ID.findall(head[:CHUNK])}
        waiting = [key for key in keys if key in self._pending]
        await self._give_up(waiting, f"the server failed: {why}", INTERNAL)
        return bool(waiting)

    async def _give_up(self, keys: Iterable[Key], why: str, code: int) -> None:
        for key in keys:
            if self._pending.pop(key, None) is not None:
                await self._reply(error_reply(key[1], code, f"[unpoison] {why}"))

    def _count_bad(self, what: str) -> bool:
        self._bad += 1
        if self._bad in (1, 10, 100):
            _log.warning("dropped: %s", what)
        return self._bad < self.bounds.bad_messages

    async def _reply(self, message: Mapping[str, Any]) -> None:
        await self._send(dump(message))

    async def _send(self, line: bytes) -> None:
        async with self._turn:
            await asyncio.to_thread(self._write, line + b"\n")


async def run_proxy(server: Server, gate: McpGate, bounds: ProxyBounds, *, read: int = 0, write: int = 1) -> int:
    """Serve a host on two file descriptors until it or the server ends; 0 if the host ended."""
    loop = asyncio.get_running_loop()
    await server.start()

    def send(line: bytes) -> None:
        while line:
            line = line[os.write(write, line) :]

    proxy = Proxy(server, gate, send, bounds)

    async def hear() -> None:
        lines, chunks = MessageLines(bounds.message_bytes), asyncio.Queue[bytes](8)

        def listen() -> None:
            chunk = b"-"
            while chunk:
                try:
                    chunk = os.read(read, CHUNK)
                except OSError:
                    chunk = b""
                with suppress(RuntimeError):  # the loop is closed
                    asyncio.run_coroutine_threadsafe(chunks.put(chunk), loop).result()

        Thread(target=listen, daemon=True).start()
        while chunk := await chunks.get():
            for line in lines.feed(chunk):
                await proxy.from_host(line)

    tasks = [asyncio.create_task(work) for work in (hear(), proxy.serve(), proxy.expire())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return 0 if tasks[0].done() else 1
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.close()


def log_to_stderr() -> None:
    """Warnings of the proxy as plain lines, for the host's log."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="unpoison mcp-proxy: %(message)s")
