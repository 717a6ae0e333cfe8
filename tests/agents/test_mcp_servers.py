"""Two hundred ways in which a server can answer badly: each ends in one answer for whoever waits, and in time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import pytest

from unpoison.agents.mcp_messages import McpGate
from unpoison.agents.mcp_proxy import Proxy, ProxyBounds
from unpoison.agents.mcp_servers import MessageLines, TooLong, dump, list_tools

GOOD = b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"fine"}]}}'

MESSAGES = {
    "nothing": b"",
    "good": GOOD,
    "nan": GOOD.replace(b'"fine"', b"NaN"),
    "infinity": GOOD.replace(b'"fine"', b"-Infinity"),
    "mark": b"\xef\xbb\xbf" + GOOD,
    "utf-16": GOOD.decode().encode("utf-16"),
    "deep": GOOD.replace(b'"fine"', b"[" * 20_000 + b"]" * 20_000),
    "batch": b"[" + GOOD + b"]",
    "both": GOOD[:-1] + b',"error":{"code":1,"message":"x"}}',
    "neither": b'{"jsonrpc":"2.0","id":7}',
    "list": b'{"jsonrpc":"2.0","id":7,"result":[]}',
    "text": b'{"jsonrpc":"2.0","id":7,"result":"x"}',
    "null": b'{"jsonrpc":"2.0","id":7,"result":null}',
    "error null": b'{"jsonrpc":"2.0","id":7,"error":null}',
    "error text": b'{"jsonrpc":"2.0","id":7,"error":"x"}',
    "error code": b'{"jsonrpc":"2.0","id":7,"error":{"code":"x","message":["y"]}}',
    "id text": GOOD.replace(b"7", b'"7"', 1),
    "id float": GOOD.replace(b'"id":7', b'"id":7.0'),
    "id list": GOOD.replace(b'"id":7', b'"id":[7]'),
    "id null": GOOD.replace(b'"id":7', b'"id":null'),
    "id twice": GOOD.replace(b'"id":7', b'"id":8,"id":7'),
    "content text": b'{"jsonrpc":"2.0","id":7,"result":{"content":"x"}}',
    "content null": b'{"jsonrpc":"2.0","id":7,"result":{"content":[null,1,[[]],{}]}}',
    "surrogate": GOOD.replace(b"fine", b"\\ud800"),
    "zero": GOOD.replace(b"fine", b"\\u0000"),
    "raw zero": GOOD.replace(b"fine", b"\0"),
    "bytes": GOOD.replace(b"fine", b"\xff\xfe"),
    "number": GOOD.replace(b'"fine"', b"1e99999"),
    "digits": GOOD.replace(b'"fine"', b"9" * 5_000),
    "huge": GOOD.replace(b"fine", b"x" * 70_000),
    "cut": GOOD[:40],
    "carriage": GOOD.replace(b",", b",\r"),
    "request too": GOOD[:-1] + b',"method":"x"}',
}

AFTER = {
    "ends": (b"\n",),
    "ends in the middle": (b"",),
    "hangs": (b"\n", None),
    "floods": (b"\n", b'{"jsonrpc":"2.0","method":"notifications/progress"}\n' * 50, None),
    "answers again": (b"\n" + GOOD + b"\n",),
    "babbles": (b"\nno message\n" * 30,),
}


class Hostile:
    """A server that sends these bytes in small pieces; None is a silence without end."""

    def __init__(self, *pieces: bytes | None) -> None:
        self.pieces = pieces

    async def send(self, line: bytes, message: dict[str, Any]) -> None: ...

    async def lines(self) -> AsyncIterator[bytes | TooLong]:
        lines = MessageLines(65_536)
        for piece in self.pieces:
            if piece is None:
                await asyncio.sleep(60)
                return
            for start in range(0, len(piece), 4_099):
                for line in lines.feed(piece[start : start + 4_099]):
                    yield line


async def replies(server: Hostile) -> list[dict[str, Any]]:
    to_host: list[bytes] = []
    gate = McpGate("me")
    tool = {"name": "fetch", "inputSchema": {"type": "object"}}
    gate.screen_reply("tools/list", {}, {"result": {"tools": [tool]}})
    proxy = Proxy(server, gate, to_host.append, ProxyBounds(message_bytes=65_536, seconds=0.2, bad_messages=10))  # type: ignore[arg-type]
    await proxy.from_host(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"fetch"}}')
    tasks = [asyncio.create_task(proxy.serve()), asyncio.create_task(proxy.expire())]
    async with asyncio.timeout(12):
        while not (found := [one for one in map(json.loads, to_host) if one.get("id") == 7]):
            await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


@pytest.mark.parametrize("after", AFTER)
def test_whoever_waits_is_answered_once_and_in_time(after: str) -> None:
    async def work() -> list[list[dict[str, Any]]]:
        return await asyncio.gather(*(replies(Hostile(message, *AFTER[after])) for message in MESSAGES.values()))

    assert len(list(product(MESSAGES, AFTER))) == 198
    for name, found in zip(MESSAGES, asyncio.run(work()), strict=True):
        assert len(found) == 1, name
        (reply,) = found
        assert ("result" in reply) != ("error" in reply), name
        assert "result" not in reply or isinstance(reply["result"], dict), name


class Listing:
    """A server that answers every request with this list of tools."""

    def __init__(self, tools: Any) -> None:
        self.tools, self.replies = tools, list[bytes]()

    async def start(self) -> None: ...
    async def close(self) -> None: ...

    async def send(self, line: bytes, message: dict[str, Any]) -> None:
        self.replies.append(dump({"jsonrpc": "2.0", "id": message.get("id"), "result": {"tools": self.tools}}))

    async def lines(self) -> AsyncIterator[bytes]:
        while self.replies:
            yield self.replies.pop(0)


@pytest.mark.parametrize("tools", [5, None, True, "abc", {"a": 1}, [], ["a", None, {"name": "fetch"}]])
def test_what_is_no_list_of_tools_has_none_to_approve(tools: Any) -> None:
    found = asyncio.run(list_tools(Listing(tools), 30))
    assert found == ([{"name": "fetch"}] if tools and isinstance(tools, list) else [])
