"""A proxy in front of an MCP server: the host speaks to it over standard input and output, as to the server itself.

Lines pass as they are, to the byte, unless something was found in them. A server that dies, hangs, floods or speaks
garbage becomes a protocol error for the host in its time limit.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from unpoison.agents.mcp_messages import Gate, TooManyToolsError, error_reply
from unpoison.errors import InputError, TargetError
from unpoison.utils.checks import at_least, within
from unpoison.utils.extras import require
from unpoison.utils.plain_text import excerpt

__all__ = ["HttpServer", "ProxyBounds", "Server", "StdioServer", "approve_tools", "run_proxy"]

CLOSED, TIMED_OUT, INVALID, INTERNAL = -32000, -32001, -32602, -32603

CHUNK = 1 << 16
GRACE = 2.0
"""Seconds that a server gets to end by itself, and then to end after SIGTERM."""

ENDLESS = 8
"""So many times the longest message without a line end, and the server is ended."""

LONG_RUNNING = ("subscriptions/listen",)
"""Requests that are answered when they end, whenever that is."""

Key = tuple[str, Any]

_log = logging.getLogger("unpoison.agents")


@dataclass(frozen=True, slots=True)
class ProxyBounds:
    """What a server may do to its host.

    Attributes:
        message_bytes: Of one message.
        seconds: For one request, until the host gets an error; what is answered later is dropped.
        bad_messages: Lines that are no messages, or answer nothing that was asked, until the server is ended.
        pending: Requests that wait for an answer, in either direction.
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


class TooLong(NamedTuple):
    """A message of more bytes than may be; it was not kept."""

    head: bytes


class Lines:
    """Lines out of chunks of bytes; of one that is too long only the head is kept. O(n) time for n bytes."""

    def __init__(self, most: int) -> None:
        self.most, self.size = most, 0
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes | TooLong]:
        """The lines that end in a chunk."""
        found: list[bytes | TooLong] = []
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._add(part)
            line = b"".join(self._parts)
            found.append(TooLong(line[:CHUNK]) if self.size > self.most else line)
            self._parts, self.size = [], 0
        self._add(rest)
        return found

    def _add(self, part: bytes) -> None:
        self.size += len(part)
        if part and (self.size <= self.most or not self._parts):
            self._parts.append(part[: self.most])


class Server(Protocol):
    """The server behind the proxy."""

    async def start(self) -> None: ...
    async def send(self, line: bytes, message: dict[str, Any]) -> None: ...
    def lines(self) -> AsyncIterator[bytes | TooLong]: ...
    async def close(self) -> None: ...


class StdioServer:
    """A server that is a process, with the environment of the proxy."""

    def __init__(self, command: Sequence[str], most: int) -> None:
        self.command, self.most = list(command), most

    async def start(self) -> None:
        pipe = asyncio.subprocess.PIPE
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self.command, stdin=pipe, stdout=pipe, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise TargetError(f"the server {self.command[0]!r} cannot be started: {error}") from None

    async def send(self, line: bytes, message: dict[str, Any]) -> None:
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101  it is a pipe
        with suppress(ConnectionError):  # its end is seen where its lines are read
            stdin.write(line + b"\n")
            await stdin.drain()

    async def lines(self) -> AsyncIterator[bytes | TooLong]:
        stdout, lines = self._process.stdout, Lines(self.most)
        assert stdout is not None  # noqa: S101  it is a pipe
        while chunk := await stdout.read(CHUNK):
            for line in lines.feed(chunk):
                yield line
            if lines.size > ENDLESS * self.most:
                return

    async def close(self) -> None:
        assert self._process.stdin is not None  # noqa: S101  it is a pipe
        self._process.stdin.close()
        for stop in (None, signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                if stop is not None:
                    os.killpg(self._process.pid, stop)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), GRACE)
                break


