"""An agent of each framework with a model that calls one tool and then says what it read: offline, the real loop."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

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


class LangChain:
    name, library = "langgraph", "langgraph"

    def ask(self, tool: Tool, policy: Any, way: str) -> str:
        from langchain.agents import create_agent
        from langchain_core.language_models import BaseChatModel
        from langchain_core.messages import AIMessage, ToolMessage
        from langchain_core.outputs import ChatGeneration, ChatResult

        from unpoison.agents.langchain import ScreeningMiddleware

        class Model(BaseChatModel):
            @property
            def _llm_type(self) -> str:
                return "scripted"

            def bind_tools(self, tools: Any, **options: Any) -> Any:
                return self

            def _generate(self, messages: Any, *more: Any, **options: Any) -> ChatResult:
                if isinstance(messages[-1], ToolMessage):
                    message = AIMessage(json.dumps(messages[-1].text))
                else:
                    message = AIMessage("", tool_calls=[{"name": "fetch", "args": {"url": URL}, "id": "1"}])
                return ChatResult(generations=[ChatGeneration(message=message)])

        def fetch(url: str) -> Any:
            """Fetch a page."""
            return tool(url)

        agent = create_agent(Model(), [fetch], middleware=[ScreeningMiddleware(policy)])
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


class LlamaIndex:
    name, library = "llamaindex", "llama_index.core"

    def ask(self, tool: Tool, policy: Any, way: str) -> str:
        from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
        from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
        from llama_index.core.llms.mock import MockFunctionCallingLLM
        from llama_index.core.tools.calling import call_tool

        from unpoison.agents.llamaindex import screening_tools

        def answer(messages: Any, **options: Any) -> ChatMessage:
            if messages[-1].role == MessageRole.TOOL:
                return ChatMessage(role="assistant", content=json.dumps(messages[-1].content))
            call = ToolCallBlock(tool_call_id="1", tool_name="fetch", tool_kwargs={"url": URL})
            return ChatMessage(role="assistant", blocks=[call])

        def fetch(url: str) -> Any:
            """Fetch a page."""
            return tool(url)

        tools = screening_tools([fetch], policy)
        if way == "sync":
            return call_tool(tools[0], {"url": URL}).content
        model = MockFunctionCallingLLM(response_generator=answer)
        agent = FunctionAgent(tools=tools, llm=model, streaming=False)

        async def run() -> tuple[str, list[Any]]:
            handler = agent.run("When was it built?")
            events = [event async for event in handler.stream_events()]
            return str(await handler), events

        said, events = asyncio.run(run())
        (streamed,) = [event.tool_output.content for event in events if isinstance(event, ToolCallResult)]
        assert streamed == json.loads(said)
        return streamed


class Haystack:
    name, library = "haystack", "haystack"

    def ask(self, tool: Tool, policy: Any, way: str) -> str:
        from haystack import component
        from haystack.components.agents import Agent
        from haystack.dataclasses import ChatMessage, ToolCall
        from haystack.tools import create_tool_from_function

        from unpoison.agents.haystack import screening_tools

        @component
        class Model:
            @component.output_types(replies=list[ChatMessage])
            def run(self, messages: list[ChatMessage], tools: Any = None, streaming_callback: Any = None) -> dict:
                if messages[-1].tool_call_result:
                    reply = ChatMessage.from_assistant(json.dumps(messages[-1].tool_call_result.result))
                else:
                    reply = ChatMessage.from_assistant(tool_calls=[ToolCall("fetch", {"url": URL})])
                return {"replies": [reply]}

        def fetch(url: str) -> str:
            """Fetch a page."""
            return tool(url)

        streamed: list[str] = []

        def watch(chunk: Any) -> None:
            if chunk.tool_call_result:
                streamed.append(chunk.tool_call_result.result)

        async def awatch(chunk: Any) -> None:
            watch(chunk)

        tools = screening_tools([create_tool_from_function(fetch)], policy)
        agent = Agent(chat_generator=Model(), tools=tools)
        agent.warm_up()
        question = [ChatMessage.from_user("When was it built?")]
        if way == "async":
            found = asyncio.run(agent.run_async(messages=question))
        else:
            found = agent.run(messages=question, streaming_callback=watch if way == "stream" else None)
        said = json.loads(found["last_message"].text)
        assert streamed == ([said] if way == "stream" else [])
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


FRAMEWORKS = [LangChain(), LlamaIndex(), Haystack(), OpenAIAgents(), PydanticAI()]
