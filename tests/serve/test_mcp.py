"""The tools of the Model Context Protocol, spoken to by the official client: in memory and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp
import pytest

from service_doubles import POISONED, Broken, Marked, Serving, body
from unpoison.serve import Bounds
from unpoison.serve.keys import Keys
from unpoison.serve.mcp import create_server
from unpoison.serve.metrics import Metrics
from unpoison.serve.screening_service import Choices, ScreeningService
from unpoison.serve.work import Work

pytestmark = pytest.mark.needs("mcp")

CALL = {"query": "which word", "passages": POISONED}


@asynccontextmanager
async def talking(defense: Any, **bounds: Any) -> AsyncIterator[Any]:
    service = ScreeningService(choices=Choices({"one": defense}), bounds=Bounds(**bounds), metrics=Metrics())
    service.work = Work(2)
    try:
        async with mcp.Client(create_server(service)) as client:
            yield client
    finally:
        service.work.close()


def called(name: str, arguments: Any, defense: Any = None, **bounds: Any) -> Any:
    async def call() -> Any:
        async with talking(defense or Marked(), **bounds) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(call())


def test_agents_see_two_tools_that_only_read_and_what_they_are_for() -> None:
    async def listed() -> Any:
        async with talking(Marked()) as client:
            return await client.list_tools()

    found = {tool.name: tool for tool in asyncio.run(listed()).tools}
    assert set(found) == {"screen", "explain"}
    assert all(tool.annotations.read_only_hint and tool.description for tool in found.values())
    assert set(found["screen"].input_schema["required"]) == {"query", "passages"}


def test_screen_says_what_the_service_says(serving: Serving) -> None:
    result = called("screen", CALL)
    assert not result.is_error
    assert result.structured_content == serving().post("/v1/screen", json=body()).json()["screening"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({**CALL, "defense": "two"}, "no defense"),
        ({**CALL, "passages": ["x"] * 11}, "at most 10"),
        ({**CALL, "query": "x" * 101}, "at most 100"),
        ({**CALL, "passages": [{"id": 1}]}, "text"),
        ({**CALL, "passages": [3]}, "text"),
        ({"query": "q"}, "passages"),
    ],
)
def test_mistakes_are_told_to_the_agent(arguments: Any, said: str) -> None:
    result = called("screen", arguments, passages=10, characters=100)
    assert result.is_error
    assert said in result.content[0].text


def test_a_bug_quotes_no_passage(caplog: pytest.LogCaptureFixture) -> None:
    result = called("screen", {**CALL, "passages": ["a secret", "another"]}, Broken())
    assert result.is_error
    assert "fault of the server" in result.content[0].text
    assert "secret" not in result.content[0].text + caplog.text


def rpc(method: str, **parameters: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}


BOTH = {"Accept": "application/json, text/event-stream"}


def test_over_http_every_method_asks_for_a_key_and_no_stream_stays_open(serving: Serving, logged: Any) -> None:
    client = serving(keys=Keys.of("may screen", "a"), mcp=True)
    call = rpc("tools/call", name="screen", arguments=CALL)
    own = {**BOTH, "Authorization": "Bearer may screen"}
    assert client.post("/mcp", json=call, headers=BOTH).status_code == 401
    assert client.get("/mcp", headers=BOTH).status_code == 401
    assert client.get("/mcp", headers=own).status_code == 405
    reply = client.post("/mcp", json=call, headers=own)
    assert reply.status_code == 200, reply.text
    assert reply.json()["result"]["structuredContent"]["kept"] == [2, 0]
    assert (logged()[-1]["route"], logged()[-1]["key"]) == ("/mcp", "a")
    told = client.get("/metrics", headers={"Authorization": "Bearer may screen"}).text
    assert 'unpoison_passages_total{defense="marked",verdict="dropped"} 2.0' in told
    assert serving().post("/mcp", json=call, headers=BOTH).status_code == 404
