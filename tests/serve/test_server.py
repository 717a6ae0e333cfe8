"""Connections: idle ones are closed in time, and make room."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h11
import pytest
import uvicorn

from service_doubles import later
from unpoison.errors import InputError
from unpoison.serve import Bounds, server
from unpoison.serve.server import HEAD, KEEP_ALIVE, ServerConnection


def connection_class(most: int) -> type[ServerConnection]:
    """A class of connections with counts of its own."""
    own = {name: OrderedDict[Any, Any]() for name in ("waiting", "unread", "turns")}
    return type("Own", (ServerConnection,), {"most": most, **own})


Talk = Callable[[int], Awaitable[Any]]


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """The smallest application."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


def spoken_to(
    talk: Talk, most: int = 100, opened: type[ServerConnection] | None = None, app: Any = hello, stop: Any = None
) -> Any:
    """What `talk` finds, given the port of a server of `hello`; both run on one loop."""
    http = opened or connection_class(most)

    async def run() -> Any:
        config = uvicorn.Config(
            app, port=0, log_config=None, lifespan="off", http=http, ws="none", timeout_keep_alive=KEEP_ALIVE
        )
        running = uvicorn.Server(config)
        serving = asyncio.create_task(running.serve())
        while not running.started:
            await asyncio.sleep(0.01)
        try:
            async with asyncio.timeout(60):
                if stop is not None:
                    stop.append(running)
                return await talk(running.servers[0].sockets[0].getsockname()[1])
        finally:
            running.should_exit = True
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


REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\n"


async def reading(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body to its end and says how long it was."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return
        size, more = size + len(message["body"]), message["more_body"]
    await hello(scope, receive, send)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1_028 + b"0\r\n\r\n", 200),
        (b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1_029 + b"0\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked\r\n\r\n" + (b"1000\r\n" + b"x" * 4096 + b"\r\n") * 2_000 + b"0\r\n\r\n", 200),
    ],
    ids=["two lengths", "tiny chunks", "as many as there may be", "one more", "chunks"],
)
def test_what_is_read_in_two_ways_or_takes_long_to_read_ends_the_connection(sent: bytes, status: int) -> None:
    async def talk(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST + sent)
        reply = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return reply

    reply = spoken_to(talk, app=reading)
    assert reply.startswith(b"HTTP/1.1 %d " % status)
    assert (b"connection: close" in reply.lower()) == (status == 400)


@pytest.mark.parametrize("version", [b"0.9", b"1.2", b"2.0"])
def test_an_unknown_version_of_http_is_refused(version: bytes) -> None:
    async def talk(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/%s\r\nHost: x\r\n\r\n" % version)
        reply = await reader.read()
        writer.close()
        return reply

    assert spoken_to(talk).startswith(b"HTTP/1.1 400 ")


INFINITE = -1


@pytest.mark.parametrize(
    ("limits", "raised", "most"),
    [
        ((1024, 4096), 4096, 3968),
        ((1024, 100_000), 8320, 8192),
        ((1024, INFINITE), 8320, 8192),
        ((8320, 8320), None, 8192),
        ((100_000, 100_000), None, 8192),
        ((INFINITE, INFINITE), None, 8192),
        ((100, 200), 200, 128),
    ],
)
def test_as_many_connections_as_the_system_has_files_for(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], raised: int | None, most: int
) -> None:
    """8,192 as `docs/production.md` says, and 128 files are kept for other purposes."""
    set_to: list[tuple[int, int]] = []
    fake = SimpleNamespace(
        RLIM_INFINITY=INFINITE,
        RLIMIT_NOFILE=7,
        getrlimit=lambda _: limits,
        setrlimit=lambda _, pair: set_to.append(pair),
    )
    monkeypatch.setitem(sys.modules, "resource", fake)
    assert server.max_connections() == most
    assert set_to == ([] if raised is None else [(raised, limits[1])])


def test_the_bounds_of_connections_are_those_that_the_page_tells() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "production.md").read_text(encoding="utf-8")
    assert f"| connections | {server.CONNECTIONS:,}; {HEAD:g} s for a head" in page
    unread = f"{server.UNREAD // 2**20} MiB in all, {server.UNREAD_TIME:g} s each"
    assert f"| replies that are not read | {unread}" in page
    assert "stays open for two seconds" in page
    assert server.DRAIN == 2


def test_an_address_that_is_taken_or_wrong_is_said() -> None:
    with server.listen("127.0.0.1", 0) as listening:
        taken = int(server.address(listening).rpartition(":")[2])
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{taken}.*choose another address"):
            server.listen("127.0.0.1", taken)
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert server.address(SimpleNamespace(getsockname=lambda: ("::1", 9, 0, 0))) == "http://[::1]:9"


