"""Generators made of functions."""

from __future__ import annotations

import asyncio

import pytest

from unpoison.core.answers import Reply
from unpoison.errors import ModelError
from unpoison.models import FunctionGenerator
from unpoison.models.prompts import Message, answer_prompt
from unpoison.models.protocols import AsyncGenerator, Models
from unpoison.models.requests import generate
from unpoison.runtime.driver import Limits, arun, run

PROMPT = answer_prompt("who?", ["Ann did it."])


def plain(messages: list[Message]) -> str:
    return f"{len(messages)} messages, the last from the {messages[-1]['role']}"


async def asynchronous(messages: list[Message]) -> str:
    await asyncio.sleep(0)
    return plain(messages)


@pytest.mark.parametrize("function", [plain, asynchronous])
def test_both_kinds_of_function_serve_both_kinds_of_call(function: object) -> None:
    generator = FunctionGenerator(function)
    assert isinstance(generator, AsyncGenerator)
    expected = Reply("2 messages, the last from the user")
    assert generator.generate(PROMPT) == expected
    assert asyncio.run(generator.agenerate(PROMPT)) == expected
    assert run(generate([PROMPT]), Models(generator=generator))[0] == [expected]
    assert asyncio.run(arun(generate([PROMPT]), Models(generator=generator)))[0] == [expected]


@pytest.mark.parametrize("result", [None, 3, b"bytes", ["text"]])
def test_anything_else_is_refused(result: object) -> None:
    with pytest.raises(ModelError, match="must return a string"):
        FunctionGenerator(lambda _: result).generate(PROMPT)


def test_an_asynchronous_function_is_stopped_at_its_timeout() -> None:
    async def forever(messages: list[Message]) -> str:
        await asyncio.sleep(3600)
        return ""

    generator = FunctionGenerator(forever)
    with pytest.raises(TimeoutError):
        generator.generate(PROMPT, timeout=0.01)
    with pytest.raises(ModelError, match=r"forever.*TimeoutError"):
        run(generate([PROMPT]), Models(generator=generator), Limits(timeout=0.01, retries=1, backoff=0.01))
