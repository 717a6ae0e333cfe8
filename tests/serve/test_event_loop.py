"""Nothing that grows with a request runs on the event loop, so that `/healthz` is answered meanwhile.

The processor's time of each step of the loop is measured, which other work on the machine does not change.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from service_doubles import Cuts, Serving
from unpoison.models import FunctionGenerator

MOST = 0.1
"""Seconds of one step: what `/healthz` may wait for."""

BIG = "9" * 4_000
WORDS = "e\u0301" * 50_000
NAMES = ",".join(f'"k{i}":1' for i in range(50_000))
BODIES = {
    "long passage": ("/v1/screen", json.dumps({"query": "q", "passages": [WORDS]})),
    "long answer": ("/v1/answer", json.dumps({"query": "q", "passages": [WORDS]})),
    "long stream": ("/v1/answer", json.dumps({"query": "q", "passages": [WORDS], "stream": True})),
    "long document": ("/v2/rerank", json.dumps({"query": "q", "documents": [WORDS], "return_documents": True})),
    "long text": ("/rerank", json.dumps({"query": "q", "texts": [WORDS], "return_text": True})),
    "play": ("/play", json.dumps({"query": "q", "passages": [WORDS]})),
    "one field many times": (
        "/v1/rerank",
        json.dumps({"query": "q", "documents": [{"text": "a" * 3_000}] * 900, "rank_fields": ["text"] * 100}),
    ),
    "huge integers": ("/v1/screen", '{"query":"q","passages":[{"text":"a","x":[' + ",".join([BIG] * 900) + "]}]}"),
    "huge ids": ("/v1/screen", '{"query":"q","passages":[' + ",".join([f'{{"text":"a","id":{BIG}}}'] * 300) + "]}"),
    "one number": ("/v1/screen", '{"query":"q","passages":["a"],"embedding":[' + "9" * 4_000_000 + "]}"),
    "not a number": ("/v1/screen", '{"query":"q","passages":["a"],"embedding":[' + ",".join(["NaN"] * 300_000) + "]}"),
    "nested": ("/v1/screen", '{"query":"q","passages":' + "[" * 60_000 + "]" * 60_000 + "}"),
    "keys": ("/v1/screen", '{"query":"q","passages":[{"text":"a","metadata":{' + NAMES + "}}]}"),
    "one key many times": ("/v1/screen", "{" + '"query":"q",' * 90_000 + '"passages":["a"]}'),
    "a long key": ("/v1/screen", '{"query":"q","passages":["a"],"' + "k" * 4_000_000 + '":1}'),
    "surrogates": ("/v1/screen", '{"query":"q","passages":["' + "\\ud800" * 1_000_000 + '"]}'),
    "quotes": ("/v1/screen", '"' * 4_000_000),
}


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The seconds of the longest step of the loop, and what ran."""
    found, run = [0.0, ""], asyncio.events.Handle._run  # type: ignore[attr-defined]

    def timed(handle: Any) -> None:
        began = time.thread_time()
        run(handle)
        if (took := time.thread_time() - began) > found[0]:
            found[:] = took, repr(handle)

    monkeypatch.setattr(asyncio.events.Handle, "_run", timed)
    yield found


@pytest.mark.parametrize("name", BODIES)
def test_the_event_loop_is_free(serving: Serving, longest: list[Any], name: str) -> None:
    client = serving({"cuts": Cuts(generator=FunctionGenerator(lambda prompt: "a"))})
    client.post("/v1/screen", json={"query": "q", "passages": ["a"]})  # what is loaded once
    client.post("/play", json={"query": "q", "passages": ["a"]})
    path, content = BODIES[name]
    longest[0] = 0.0
    reply = client.post(path, content=content.encode(), headers={"Content-Type": "application/json"})
    assert reply.status_code in (200, 400, 422), reply.text
    assert longest[0] < MOST, longest