class HttpServer:
    """A server over streamable HTTP, spoken to by the official SDK."""

    def __init__(self, url: str, most: int, headers: Mapping[str, str] | None = None) -> None:
        self.url, self.most, self.headers = url, most, dict(headers or {})
        self._version: str | None = None
        self._incoming: asyncio.Queue[Any] = asyncio.Queue(8)
        self._outgoing: asyncio.Queue[Any] = asyncio.Queue(8)

    async def start(self) -> None:
        self._task = asyncio.create_task(self._carry())

    async def _carry(self) -> None:
        """Hold the connection in a task of its own: where it fails, the SDK cancels the task that opened it."""
        try:
            async with self._client() as client, self._streams(client) as (read, write):
                sending = asyncio.create_task(self._send_all(write))
                try:
                    async for message in read:
                        await self._incoming.put(message)
                finally:
                    sending.cancel()
        except Exception as error:  # of any kind, also groups: the host is told that the server ended
            _log.warning("the connection to the server failed: %s", type(error).__name__)
        await self._incoming.put(None)

    async def _send_all(self, write: Any) -> None:
        while True:
            await write.send(await self._outgoing.get())

    def _streams(self, client: Any) -> Any:
        transport = require("mcp.client.streamable_http", "the MCP proxy", "mcp")
        return transport.streamable_http_client(self.url, http_client=client, max_sse_event_size=self.most)

    def _client(self) -> Any:
        httpx = require("httpx2", "the MCP proxy", "mcp")
        most = self.most

        async def bound(response: Any) -> None:
            kind = response.headers.get("content-type", "").lower()
            if response.headers.get("content-encoding", "identity") != "identity":
                raise httpx.StreamError("a packed answer is refused")
            if kind.startswith("text/event-stream"):
                return  # each event is bounded by the SDK
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > most:
                    raise httpx.StreamError(f"an answer of more than {most:,} bytes is refused")
            response._content = bytes(body)

        return httpx.AsyncClient(
            headers={**self.headers, "accept-encoding": "identity"},
            timeout=httpx.Timeout(30.0, read=None),
            event_hooks={"response": [bound]},
        )

    async def send(self, line: bytes, message: dict[str, Any]) -> None:
        from mcp.shared.message import ClientMessageMetadata, SessionMessage
        from mcp.types import jsonrpc_message_adapter

        typed = jsonrpc_message_adapter.validate_python(message)
        await self._outgoing.put(SessionMessage(typed, ClientMessageMetadata(headers=self._headers(message))))

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        """What the protocol's own headers say of a message."""
        from mcp.shared import inbound

        params = message.get("params") if isinstance(message.get("params"), dict) else {}
        assert isinstance(params, dict)  # noqa: S101  for mypy
        meta = params.get("_meta") if isinstance(params.get("_meta"), dict) else {}
        modern = (meta or {}).get("io.modelcontextprotocol/protocolVersion")
        method = message.get("method")
        if not isinstance(modern, str) or not isinstance(method, str):
            known = self._version is not None and method != "initialize"
            return {inbound.MCP_PROTOCOL_VERSION_HEADER: str(self._version)} if known else {}
        headers = {inbound.MCP_PROTOCOL_VERSION_HEADER: modern, inbound.MCP_METHOD_HEADER: method}
        name = params.get(inbound.NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            headers[inbound.MCP_NAME_HEADER] = inbound.encode_header_value(name)
        return headers

    async def lines(self) -> AsyncIterator[bytes | TooLong]:
        while (message := await self._incoming.get()) is not None:
            if isinstance(message, Exception):
                yield b"no message"
                continue
            data = message.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            result = data.get("result")
            if isinstance(result, dict) and isinstance(result.get("protocolVersion"), str):
                self._version = result["protocolVersion"]
            yield json.dumps(data).encode()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task], timeout=GRACE)


class _Pending(NamedTuple):
    method: str
    params: Mapping[str, Any]
    deadline: float


class Proxy:
    """The messages between a host and a server.

    Args:
        server: Behind the proxy; started.
        gate: Screens what it answers.
        write: Sends a line to the host.
        bounds: Of the server.
    """

    def __init__(self, server: Server, gate: Gate, write: Callable[[bytes], None], bounds: ProxyBounds) -> None:
        self.server, self.gate, self.bounds = server, gate, bounds
        self._write = write
        self._pending: dict[Key, _Pending] = {}
        self._bad = 0
        self._turn = asyncio.Lock()

    async def from_host(self, line: bytes | TooLong) -> None:
        """Pass on what the host says, and remember what it asks."""
        message = None if isinstance(line, TooLong) else _parse(line)
        if message is None or isinstance(line, TooLong):
            await self._reply(error_reply(None, -32700, "this is no JSON-RPC message, or too long a one"))
            return
        if "method" in message.value and "id" in message.value:
            refused = self.gate.refuse_call(message.value)
            if len(self._pending) >= self.bounds.pending:
                refused = "too many requests wait for an answer"
            if refused:
                await self._reply(error_reply(message.value["id"], INVALID, f"[unpoison] {refused}"))
                return
            params = message.value.get("params")
            method = str(message.value["method"])
            limit = float("inf") if method in LONG_RUNNING else self.bounds.seconds
            deadline = asyncio.get_running_loop().time() + limit
            self._pending[_key(message.value["id"])] = _Pending(
                method, params if isinstance(params, dict) else {}, deadline
            )
        await self.server.send(line, message.value)

    async def from_server(self, line: bytes | TooLong) -> bool:
        """Pass on what the server says; False where it is to be ended."""
        if isinstance(line, TooLong):
            await self._fail("it sent a message of too many bytes", INTERNAL)
            return True
        message = await asyncio.to_thread(_parse, line) if len(line) > CHUNK else _parse(line)
        if message is None:
            return self._count_bad("a line that is no message")
        value = message.value
        if "method" in value:
            if "result" in value or "error" in value:
                return self._count_bad("a message that is a request and a reply")
            await self._send(line if message.unique else _dump(value))
            return True
        pending = self._pending.pop(_key(value.get("id")), None)
        if pending is None:
            return self._count_bad("an answer to what nobody asked")
        try:
            if ("result" in value) == ("error" in value):
                raise InputError("the answer is neither a result nor an error")
            new = await asyncio.to_thread(self.gate.screen_reply, pending.method, pending.params, value)
        except (InputError, TooManyToolsError) as error:
            new = error_reply(value["id"], INTERNAL, f"[unpoison] {error}")
        except Exception as error:  # whatever went wrong, what was not screened does not pass
            _log.exception("a reply could not be screened")
            new = error_reply(value["id"], INTERNAL, f"[unpoison] not screened, so not passed ({type(error).__name__})")
        await self._send(line if new is value and message.unique else _dump(new))
        return True

    async def expire(self) -> None:
        """Answer what the server did not in its time."""
        while True:
            await asyncio.sleep(min(self.bounds.seconds / 4, 1.0))
            now = asyncio.get_running_loop().time()
            for key, pending in list(self._pending.items()):
                if now > pending.deadline and key in self._pending:  # another may be answered while one is written
                    del self._pending[key]
                    said = f"[unpoison] the server did not answer in {self.bounds.seconds:g} seconds"
                    await self._reply(error_reply(key[1], TIMED_OUT, said))

    async def serve(self) -> None:
        """Until the server ends."""
        async for line in self.server.lines():
            if not await self.from_server(line):
                break
        await self._fail("it ended before it answered", CLOSED)

    async def _fail(self, why: str, code: int) -> None:
        pending, self._pending = self._pending, {}
        for _, identifier in pending:
            await self._reply(error_reply(identifier, code, f"[unpoison] the server failed: {why}"))

    def _count_bad(self, what: str) -> bool:
        self._bad += 1
        if self._bad in (1, 10, 100):
            _log.warning("dropped: %s", what)
        return self._bad < self.bounds.bad_messages

    async def _reply(self, message: Mapping[str, Any]) -> None:
        await self._send(_dump(message))

    async def _send(self, line: bytes) -> None:
        async with self._turn:
            await asyncio.to_thread(self._write, line + b"\n")


