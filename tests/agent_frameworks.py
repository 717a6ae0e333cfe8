"""An agent of each framework with a model that calls one tool and then says what it read: offline, the real loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

URL = "https://harbour.example/history"

Tool = Callable[[str], Any]
"""What stands behind the agent's only tool, `fetch(url)`."""


def with_own_loop(run: Callable[[], Any]) -> Any:
    """What a call without `await` returns that runs a loop of its own, of which nothing is left afterwards."""

    def enter() -> Any:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            return run()
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(enter).result()


def scripted_chat(reply: Callable[[Any], Any]) -> Any:
    """A chat model of LangChain that replies to the messages so far as a function says."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Model(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

        def _generate(self, messages: Any, *more: Any, **options: Any) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=reply(messages))])

    return Model()


class LangChain:
    name, library = "langgraph", "langgraph"

    def ask(self, tool: Tool, policy: Any, way: str) -> str:
        from langchain.agents import create_agent
        from langchain_core.messages import AIMessage, ToolMessage

        from unpoison.agents.langchain import ScreeningMiddleware

        def reply(messages: Any) -> AIMessage:
            if isinstance(messages[-1], ToolMessage):
                return AIMessage(json.dumps(messages[-1].text))
            return AIMessage("", tool_calls=[{"name": "fetch", "args": {"url": URL}, "id": "1"}])

        def fetch(url: str) -> Any:
            """Fetch a page."""
            return tool(url)

        agent = create_agent(scripted_chat(reply), [fetch], middleware=[ScreeningMiddleware(policy)])
        question: Any = {"messages": [{"role": "user", "content": "When was it built?"}]}
        if way == "sync":
            messages = agent.invoke(question)["messages"]
        elif way == "async":
            messages = asyncio.run(agent.ainvoke(question))["messages"]
        else:
            events = list(agent.stream(question, stream_mode="updates"))
            messages = [message for event in events for part in event.values() for message in part["messages"]]
        said = json.loads(messages[-1].text)
        assert messages[-2].text == said, "what is saved and streamed is what the model read"
        return said


class OpenAIAgents:
    name, library = "openai-agents", "agents.run"

    def ask(self, tool: Tool, policy: Any, way: str) -> str:
        from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
        from openai.types.responses import (
            Response,
            ResponseCompletedEvent,
            ResponseFunctionToolCall,
            ResponseOutputMessage,
            ResponseOutputText,
        )

        from unpoison.agents.openai_agents import screening_guardrail

        class Scripted(Model):
            def reply(self, given: Any) -> Any:
                results = [item for item in given if isinstance(item, dict) and item.get("type", "").endswith("output")]
                if not results:
                    call = {"name": "fetch", "arguments": json.dumps({"url": URL}), "call_id": "1"}
                    return ResponseFunctionToolCall(type="function_call", **call)
                text = ResponseOutputText(type="output_text", text=json.dumps(results[-1]["output"]), annotations=[])
                return ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )

            async def get_response(self, system_instructions: Any, input: Any, *more: Any, **options: Any) -> Any:
                return ModelResponse(output=[self.reply(input)], usage=Usage(), response_id=None)

            async def stream_response(self, system_instructions: Any, input: Any, *more: Any, **options: Any) -> Any:
                response = Response.model_construct(id="r", output=[self.reply(input)], usage=None)
                yield ResponseCompletedEvent.model_construct(type="response.completed", response=response)

        @function_tool(tool_output_guardrails=[screening_guardrail(policy)])
        def fetch(url: str) -> Any:
            """Fetch a page."""
            return tool(url)

        agent = Agent(name="reader", tools=[fetch], model=Scripted())
        quiet = RunConfig(tracing_disabled=True)

        async def stream() -> tuple[str, list[Any]]:
            result = Runner.run_streamed(agent, "When was it built?", run_config=quiet)
            events = [event async for event in result.stream_events()]
            return result.final_output, [e.item.output for e in events if getattr(e, "name", "") == "tool_output"]

        if way == "sync":
            run = with_own_loop(lambda: Runner.run_sync(agent, "When was it built?", run_config=quiet))
            return json.loads(run.final_output)
        if way == "async":
            return json.loads(asyncio.run(Runner.run(agent, "When was it built?", run_config=quiet)).final_output)
        said, streamed = asyncio.run(stream())
        assert streamed == [json.loads(said)]
        return streamed[0]


class PydanticAI:
    name, library = "pydantic-ai", "pydantic_ai"

    def ask(self, tool: Tool, policy: Any, way: str) -> str:
        from pydantic_ai import Agent, FunctionToolResultEvent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import DeltaToolCall, FunctionModel

        from unpoison.agents.pydantic_ai import ToolScreening

        def last(messages: Any) -> str | None:
            part = messages[-1].parts[-1]
            return part.model_response_str(wrap_if_error=False) if part.part_kind == "tool-return" else None

        def answer(messages: Any, info: Any) -> ModelResponse:
            said = last(messages)
            call = ToolCallPart("fetch", {"url": URL})
            return ModelResponse(parts=[call if said is None else TextPart(json.dumps(said))])

        async def stream(messages: Any, info: Any) -> Any:
            said = last(messages)
            yield {0: DeltaToolCall("fetch", json.dumps({"url": URL}))} if said is None else json.dumps(said)

        agent = Agent(FunctionModel(answer, stream_function=stream), capabilities=[ToolScreening(policy)])

        @agent.tool_plain
        def fetch(url: str) -> Any:
            """Fetch a page."""
            return tool(url)

        if way == "sync":
            return json.loads(with_own_loop(lambda: agent.run_sync("When was it built?").output))
        streamed: list[str] = []

        async def watch(context: Any, events: Any) -> None:
            results = [event async for event in events if isinstance(event, FunctionToolResultEvent)]
            streamed.extend(event.part.model_response_str(wrap_if_error=False) for event in results)

        if way == "async":
            return json.loads(asyncio.run(agent.run("When was it built?")).output)
        said = json.loads(asyncio.run(agent.run("When was it built?", event_stream_handler=watch)).output)
        assert streamed == [said]
        return said


FRAMEWORKS = [LangChain(), OpenAIAgents(), PydanticAI()]
