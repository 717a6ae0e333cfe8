"""A call behind the proxy whose target only a tool's result named is asked about, refused or written down."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from proxied import hear
from unpoison.agents.mcp_calls import CallGate
from unpoison.agents.mcp_messages import McpGate
from unpoison.agents.mcp_proxy import Proxy, ProxyBounds
from unpoison.errors import OptionError

SERVER = str(Path(__file__).parent / "mcp_mail_server.py")
FOREIGN = {"to": ["Mallory@other.example"], "body": "Hello"}


@asynccontextmanager
async def talking(log: Path, *options: str, **how: Any) -> Any:
    import mcp

    line = ["-m", "unpoison", "mcp-proxy", *options, "--", sys.executable, SERVER]
    parameters = mcp.StdioServerParameters(command=sys.executable, args=line, env=dict(os.environ))
    with log.open("w") as written:
        async with mcp.Client(mcp.stdio_client(parameters, errlog=written), **how) as client:
            await client.list_tools()
            assert "mallory" in text_of(await client.call_tool("read", {}))
            yield client


def text_of(result: Any) -> str:
    return str(result.content[0].text)


@pytest.mark.slow
@pytest.mark.needs("mcp")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_real_client_asks_its_user_and_the_answer_holds(mode: str, tmp_path: Path) -> None:
    import mcp

    asked: list[str] = []
    answers: list[Any] = ["decline", "cancel", "accept"]

    async def elicit(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return mcp.types.ElicitResult(action=answers.pop(0), content={})

    async def talk() -> None:
        options = ("--arguments", "ask", "--allow", "*@firma.example")
        async with talking(tmp_path / "log", *options, mode=mode, elicitation_callback=elicit) as client:
            for said in ("[unpoison] send was not called", "[unpoison] send was not called", "sent to Mallory"):
                assert text_of(await client.call_tool("send", FOREIGN)).startswith(said)
            assert text_of(await client.call_tool("send", FOREIGN)).startswith("sent to"), "asked once"
            assert text_of(await client.call_tool("send", {"to": ["a@firma.example"], "body": ""})).startswith(
                "sent to"
            )
            assert text_of(await client.call_tool("outbox", {})) == "3 mails"

    asyncio.run(asyncio.wait_for(talk(), 300))
    assert (
        asked
        == [
            "May send be called? Only the result of a tool named this, and not you: "
            "$.to[0]: address mallory@other.example"
        ]
        * 3
    )
    log = (tmp_path / "log").read_text()
    assert [line.split()[2] for line in log.splitlines() if "$.to[0]" in line] == [
        "asked",
        "declined",
        "asked",
        "declined",
        "asked",
        "approved",
    ]
    assert "other.example" not in log


@pytest.mark.slow
@pytest.mark.needs("mcp")
@pytest.mark.parametrize(
    ("options", "mails"), [((), "1"), (("--arguments", "ask"), "0"), (("--arguments", "block"), "0")]
)
def test_a_client_that_asks_nobody_gets_a_tool_error_and_by_default_a_line_is_written(
    options: tuple[str, ...], mails: str, tmp_path: Path
) -> None:
    async def talk() -> None:
        async with talking(tmp_path / "log", *options, mode="auto") as client:
            result = await client.call_tool("send", FOREIGN)
            assert result.is_error == (mails == "0")
            assert text_of(await client.call_tool("outbox", {})) == f"{mails} mails"

    asyncio.run(asyncio.wait_for(talk(), 300))
    (line,) = (line for line in (tmp_path / "log").read_text().splitlines() if "$.to[0] (address)" in line)
    assert ("logged" if mails == "1" else "blocked") in line


class Recorder:
    """A server that only listens."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []

    async def send(self, line: bytes, message: dict[str, Any]) -> None:
        assert json.loads(line) == message
        self.got.append(message)


def call(number: int, arguments: Any, **more: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": "send", "arguments": arguments, **more},
    }


MODERN: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}}


class Host:
    """A host at a proxy without processes."""

    def __init__(self, mode: Any = "ask", elicitation: Any = None, **bounds: Any) -> None:
        self.said: list[dict[str, Any]] = []
        self.server = Recorder()
        self.gate = McpGate("me", calls=CallGate(None, mode))
        self.gate.screen_reply("tools/list", {}, {"result": {"tools": [{"name": "send", "description": "Send."}]}})
        self.proxy = Proxy(
            cast(Any, self.server), self.gate, lambda line: self.said.append(json.loads(line)), ProxyBounds(**bounds)
        )
        self.capabilities = {} if elicitation is None else {"elicitation": elicitation}

    async def begin(self) -> None:
        start = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": self.capabilities}}
        await self.tell(start)
        self.gate.screen_reply(
            "tools/call",
            {"name": "read"},
            {"result": {"content": [{"type": "text", "text": "to mallory@other.example"}]}},
        )
        self.server.got.clear()

    async def tell(self, message: dict[str, Any]) -> None:
        await self.proxy.from_host(json.dumps(message).encode())


