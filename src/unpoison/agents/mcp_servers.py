"""The server behind the proxy, as a stream of JSON-RPC lines: a process (stdio) or an address (streamable HTTP).

Messages are parsed strictly, because parsers disagree on anything else.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from unpoison import __version__
from unpoison.errors import TargetError
from unpoison.utils.checks import on_this_machine
from unpoison.utils.extras import require
from unpoison.utils.plain_text import excerpt

__all__ = [
    "CHUNK", "HttpServer", "Key", "MessageLines", "Server", "StdioServer", "TooLong", "dump", "error_reply", "key_of",
    "list_tools", "object_in", "parse",
]  # fmt: skip

Key = tuple[str, Any]
"""An id with its type: 1 and "1" are different."""


class Message(NamedTuple):
    """A message.

    Attributes:
        value: The object.
        plain: Whether all parsers agree on its line. They differ on duplicate keys, and some end a line at a carriage
            return.
    """

    value: dict[str, Any]
    plain: bool


def parse(line: bytes) -> Message | None:
    """The object on a line; None for anything else, such as NaN."""
    twice: list[bool] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) < len(found):
            twice.append(True)
        return made

    try:
        value = json.loads(line.decode(), object_pairs_hook=pairs, parse_constant=int)  # which "NaN" is not
    except (ValueError, RecursionError):
        return None
    return Message(value, not twice and b"\r" not in line.rstrip()) if isinstance(value, dict) else None


def dump(message: Mapping[str, Any]) -> bytes:
    """A message as one line, without its end."""
    return json.dumps(message).encode()


def key_of(identifier: object) -> Key:
    """An id with its type; its value is None where it is neither a string nor a whole number."""
    known = isinstance(identifier, (str, int)) and not isinstance(identifier, bool)
    return type(identifier).__name__, identifier if known else None


def object_in(holder: object, name: str) -> dict[str, Any]:
    """The object in a field of a message or of a part of it; an empty one for anything else."""
    found = holder.get(name) if isinstance(holder, Mapping) else None
    return found if isinstance(found, dict) else {}


def error_reply(identifier: object, code: int, message: str) -> dict[str, Any]:
    """A JSON-RPC error."""
    return {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": message}}


CHUNK = 1 << 16
GRACE = 2.0
"""Seconds for a server to exit by itself, and again after SIGTERM."""

ENDLESS = 8
"""The server is stopped after this multiple of the longest message without a line end."""

MAX_PAGES = 100
"""Maximum pages of a list of tools."""

_log = logging.getLogger("unpoison.agents")


class TooLong(NamedTuple):
    """A message that exceeds the limit; only its head was kept."""

    head: bytes


class MessageLines:
    """Splits chunks of bytes into lines; of a line that is too long only the head is kept. O(n) time for n bytes."""

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
    """A server process; without `environment` it inherits that of the proxy."""

    def __init__(self, command: Sequence[str], most: int, environment: Mapping[str, str] | None = None) -> None:
        self.command, self.most, self.environment = list(command), most, environment

    async def start(self) -> None:
        pipe = asyncio.subprocess.PIPE
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self.command, stdin=pipe, stdout=pipe, start_new_session=True, env=self.environment
            )
        except (OSError, ValueError) as error:
            raise TargetError(f"the server {self.command[0]!r} cannot be started: {error}") from None

    async def send(self, line: bytes, message: dict[str, Any]) -> None:
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101  it is a pipe
        with suppress(ConnectionError):  # `lines` notices the end
            stdin.write(line + b"\n")
            await stdin.drain()

    async def lines(self) -> AsyncIterator[bytes | TooLong]:
        stdout, lines = self._process.stdout, MessageLines(self.most)
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
    """A server over streamable HTTP, by the official SDK."""

    def __init__(self, url: str, most: int, headers: Mapping[str, str] | None = None) -> None:
        self.url, self.most, self.headers = url, most, dict(headers or {})
        self._version: str | None = None
        self._incoming: asyncio.Queue[Any] = asyncio.Queue(8)
        self._outgoing: asyncio.Queue[Any] = asyncio.Queue(8)

    async def start(self) -> None:
        require("mcp", "the MCP proxy")
        self._task = asyncio.create_task(self._carry())

    async def _carry(self) -> None:
        """Hold the connection in a separate task: on failure the SDK cancels the task that opened it."""
        try:
            async with self._client() as client, self._streams(client) as (read, write):
                sending = asyncio.create_task(self._send_all(write))
                try:
                    async for message in read:
                        await self._incoming.put(message)
                finally:
                    sending.cancel()
        except Exception as error:  # of any kind, also groups
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            _log.warning("the connection to the server failed: %s: %s", type(cause).__name__, excerpt(str(cause), 200))
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
            trust_env=not on_this_machine(self.url),
        )

    async def send(self, line: bytes, message: dict[str, Any]) -> None:
        from mcp.shared.message import ClientMessageMetadata, SessionMessage
        from mcp.types import jsonrpc_message_adapter

        typed = jsonrpc_message_adapter.validate_python(message)
        await self._outgoing.put(SessionMessage(typed, ClientMessageMetadata(headers=self._headers(message))))

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        """The protocol's headers for a message."""
        from mcp.shared import inbound

        params = object_in(message, "params")
        modern = object_in(params, "_meta").get("io.modelcontextprotocol/protocolVersion")
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
            if isinstance(version := object_in(data, "result").get("protocolVersion"), str):
                self._version = version
            yield json.dumps(data).encode()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task], timeout=GRACE)


async def list_tools(server: Server, seconds: float) -> list[dict[str, Any]]:
    """Start a server, list all its tools in order, and stop it.

    Args:
        server: Not started.
        seconds: Time limit for all of it.

    Raises:
        TargetError: The server does not answer, or violates the protocol.
    """
    try:
        return await asyncio.wait_for(_list_tools(server), seconds)
    except TimeoutError:
        raise TargetError(f"the server did not list its tools in {seconds:g} seconds") from None


async def _list_tools(server: Server) -> list[dict[str, Any]]:
    from mcp.types.version import LATEST_HANDSHAKE_VERSION

    await server.start()
    try:
        lines = server.lines()

        async def ask(number: int, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            await server.send(dump(message), message)
            async for line in lines:
                found = None if isinstance(line, TooLong) else parse(line)
                if found is None or found.value.get("id") != number or "method" in found.value:
                    continue
                if isinstance(found.value.get("result"), dict):
                    return dict(found.value["result"])
                raise TargetError(f"the server refuses {method}: {excerpt(str(found.value.get('error')), 200)}")
            raise TargetError(f"the server ended before it answered {method}")

        info = {"name": "unpoison", "version": __version__}
        version = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": info}
        await ask(1, "initialize", version)
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await server.send(dump(ready), ready)
        tools, cursor = list[dict[str, Any]](), None
        for number in range(2, 2 + MAX_PAGES):
            page = await ask(number, "tools/list", {"cursor": cursor} if cursor else {})
            listed = page.get("tools")
            tools += [tool for tool in listed if isinstance(tool, dict)] if isinstance(listed, list) else []
            if not (cursor := page.get("nextCursor")):
                break
        return tools
    finally:
        await server.close()