def test_replies_that_nobody_reads_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    size, connection = 16 * 2**20, connection_class(100)
    monkeypatch.setattr(server, "UNREAD", 3 * size)
    monkeypatch.setattr(server, "UNREAD_TIME", 9)

    async def large(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(size)})

    async def talk(port: int) -> tuple[int, int]:
        opened = []
        for _ in range(8):
            opened.append(await asyncio.open_connection("127.0.0.1", port, limit=1024))
            opened[-1][1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await opened[-1][0].readuntil(b"\r\n\r\n")
        while len(connection.unread) > 4:
            await asyncio.sleep(0)
        held, left = sum(connection.unread.values()), len(connection.unread)
        later(server.UNREAD_TIME + 1)
        while connection.unread:
            await asyncio.sleep(0.01)
        for _, writer in opened:
            writer.close()
        return held, left

    held, left = spoken_to(talk, opened=connection, app=large)
    assert 0 < held <= 3 * size
    assert 0 < left < 8


def test_a_new_connection_does_not_wait_for_each_of_a_hundred_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made, turns, step = list[Any](), [0], asyncio.base_events.BaseEventLoop._run_once  # type: ignore[attr-defined]
    monkeypatch.setattr(server, "log_to_stderr", lambda *_: None)
    monkeypatch.setattr(server, "_Maker", lambda make: make)
    monkeypatch.setattr(server._Server, "run", lambda self, sockets: made.append(self))
    server.serve(lambda: hello, server.listen("127.0.0.1", 0), bounds=Bounds())  # type: ignore[arg-type,return-value]

    def counted(loop: Any) -> None:
        turns[0] += 1
        step(loop)

    async def run() -> bytes:
        with server.listen("127.0.0.1", 0) as listening:
            serving = asyncio.create_task(made[0].serve([listening]))
            while not made[0].started:
                await asyncio.sleep(0.01)
            before = [socket.create_connection(listening.getsockname()) for _ in range(100)]  # the loop stands still
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            turns[0] = 0
            reply = await reader.readuntil(b"hi")
            writer.close()
            for other in before:
                other.close()
            made[0].should_exit = True
            await serving
            return reply

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "_run_once", counted)
    assert asyncio.run(run()).startswith(b"HTTP/1.1 200")
    assert turns[0] < 50


def test_the_rest_of_bodies_that_nobody_reads_is_taken_from_few_connections_in_a_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of thirty is read once more after its reply, before it is made to wait; then one in each turn."""
    reads, crowded, step = [0], [0], asyncio.base_events.BaseEventLoop._run_once  # type: ignore[attr-defined]
    connection = connection_class(100)

    def counted(self: Any, data: bytes) -> None:
        reads[0] += self.conn.our_state is h11.DONE
        ServerConnection.data_received(self, data)

    def turn(loop: Any) -> None:
        reads[0] = 0
        step(loop)
        crowded[0] += reads[0] > 10

    async def talk(port: int) -> None:
        flood = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        for reader, writer in flood:
            writer.write(REQUEST + b"Content-Length: 2000000\r\n\r\n")
            await reader.readuntil(b"hi")
        for _, writer in flood:
            writer.write(b"a" * 2_000_000)
        await asyncio.gather(*(writer.drain() for _, writer in flood))
        for _, writer in flood:
            writer.close()

    monkeypatch.setattr(connection, "data_received", counted)
    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "_run_once", turn)
    spoken_to(talk, opened=connection)
    assert crowded[0] <= 2


def test_requests_that_are_sent_ahead_hold_up_no_other_connection() -> None:
    """One of them is read in each turn of the loop, not one of each connection: of 2,500 few come before."""
    served = list[str]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        served.append(scope["path"])
        await hello(scope, receive, send)

    async def talk(port: int) -> list[str]:
        flood = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
        for _, writer in flood:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        while len(served) < 200:
            await asyncio.sleep(0)
        before = len(served)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"hi")
        between = served[before : served.index("/healthz")]
        for flooding, _ in flood:
            for _ in range(50):
                await flooding.readuntil(b"hi")
        for _, each in [*flood, (reader, writer)]:
            each.close()
        assert len(served) == 50 * 50 + 1  # all are answered
        return between

    assert len(spoken_to(talk, app=app)) < 25


def test_a_connection_that_is_open_when_the_service_stops_gets_one_more_reply_that_says_so() -> None:
    stop: list[uvicorn.Server] = []

    async def talk(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        idle, quiet = await asyncio.open_connection("127.0.0.1", port)
        for other, begun in ((writer, reader), (quiet, idle)):
            other.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await begun.readuntil(b"hi")
        stop[0].should_exit = True
        while stop[0].servers[0].is_serving():
            await asyncio.sleep(0.01)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        reply = await reader.read()
        later(server.DRAIN)
        assert await idle.read() == b""
        for other in (writer, quiet):
            other.close()
        return reply

    reply = spoken_to(talk, stop=stop)
    assert reply.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in reply
