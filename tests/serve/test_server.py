"""Connections: idle ones are closed in time, and make room."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn

from service_doubles import later
from unpoison.serve.server import HEAD, KEEP_ALIVE, ServerConnection


def connection_class(most: int) -> type[ServerConnection]:
    """A class of connections with counts of its own."""
    return type("Own", (ServerConnection,), {"most": most, "waiting": {}})


Talk = Callable[[int], Awaitable[Any]]


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """The smallest application."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


def spoken_to(talk: Talk, most: int = 100, opened: type[ServerConnection] | None = None) -> Any:
    """What `talk` finds, given the port of a server of `hello`; both run on one loop."""
    http = opened or connection_class(most)

    async def run() -> Any:
        config = uvicorn.Config(
            hello, port=0, log_config=None, lifespan="off", http=http, ws="none", timeout_keep_alive=KEEP_ALIVE
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            async with asyncio.timeout(60):
                return await talk(server.servers[0].sockets[0].getsockname()[1])
        finally:
            server.should_exit = True
            await serving

    return asyncio.run(run())


async def read(connection: type[ServerConnection], begun: bool) -> None:
    """Wait until the server has a connection whose head it waits for, and of which it has read something or nothing."""
    while not any(one._timer is not None and bool(one.conn.trailing_data[0]) == begun for one in connection.waiting):
        await asyncio.sleep(0)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX: "])
@pytest.mark.parametrize("before", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"], ids=["new", "used"])
def test_an_unfinished_head_is_not_waited_for(sent: bytes, before: bytes) -> None:
    connection = connection_class(100)
    if before:
        sent = sent or b"G"

    async def talk(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if before:
            writer.write(before)
            await reader.readuntil(b"hi")
        writer.write(sent)
        await read(connection, begun=bool(sent))
        later(HEAD + 1)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    assert spoken_to(talk, opened=connection) == b""


def test_a_connection_may_rest_between_two_requests() -> None:
    async def talk(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            reply = await reader.readuntil(b"hi")
            later(HEAD + 1)
        writer.close()
        return reply

    assert spoken_to(talk).endswith(b"hi")
    assert KEEP_ALIVE > 60, "proxies keep theirs for 60 s, and must be the ones to end it"


def test_the_longest_silent_makes_room() -> None:
    async def talk(port: int) -> bytes:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        reply = await reader.readuntil(b"hi")
        ends = [asyncio.create_task(reader.read()) for reader, _ in silent]
        async with asyncio.timeout(60):
            await asyncio.wait(ends[:21])
        assert [end.done() for end in ends] == [True] * 21 + [False] * 9
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        for _, other in [*silent, (reader, writer)]:
            other.close()
        return reply

    assert spoken_to(talk, most=10).startswith(b"HTTP/1.1 200")
