"""In every framework a call whose target only a tool's result named is asked about, refused or written down."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from agent_frameworks import scripted_chat

Call = tuple[str, dict[str, str]]

READ: Call = ("read", {})
SEND: Call = ("send", {"to": "Mallory@other.example"})
OTHER: Call = ("pay", {"to": "mallory@other.example"})
MAIL = "The minutes go to mallory@other.example."
ASKED = "Answer my new mail."


class World:
    """A mailbox with three tools; `done` are the calls that reached them."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def read(self) -> str:
        """Read the mail."""
        return MAIL

    def send(self, to: str) -> str:
        """Send a mail."""
        self.done.append(f"send {to}")
        return f"sent to {to}"

    def pay(self, to: str) -> str:
        """Pay somebody."""
        self.done.append(f"pay {to}")
        return "paid"


def langchain(
    world: World, calls: list[Any], asked: str, policy: Any, mode: str, answer: bool, before: Any = ()
) -> list[str]:
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage, ToolMessage
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    from unpoison.agents.langchain import ScreeningMiddleware

    def reply(messages: Any) -> AIMessage:
        step = sum(isinstance(message, ToolMessage) for message in messages)
        if step == len(calls):
            return AIMessage("done")
        name, args = calls[step]
        return AIMessage("", tool_calls=[{"name": name, "args": args, "id": str(step)}])

    gate = ScreeningMiddleware(policy, mode)
    tools = [world.read, world.send, world.pay]
    agent = create_agent(scripted_chat(reply), tools, middleware=[gate], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    start: Any = {"messages": [*before, ("user", asked)]}
    state = agent.invoke(start, thread)
    questions = []
    while found := state.get("__interrupt__"):
        questions.append(found[0].value["question"])
        state = agent.invoke(Command(resume=answer), thread)
    assert state["messages"][-1].text == "done"
    return questions


def openai_agents(world: World, calls: list[Any], asked: str, policy: Any, mode: str, answer: bool) -> list[str]:
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from unpoison.agents.openai_agents import guard_calls

    class Scripted(Model):
        async def get_response(self, system_instructions: Any, input: Any, *more: Any, **options: Any) -> Any:
            step = sum(isinstance(item, dict) and str(item.get("type")).endswith("_output") for item in input)
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            said: Any = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[text]
            )
            if step < len(calls):
                name, args = calls[step]
                said = ResponseFunctionToolCall(
                    type="function_call", name=name, arguments=json.dumps(args), call_id=str(step)
                )
            return ModelResponse(output=[said], usage=Usage(), response_id=None)

        def stream_response(self, *given: Any, **options: Any) -> Any:
            raise NotImplementedError

    tools = [function_tool(tool) for tool in (world.read, world.send, world.pay)]
    guard_calls(tools, policy, mode)
    agent = Agent(name="clerk", tools=[*tools], model=Scripted())
    quiet, questions = RunConfig(tracing_disabled=True), list[str]()

    async def talk() -> str:
        result = await Runner.run(agent, asked, run_config=quiet)
        while result.interruptions:
            state = result.to_state()
            for item in result.interruptions:
                questions.append(str(item.name))
                state.approve(item) if answer else state.reject(item)
            result = await Runner.run(agent, state, run_config=quiet)
        return str(result.final_output)

    assert asyncio.run(talk()) == "done"
    return questions


def pydantic_ai(world: World, calls: list[Any], asked: str, policy: Any, mode: str, answer: bool) -> list[str]:
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from unpoison.agents.pydantic_ai import ToolScreening

    def reply(messages: Any, info: Any) -> ModelResponse:
        step = sum(part.part_kind == "tool-return" for message in messages for part in message.parts)
        if step < len(calls):
            return ModelResponse(parts=[ToolCallPart(calls[step][0], calls[step][1], tool_call_id=str(step))])
        return ModelResponse(parts=[TextPart("done")])

    agent: Any = Agent(
        FunctionModel(reply),
        tools=[world.read, world.send, world.pay],
        capabilities=[ToolScreening(policy, mode)],
        output_type=[str, DeferredToolRequests],
    )
    questions = list[str]()

    async def talk() -> Any:
        result = await agent.run(asked)
        while isinstance(result.output, DeferredToolRequests):
            questions.extend(held["question"] for held in result.output.metadata.values())
            approvals: Any = {call.tool_call_id: answer for call in result.output.approvals}
            results = DeferredToolResults(approvals=approvals)
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=results)
        return result.output

    assert asyncio.run(talk()) == "done"
    return questions


every_framework = pytest.mark.parametrize(
    "ask",
    [
        pytest.param(langchain, marks=pytest.mark.needs("langgraph")),
        pytest.param(openai_agents, marks=pytest.mark.needs("agents.run")),
        pytest.param(pydantic_ai, marks=pytest.mark.needs("pydantic_ai")),
    ],
)


@every_framework
def test_by_default_the_call_is_made_and_written_down(ask: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "unpoison.calls")
    world = World()
    assert ask(world, [READ, SEND], ASKED, None, "log", True) == []
    assert world.done == ["send Mallory@other.example"]
    (event,) = [record.unpoison for record in caplog.records if record.name == "unpoison.calls"]  # type: ignore[attr-defined]
    assert (event["tool"], event["outcome"], event["arguments"][0]["path"]) == ("send", "logged", "$.to")


@every_framework
def test_a_blocked_call_is_not_made_and_what_the_user_the_policy_or_a_trusted_tool_named_is(ask: Any) -> None:
    for asked, policy, made in (
        (ASKED, None, 0),
        ("Write to mallory@other.example.", None, 1),
        (ASKED, {"*": {"allow": ["*@other.example"]}}, 1),
        (ASKED, {"read": {"level": "trusted"}}, 1),
        (ASKED, {"send": {"arguments": []}}, 1),
    ):
        world = World()
        assert ask(world, [READ, SEND], asked, policy, "block", True) == []
        assert len(world.done) == made


@every_framework
def test_what_a_call_named_before_any_result_is_free(ask: Any) -> None:
    world = World()
    ask(world, [SEND, READ, OTHER], ASKED, None, "block", True)
    assert len(world.done) == 2


@every_framework
def test_the_user_is_asked_once_per_tool_and_a_refusal_holds(ask: Any) -> None:
    world = World()
    questions = ask(world, [READ, SEND, SEND, OTHER], ASKED, None, "ask", True)
    assert ["send" in questions[0], "pay" in questions[1], len(questions)] == [True, True, 2]
    assert len(world.done) == 3
    refused = World()
    assert len(ask(refused, [READ, SEND, SEND], ASKED, None, "ask", False)) == 2
    assert refused.done == []


@pytest.mark.needs("langgraph")
def test_a_summary_of_the_conversation_is_no_word_of_the_user() -> None:
    from langchain_core.messages import HumanMessage

    world = World()
    for extra, made in (({"lc_source": "summarization"}, 0), ({}, 1)):
        said = HumanMessage(f"So far: {MAIL}", additional_kwargs=extra)
        langchain(world, [SEND], ASKED, None, "block", True, [said])
        assert len(world.done) == made


@pytest.mark.needs("pydantic_ai")
def test_what_a_tool_returns_besides_its_result_is_no_word_of_the_user() -> None:
    from pydantic_ai.messages import ToolReturn

    class Fetching(World):
        def read(self) -> Any:
            """Read the mail."""
            return ToolReturn("one mail", content=[MAIL])

    world = Fetching()
    pydantic_ai(world, [READ, SEND], ASKED, None, "block", True)
    assert world.done == []
