"""The OpenAI adapters against a real server process."""

from __future__ import annotations

import asyncio
import json
import socket
import traceback
from collections.abc import Iterator
from contextlib import suppress
from select import select
from threading import Event

import httpx
import numpy as np
import openai
import pytest

from servers import serving, statistics, vector
from unpoison.errors import ModelError, OptionError
from unpoison.models import responses
from unpoison.models.openai import OpenAIEncoder, OpenAIGenerator
from unpoison.models.prompts import answer_prompt
from unpoison.models.protocols import AsyncGenerator, Encoder, Models
from unpoison.models.requests import generate
from unpoison.models.responses import MAX_REPLY_CHARS
from unpoison.runtime.driver import Limits, arun, run
from unpoison.utils.threads import start_thread

pytestmark = pytest.mark.needs("openai")

KEY = "sk-very-secret-0123456789"
PROMPT = answer_prompt("What is the capital of France?", ["Paris is the capital of France.", "Lyon is a city."])
FAST = Limits(backoff=0.01)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as address:
        yield address


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)


def generator(url: str, model: str, **options: object) -> OpenAIGenerator:
    return OpenAIGenerator(model, f"{url}/v1", KEY, **options)


def failure(url: str, model: str, timeout: float | None = 60.0) -> ModelError:
    """The error of one call, the same from both ways to call, and free of the key."""
    made = generator(url, model)
    with pytest.raises(ModelError) as one:
        made.generate(PROMPT, timeout=timeout)
    with pytest.raises(ModelError) as other:
        asyncio.run(made.agenerate(PROMPT, timeout=timeout))
    assert str(one.value) == str(other.value)
    assert one.value.retryable == other.value.retryable
    assert KEY not in "".join(traceback.format_exception(one.value))
    return one.value


def test_a_reply_with_its_tokens(url: str) -> None:
    made = generator(url, "ok")
    assert isinstance(made, AsyncGenerator)
    reply = made.generate(PROMPT, timeout=60)
    assert (reply.text, reply.finish, reply.prompt_tokens, reply.completion_tokens) == ("Paris", "stop", 11, 3)
    assert asyncio.run(made.agenerate(PROMPT, timeout=60)) == reply
    place = url.removeprefix("http://").partition("/")[0]
    assert made.name == f"openai:ok@{place}"
    assert generator(url, "ok", temperature=None, max_tokens=9).name == f"{made.name},temperature=None,max_tokens=9"


def test_what_is_sent(url: str) -> None:
    sent = json.loads(generator(url, "echo").generate(PROMPT).text)
    assert sent == {"model": "echo", "messages": PROMPT.messages(), "max_tokens": PROMPT.max_tokens, "temperature": 0.0}
    options = {"temperature": None, "seed": 7, "max_tokens": 2000, "max_tokens_field": "max_completion_tokens"}
    sent = json.loads(generator(url, "echo", **options, extra_body={"think": False}).generate(PROMPT).text)
    del sent["messages"]
    assert sent == {"model": "echo", "max_completion_tokens": 2000, "seed": 7, "think": False}


@pytest.mark.parametrize(
    ("model", "text", "finish"),
    [
        ("empty", "", "stop"),
        ("cut", "Paris", "length"),
        ("thinking", "", "length"),
        ("refusal", "I can't help with that.", "refusal"),
        ("filtered", "", "refusal"),
    ],
)
def test_unusual_replies_have_a_defined_result(url: str, model: str, text: str, finish: str) -> None:
    reply = generator(url, model).generate(PROMPT)
    assert (reply.text, reply.finish) == (text, finish)


def test_a_reply_of_a_megabyte_is_cut_and_says_so(url: str) -> None:
    reply = generator(url, "long").generate(PROMPT)
    assert (len(reply.text), reply.finish) == (MAX_REPLY_CHARS, "length")


def test_a_reply_is_read_to_a_bound(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "MAX_REPLY_BYTES", 100_000)
    assert "100,000 bytes that are read" in str(failure(url, "long"))


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "OPENAI_API_KEY"),
        (403, "may not use"),
        (404, "model's name"),
        (400, "temperature=None"),
        (422, "out of order"),
        (307, "redirects"),
        (301, "redirects"),
    ],
)
def test_a_refused_request_says_what_to_fix(url: str, status: int, says: str) -> None:
    error = failure(url, f"status/{status}")
    assert not error.retryable
    assert says in str(error) and str(status) in str(error)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("0.25", 0.25), ("-3", 0), ("999999999", 3600), ("inf", None), ("soon", None), ("Wed, 33 Oct 2015", None)],
)
def test_retry_after_is_bounded(url: str, header: str, seconds: float | None) -> None:
    assert failure(url, f"after/{header}").retry_after == seconds