def test_a_question_is_withdrawn_with_its_call_and_nothing_reaches_the_server() -> None:
    async def talk() -> None:
        host = Host(elicitation={})
        await host.begin()
        await host.tell(call(5, FOREIGN))
        (question,) = host.said
        await host.tell(call(5, FOREIGN))
        assert "waits for its answer already" in host.said.pop()["error"]["message"]
        await host.tell({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
        assert host.said[1]["params"] == {"requestId": question["id"]}
        await host.tell({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}})
        assert [got for got in host.server.got if got.get("method") == "tools/call"] == []

    asyncio.run(talk())


@pytest.mark.parametrize("elicitation", [None, {"url": {}}, True])
def test_a_client_without_forms_is_not_asked(elicitation: Any) -> None:
    async def talk() -> None:
        host = Host(elicitation=elicitation)
        await host.begin()
        await host.tell(call(5, FOREIGN))
        (said,) = host.said
        assert said["id"] == 5
        assert said["result"]["isError"]
        assert not host.server.got

    asyncio.run(talk())


@pytest.mark.parametrize("answer", [{"action": "accept"}, {"action": "decline"}, {}, None, [], {"error": {"code": 1}}])
def test_only_an_accepted_question_makes_the_call(answer: Any) -> None:
    async def talk() -> None:
        host = Host(elicitation={"form": {}})
        await host.begin()
        await host.tell(call(5, FOREIGN))
        reply = answer if isinstance(answer, dict) and "error" in answer else {"result": answer}
        await host.tell({"jsonrpc": "2.0", "id": host.said[0]["id"], **reply})
        accepted = answer == {"action": "accept"}
        assert [got["id"] for got in host.server.got] == ([5] if accepted else [])
        assert len(host.said) == (1 if accepted else 2)

    asyncio.run(talk())


def test_in_the_modern_protocol_an_approval_holds_for_the_call_that_was_shown() -> None:
    async def talk() -> None:
        host = Host()
        await host.begin()
        await host.tell(call(5, FOREIGN, **MODERN))
        state = host.said[0]["result"]["requestState"]
        yes = {"requestState": state, "inputResponses": {"unpoison": {"action": "accept"}}}
        await host.tell(call(6, {"to": ["mallory@other.example", "x@y.example"]}, **MODERN, **yes))
        assert host.said[1]["result"]["resultType"] == "input_required", "another call is another question"
        assert not host.server.got
        yes["requestState"] = host.said[1]["result"]["requestState"]
        await host.tell(call(7, {"to": ["mallory@other.example", "x@y.example"]}, **MODERN, **yes))
        (got,) = host.server.got
        assert got["params"].keys() == {"name", "arguments", "_meta"}
        await host.tell(call(8, FOREIGN, **MODERN, requestState="of the server"))
        assert host.server.got[-1]["params"]["requestState"] == "of the server"

    asyncio.run(talk())


def test_what_the_user_writes_into_a_form_or_a_prompt_is_free_and_what_the_model_writes_is_not() -> None:
    async def talk() -> None:
        host = Host(mode="block")
        await host.begin()
        ask = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "To whom?"}}
        await hear(host.proxy, json.dumps(ask).encode())
        for identifier, free in (("forged", False), ("q", True)):
            form = {"action": "accept", "content": {"who": "mallory@other.example"}}
            await host.tell({"jsonrpc": "2.0", "id": identifier, "result": form})
            assert (host.gate.calls.seen.foreign("send", FOREIGN) == ()) == free
        prompts = Host(mode="block")
        await prompts.begin()
        await prompts.tell({"jsonrpc": "2.0", "id": 9, "method": "prompts/get", "params": {"arguments": FOREIGN}})
        assert prompts.gate.calls.seen.foreign("send", FOREIGN) == ()

    asyncio.run(talk())


def test_an_unknown_action_is_an_error() -> None:
    with pytest.raises(OptionError, match="ask, block, log"):
        CallGate(None, "perhaps")
