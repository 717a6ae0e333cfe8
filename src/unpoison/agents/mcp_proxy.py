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
from functools import partial
from threading import Thread
from typing import Any, NamedTuple

from unpoison.agents.mcp_calls import Decision
from unpoison.agents.mcp_messages import McpGate, plain_method
from unpoison.agents.mcp_servers import (
    CHUNK,
    Key,
    Message,
    MessageLines,
    Server,
    TooLong,
    dump,
    error_reply,
    key_of,
    object_in,
    parse,
)  # fmt: skip
from unpoison.errors import InputError
from unpoison.utils.checks import MAX_SECONDS, at_least, within
from unpoison.utils.threads import on_thread

__all__ = ["Proxy", "ProxyBounds", "log_to_stderr", "run_proxy"]

CLOSED, TIMED_OUT, INVALID, INVALID_PARAMS, INTERNAL = -32000, -32001, -32600, -32602, -32603

LONG_RUNNING = ("subscriptions/listen",)
"""Requests without a time limit."""

IN_TURN = ("tools/list",)
"""Requests whose replies are screened in order, because each page changes the state of the gate."""

SHORT = 4_096
"""Bytes of a message, such as the answer to a ping, up to which it does not wait for longer ones to be screened."""

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
        screened: Long messages that are screened at a time, and short ones. While those that wait or are screened take
            this many times `message_bytes`, no further ones are read from the server.

    Raises:
        OptionError: A bound out of its range.
    """

    message_bytes: int = 16 * 2**20
    seconds: float = 120.0
    bad_messages: int = 1_000
    pending: int = 1_000
    screened: int = 4

    def __post_init__(self) -> None:
        at_least("message_bytes", self.message_bytes, 1_024)
        within("seconds", self.seconds, 0.001, MAX_SECONDS)
        for name in ("bad_messages", "pending", "screened"):
            at_least(name, getattr(self, name), 1)


class _Pending(NamedTuple):
    method: str
    params: Mapping[str, Any]
    deadline: float
    latest: float


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
        self._ended: dict[Key, None] = {}
        self._asked: set[Key] = set()
        self._screening: dict[asyncio.Task[None], tuple[Key | None, int]] = {}
        self._lanes = asyncio.Semaphore(bounds.screened), asyncio.Semaphore(bounds.screened)
        self._notice: asyncio.Task[None] | None = None
        self._unread = 0.0
        self._paused: float | None = None
        self._bad = 0
        self._turn, self._in_turn, self._sequence = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()

    async def from_host(self, line: bytes | TooLong) -> None:
        """Forward a message of the host, and record its requests."""
        message = None if isinstance(line, TooLong) else parse(line)
        if message is None or isinstance(line, TooLong):
            await self._reply(error_reply(None, -32700, "this is no JSON-RPC message, or too long a one"))
            return
        value, calls = message.value, self.gate.calls
        if "method" not in value:
            if (decision := calls.answer(value)) is not None:
                await self._follow(decision)
                return
            if (key := key_of(value.get("id"))) in self._asked:
                calls.add_answer(value)
                self._asked.discard(key)
        elif value["method"] == "notifications/cancelled" and "id" not in value:
            await self._cancel(key_of(object_in(value, "params").get("requestId")))
        elif "id" in value:
            if not await self._refuse(value):
                await self._follow(await on_thread(partial(calls.decide, line, value)))
            return
        await self.server.send(line, value)

    async def _follow(self, decision: Decision) -> None:
        """Forward a request of the host, and record it, or answer it."""
        if decision.reply is not None:
            await self._reply(decision.reply)
        if decision.forward is not None:
            line, value = decision.forward
            method, params = str(value["method"]), object_in(value, "params")
            limit = float("inf") if method in LONG_RUNNING else self.bounds.seconds
            now = asyncio.get_running_loop().time()
            self._pending[key_of(value["id"])] = _Pending(method, params, now - self._unread + limit, now + 2 * limit)
            await self.server.send(line, value)

    async def _refuse(self, value: Mapping[str, Any]) -> bool:
        """Refuse a request of the host that violates the protocol or names no checked tool; return whether it did."""
        key, refused = key_of(value["id"]), self.gate.refuse_call(value)
        if key[1] is None:
            refusal = error_reply(None, INVALID, "[unpoison] the id of a request must be a string or a whole number")
        elif key in self._pending or key in self._ended or self.gate.calls.waits(key):
            said = "a request with this id waits for its answer already; give every request an id of its own"
            refusal = error_reply(None, INVALID, f"[unpoison] {said}")
        elif refused or len(self._pending) >= self.bounds.pending:
            said = refused or "too many requests wait for an answer"
            refusal = error_reply(value["id"], INVALID_PARAMS, f"[unpoison] {said}")
        else:
            return False
        await self._reply(refusal)
        return True

    async def _cancel(self, key: Key) -> None:
        """Forget a request that the host no longer waits for."""
        if (withdrawn := self.gate.calls.cancel(key)) is not None:
            await self._reply(withdrawn)
        if self._pending.pop(key, None) is not None:
            self._end(key)
        for task, (own, _) in self._screening.items():
            if own == key:
                task.cancel()

    def _end(self, key: Key) -> None:
        """Record a request that has ended; a late answer is dropped."""
        self._ended[key] = None
        if len(self._ended) > self.bounds.pending:
            del self._ended[next(iter(self._ended))]

    async def take(self, line: bytes | TooLong) -> bool:
        """Begin to forward a message of the server; False to stop the server.

        Results are screened concurrently, so that a long one does not delay the others. Notifications keep their order,
        and a result is sent after the notifications before it.
        """
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
            if "id" in value and (key_of(value["id"])[1] is None or value["method"].startswith("notifications/")):
                return self._count_bad("a notification that poses as a request")  # some hosts read it as the former
            if not await self._may_ask(value):
                return True
            if "id" in value:
                await self._send(line if message.plain else dump(value))
            else:
                self._notice = await self._start(None, message, line)
            return True
        key = key_of(value.get("id"))
        if key in self._ended:
            del self._ended[key]
            return True
        pending = self._pending.pop(key, None)
        if pending is None:
            return self._count_bad("an answer to what nobody asked")
        await self._start(pending, message, line)
        return True

    async def _start(self, pending: _Pending | None, message: Message, line: bytes) -> asyncio.Task[None]:
        """Begin to screen a message, once the others leave room for it."""
        size = max(len(line), CHUNK)  # with what a task takes
        await self._settle(max(self.bounds.screened * self.bounds.message_bytes - size, 0))
        task = asyncio.create_task(self._forward(pending, message, line, self._notice))
        self._screening[task] = None if pending is None else key_of(message.value["id"]), size
        task.add_done_callback(self._screening.pop)
        return task

    async def _settle(self, most: int) -> None:
        """Wait until the messages being screened take at most this many bytes. The server's time limits are paused."""
        began = self._paused = asyncio.get_running_loop().time()
        try:
            while sum(size for _, size in self._screening.values()) > most:
                await asyncio.wait(self._screening, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(0)  # for the callbacks
        finally:
            self._unread += asyncio.get_running_loop().time() - began
            self._paused = None

    async def _forward(
        self, pending: _Pending | None, message: Message, line: bytes, before: asyncio.Task[None] | None
    ) -> None:
        """Screen a reply, or a notification, and send it after the notification before."""
        value, gate = message.value, self.gate
        method, params = (str(value.get("method")), {}) if pending is None else pending[:2]
        work = partial(gate.screen_notice if pending is None else partial(gate.screen_reply, method, params), value)
        async with self._in_turn if method in IN_TURN else self._lanes[len(line) > SHORT]:
            new = await self._screen(value, work)
        if before is not None and not before.done():
            await asyncio.wait([before])
        async with self._sequence:  # judged in the order in which they are sent
            new = new and await self._screen(value, partial(gate.in_sequence, method, params, new))
            if new is not None:
                await self._send(line if new is value and message.plain else dump(new))

    async def _screen(
        self, value: Mapping[str, Any], work: Callable[[], dict[str, Any] | None]
    ) -> dict[str, Any] | None:
        """A message, screened for the host, or an error; None to drop a notification."""
        try:
            async with asyncio.timeout(self.bounds.seconds):
                return await on_thread(work)
        except TimeoutError:
            said = f"it could not be screened in {self.bounds.seconds:g} seconds, so it is not passed"
        except InputError as error:
            said = str(error)
        except Exception as error:  # fail closed: nothing is forwarded unscreened
            _log.exception("a message could not be screened")
            said = f"not screened, so not passed ({type(error).__name__})"
        return error_reply(value["id"], INTERNAL, f"[unpoison] {said}") if "id" in value else None

    async def _may_ask(self, value: dict[str, Any]) -> bool:
        """Whether to forward a notification or a request of the server."""
        if "id" not in value:
            if value["method"] == "notifications/cancelled":
                self._asked.discard(key_of(object_in(value, "params").get("requestId")))
            return True
        refused = "" if plain_method(value["method"]) else "the name of the method is none"
        if len(self._asked) >= self.bounds.pending:
            refused = "too many requests wait for the host"
        if not refused:
            self._asked.add(key_of(value["id"]))
            return True
        await self._tell(error_reply(value["id"], CLOSED, f"[unpoison] {refused}"))
        return False

    async def _tell(self, message: dict[str, Any]) -> None:
        with suppress(TimeoutError):  # a server that floods and does not read
            async with asyncio.timeout(2.0):
                await self.server.send(dump(message), message)

    async def expire(self) -> None:
        """Answer requests that timed out."""
        while True:
            await asyncio.sleep(min(self.bounds.seconds / 4, 1.0))
            now = asyncio.get_running_loop().time()
            read = (self._paused or now) - self._unread  # a server is not late for what it could not send
            late = {key: own for key, own in self._pending.items() if read > own.deadline or now > own.latest}
            for key in late:
                self._end(key)
            await self._give_up(late, why := f"the server did not answer in {self.bounds.seconds:g} seconds", TIMED_OUT)
            for key, own in late.items():
                if own.method != "initialize":  # which the protocol does not let a host cancel
                    params = {"requestId": key[1], "reason": why}
                    await self._tell({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def serve(self) -> None:
        """Forward the server's messages until it ends."""
        async for line in self.server.lines():
            if not await self.take(line):
                break
        await self._settle(0)
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


async def run_proxy(server: Server, gate: McpGate, bounds: ProxyBounds) -> int:
    """Serve a host on standard input and output until it or the server ends; 0 if the host ended."""
    loop = asyncio.get_running_loop()
    await server.start()

    def send(line: bytes) -> None:
        while line:
            line = line[os.write(1, line) :]

    proxy = Proxy(server, gate, send, bounds)

    async def hear() -> None:
        lines, chunks = MessageLines(bounds.message_bytes), asyncio.Queue[bytes](8)

        def listen() -> None:
            chunk = b"-"
            while chunk:
                try:
                    chunk = os.read(0, CHUNK)
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
    logging.getLogger("unpoison.calls").setLevel(logging.INFO)