def test_a_name_tells_servers_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the key of cached replies."""
    bases = ["http://a:1/v1", "http://a:1/team/v1", "http://a:1/other/v1/", "https://b/v1", "http://a:2/v1"]
    names = [OpenAIGenerator("m", base, KEY).name for base in bases]
    assert names == ["openai:m@a:1", "openai:m@a:1/team/v1", "openai:m@a:1/other/v1", "openai:m@b", "openai:m@a:2"]
    with openai.OpenAI(base_url="http://a:1/team/v1", api_key=KEY) as client:
        assert OpenAIGenerator("m", client=client).name == names[1]
    assert (
        OpenAIGenerator("m", None, KEY).name
        == OpenAIGenerator("m", "https://api.openai.com/v1", KEY).name
        == "openai:m"
    )
    monkeypatch.setenv("OPENAI_BASE_URL", "http://a:1/team/v1")
    assert OpenAIGenerator("m", None, KEY).name == OpenAIEncoder("m", None, KEY).name == names[1]


def test_an_address_without_a_scheme_is_refused_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match=r"write http://127\.0\.0\.1:9/v1"):
        OpenAIGenerator("m", "127.0.0.1:9/v1", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "models.example/v1")
    with pytest.raises(OptionError, match=r"write https://models\.example/v1"):
        OpenAIGenerator("m")


def test_a_missing_key_is_said_in_our_words() -> None:
    with pytest.raises(OptionError, match=r"^no API key for 'm'; set OPENAI_API_KEY, or .*base_url=http"):
        OpenAIGenerator("m")


def test_no_proxy_of_the_environment_stands_before_a_server_of_this_machine(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    made = generator(url, "ok")
    assert made.generate(PROMPT).text == asyncio.run(made.agenerate(PROMPT)).text == "Paris"


def test_a_reply_that_trickles_is_given_up_at_the_timeout_and_the_server_is_told() -> None:
    told = Event()

    def trickle() -> None:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
            while True:
                connection.sendall(b" ")
                if select([connection], [], [], 0.02)[0] and not connection.recv(1):
                    break
        told.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        start_thread(trickle)
        made = generator(f"http://127.0.0.1:{listening.getsockname()[1]}", "m")
        with pytest.raises(ModelError, match="in time") as error:
            made.generate(PROMPT, timeout=0.3)
    assert error.value.retryable
    assert told.wait(30)


@pytest.mark.parametrize("content", [b"[" * 200_000, b'{"usage":' + b"9" * 5_000 + b"}"], ids=["deep", "digits"])
def test_json_that_python_does_not_read_is_no_response(content: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = httpx.MockTransport(lambda request: httpx.Response(200, content=content, headers=headers))
    client = openai.OpenAI(api_key=KEY, base_url="http://a.example", http_client=httpx.Client(transport=answer))
    with pytest.raises(ModelError, match="sent a response that its API does not"):
        OpenAIGenerator("m", client=client).generate(PROMPT)


def test_a_key_that_no_header_holds_is_an_option_error(url: str) -> None:
    with pytest.raises(OptionError, match=r"^no API key for 'ok'; set OPENAI_API_KEY"):
        OpenAIGenerator("ok", url, "\udcff").generate(PROMPT)


def test_the_key_is_shown_nowhere(url: str) -> None:
    error = failure(url, "indiscreet")
    assert "[key]" in str(error)
    made = generator(url, "ok")
    assert KEY not in repr(made) + str(vars(made)) + made.name


def test_a_server_that_is_too_slow_or_hangs_up_or_is_not_there(url: str) -> None:
    assert "in time" in str(failure(url, "held", timeout=0.2))
    assert "connection" in str(failure(url, "reset"))
    gone = OpenAIGenerator("ok", "http://user:secret@127.0.0.1:9/v1", KEY)
    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:9/v1/ failed") as error:
        gone.generate(PROMPT, timeout=60)
    assert error.value.retryable


def test_the_users_own_client(url: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=5) as client:
        made = OpenAIGenerator("ok", client=client)
        assert made.generate(PROMPT).text == "Paris"
        assert asyncio.run(made.agenerate(PROMPT)).text == "Paris"
        with pytest.raises(ModelError):
            OpenAIGenerator("status/500/own", client=client).generate(PROMPT)
    assert statistics(url)["calls"]["status/500/own"] == 1, "the SDK's own retries are off"


def test_the_users_own_asynchronous_client(url: str) -> None:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as client:
            made = OpenAIGenerator("ok", client=client)
            with pytest.raises(OptionError, match="asynchronous client"):
                made.generate(PROMPT)
            return (await made.agenerate(PROMPT)).text

    assert asyncio.run(ask()) == "Paris"


@pytest.mark.parametrize("kind", ["flaky/429", "flaky/503"])
@pytest.mark.parametrize("runner", [run, lambda *a: asyncio.run(arun(*a))])
def test_the_driver_retries(url: str, kind: str, runner: object) -> None:
    made = generator(url, f"{kind}/{id(runner)}")
    replies, calls = runner(generate([PROMPT]), Models(generator=made), FAST)
    assert replies[0].text == "Paris"
    assert calls[0].attempts == 2


def test_embeddings_by_index_normalised_in_batches(url: str) -> None:
    encoder = OpenAIEncoder("plain", f"{url}/v1", KEY, batch_size=2)
    assert isinstance(encoder, Encoder)
    texts = ["one", "two", "  ", "three", "one", "\ud83d"]
    vectors = encoder.encode(texts)
    assert vectors.shape == (6, 4) and vectors.dtype == np.float32
    expected = np.array([vector(text.replace("\ud83d", "?"), 4) for text in texts])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    expected[2] = 0  # blank texts are not sent
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert statistics(url)["calls"]["plain"] == 3
    assert encoder.encode([]).shape == (0, 1)
    assert OpenAIEncoder("small", f"{url}/v1", KEY, dimensions=3).encode(["one", ""]).shape == (2, 3)
