"""The Anthropic adapter against a real server process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers import serving
from unpoison.models.anthropic import AnthropicGenerator
from unpoison.models.prompts import answer_prompt
from unpoison.models.protocols import AsyncGenerator

pytestmark = pytest.mark.needs("anthropic")

KEY = "sk-ant-very-secret-0123456789"
PROMPT = answer_prompt("What is the capital of France?", ["Paris is the capital of France.", "Lyon \ud83d is a city."])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as address:
        yield address


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))


def generator(url: str, model: str, **options: object) -> AnthropicGenerator:
    return AnthropicGenerator(model, KEY, base_url=url, **options)


def test_a_reply_with_its_tokens(url: str) -> None:
    made = generator(url, "ok")
    assert isinstance(made, AsyncGenerator)
    reply = made.generate(PROMPT, timeout=60)
    assert (reply.text, reply.finish, reply.prompt_tokens, reply.completion_tokens) == ("Paris", "stop", 11, 3)
    assert asyncio.run(made.agenerate(PROMPT, timeout=60)) == reply
    assert made.name == f"anthropic:ok@{url.removeprefix('http://').partition('/')[0]}"


def test_what_is_sent(url: str) -> None:
    sent = json.loads(generator(url, "echo").generate(PROMPT).text)
    system, user = PROMPT.messages()
    assert sent == {
        "model": "echo",
        "system": system["content"],
        "messages": [{"role": "user", "content": user["content"].replace("\ud83d", "?")}],
        "max_tokens": PROMPT.max_tokens,
        "temperature": 0.0,
    }
    sent = json.loads(generator(url, "echo", temperature=None, max_tokens=2000).generate(PROMPT, timeout=60).text)
    assert "temperature" not in sent and sent["max_tokens"] == 2000


@pytest.mark.parametrize(
    ("model", "text", "finish"),
    [("empty", "", "stop"), ("cut", "Paris", "length"), ("refusal", "Paris", "refusal"), ("parts", "Paris", "stop")],
)
def test_unusual_replies_have_a_defined_result(url: str, model: str, text: str, finish: str) -> None:
    reply = generator(url, model).generate(PROMPT)
    assert (reply.text, reply.finish) == (text, finish)
