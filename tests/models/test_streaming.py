"""Replies as they come, from servers that speak OpenAI's and Anthropic's stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from servers import serving
from unpoison.core.answers import Reply
from unpoison.errors import ModelError
from unpoison.models import AnthropicGenerator, CachedGenerator, OpenAIGenerator
from unpoison.models.prompts import Prompt
from unpoison.models.protocols import StreamingGenerator

PROMPT = Prompt("free", "s", "where")
WORDS = ["in", " Paris,", " on", " the", " Seine"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as address:
        yield address


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.needs(name)) for name in ("openai", "anthropic")])
def made(request: pytest.FixtureRequest, url: str) -> Any:
    if request.param == "openai":
        return lambda model, **options: OpenAIGenerator(model, f"{url}/v1", "key", **options)
    return lambda model, **options: AnthropicGenerator(model, "key", base_url=url, **options)


def heard(generator: Any) -> list[str | Reply]:
    async def all_of() -> list[str | Reply]:
        return [piece async for piece in generator.astream(PROMPT, timeout=30)]

    return asyncio.run(all_of())


def test_pieces_come_and_then_the_whole(made: Any) -> None:
    assert isinstance(made("words"), StreamingGenerator)
    assert heard(made("words")) == [*WORDS, Reply("in Paris, on the Seine", 7, 5)]


def test_a_stream_that_breaks_off_is_no_reply(made: Any) -> None:
    with pytest.raises(ModelError, match=r"broke off|failed"):
        heard(made("half"))


def test_a_cache_streams_and_keeps_what_is_whole(made: Any, tmp_path: Path) -> None:
    cached = CachedGenerator(made("words"), path=tmp_path / "replies")
    assert heard(cached) == [*WORDS, Reply("in Paris, on the Seine", 7, 5)]
    text, reply = heard(cached)
    assert (text, reply.cached) == ("in Paris, on the Seine", True)  # type: ignore[union-attr]
    half = CachedGenerator(made("half"))
    with pytest.raises(ModelError):
        heard(half)
    with pytest.raises(ModelError):
        heard(half)


def test_who_stops_listening_ends_the_call(made: Any) -> None:
    async def first(stream: AsyncIterator[str | Reply]) -> str | Reply:
        async with aclosing(stream):  # type: ignore[type-var]
            return await anext(stream)

    assert asyncio.run(first(made("words").astream(PROMPT))) == "in"