class _Parsed(NamedTuple):
    """A message, and whether no key stands twice in it: of two, parsers take different ones."""

    value: dict[str, Any]
    unique: bool


def _parse(line: bytes) -> _Parsed | None:
    twice: list[bool] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) < len(found):
            twice.append(True)
        return made

    try:
        value = json.loads(line.decode(), object_pairs_hook=pairs, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return _Parsed(value, not twice) if isinstance(value, dict) else None


def _no_number(name: str) -> None:
    raise ValueError(name)


def _key(identifier: object) -> Key:
    return type(identifier).__name__, identifier if isinstance(identifier, (str, int)) else None


def _dump(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode()


async def run_proxy(server: Server, gate: Gate, bounds: ProxyBounds, *, read: int = 0, write: int = 1) -> int:
    """Serve a host on two file descriptors until it, or the server, ends; 0 where it was the host."""
    loop = asyncio.get_running_loop()
    await server.start()

    def send(line: bytes) -> None:
        while line:
            line = line[os.write(write, line) :]

    proxy = Proxy(server, gate, send, bounds)

    async def hear() -> None:
        lines, chunks = Lines(bounds.message_bytes), asyncio.Queue[bytes](8)

        def listen() -> None:
            chunk = b"-"
            while chunk:
                try:
                    chunk = os.read(read, CHUNK)
                except OSError:
                    chunk = b""
                with suppress(RuntimeError):  # the loop is closed
                    asyncio.run_coroutine_threadsafe(chunks.put(chunk), loop).result()

        from threading import Thread

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


async def approve_tools(server: Server, gate: Gate, bounds: ProxyBounds) -> list[dict[str, Any]]:
    """All tools of a server, asked for as a client; in the order of its list.

    Raises:
        TargetError: It does not answer, or not as the protocol has it.
    """
    try:
        return await asyncio.wait_for(_list_tools(server), bounds.seconds)
    except TimeoutError:
        raise TargetError(f"the server did not list its tools in {bounds.seconds:g} seconds") from None


async def _list_tools(server: Server) -> list[dict[str, Any]]:
    from mcp.types.version import LATEST_HANDSHAKE_VERSION

    from unpoison import __version__

    await server.start()
    try:
        lines = server.lines()

        async def ask(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            await server.send(_dump(message), message)
            async for line in lines:
                found = None if isinstance(line, TooLong) else _parse(line)
                if found and found.value.get("id") == number and isinstance(found.value.get("result"), dict):
                    return dict(found.value["result"])
                if found and found.value.get("id") == number and "method" not in found.value:
                    raise TargetError(f"the server refuses {method}: {excerpt(str(found.value.get('error')), 200)}")
            raise TargetError(f"the server ended before it answered {method}")

        info = {"name": "unpoison", "version": __version__}
        version = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": info}
        await ask(1, "initialize", version)
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await server.send(_dump(ready), ready)
        tools, cursor, number = list[dict[str, Any]](), None, 2
        while number < 102:
            page = await ask(number, "tools/list", {"cursor": cursor} if cursor else {})
            tools += [tool for tool in page.get("tools", []) if isinstance(tool, dict)]
            cursor, number = page.get("nextCursor"), number + 1
            if not cursor or len(tools) > 1_000:
                break
        return tools
    finally:
        await server.close()


def log_to_stderr() -> None:
    """Warnings of the proxy as plain lines, for the host's log."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="unpoison mcp-proxy: %(message)s")
