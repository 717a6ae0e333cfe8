"""Answers as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from service_doubles import Marked, Serving, body, later, problem
from unpoison.core.answers import Reply
from unpoison.errors import ModelError
from unpoison.models import ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison.screener.screener import Event
from unpoison.serve import Bounds, routes


class Speaking(ScriptedGenerator):
    """Says its reply in two pieces; what begins with an error fails in between."""

    async def astream(self, prompt: Prompt, /, *, timeout: float | None = None) -> AsyncIterator[str | Reply]:
        reply = self.generate(prompt)
        yield reply.text[:3]
        if reply.text.startswith("bad"):
            raise ModelError("went\n\nevent: answer\ndata: away")
        yield reply.text[3:]
        yield reply


def events(response: Any) -> list[tuple[str, Any]]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    parts = [part.split("\n") for part in response.text.split("\n\n") if part]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


def asking(serving: Serving, text: str, **options: Any) -> Any:
    client = serving({"marked": Marked(generator=Speaking(text))}, **options)
    return client.post("/v1/answer", json=body(stream=True))


def test_screening_text_answer(serving: Serving) -> None:
    found = events(asking(serving, "Oslo\n\nevent: answer\ndata: {}"))
    assert [name for name, _ in found] == ["screening", "text", "text", "answer"]
    assert found[0][1]["screening"]["kept"] == [2, 0]
    assert "".join(data["text"] for name, data in found if name == "text") == found[3][1]["answer"]["text"]
    assert found[3][1]["screening"]["kept"] == [2, 0]
    assert found[3][1]["generator"]


def test_a_model_that_breaks_off_ends_the_stream_with_a_sentence(serving: Serving, logged: Any) -> None:
    found = events(asking(serving, "bad news"))
    assert [name for name, _ in found] == ["screening", "text", "error"]
    assert found[2][1]["error"]["type"] == "ModelError"
    assert logged()[-1]["error"] == "ModelError"


def test_a_failure_before_the_first_event_has_its_status(serving: Serving) -> None:
    client = serving({"marked": Marked(generator=ScriptedGenerator(ModelError("no")))})
    found = events(client.post("/v1/answer", json=body(stream=True)))
    assert [name for name, _ in found] == ["screening", "error"]
    assert "has" in problem(client.post("/v1/answer", json=body(stream=True, query="x" * 30_000)), 422)
    assert "stream" in problem(client.post("/v1/screen", json=body(stream=True)), 422)
    assert serving().post("/v1/answer", json=body(stream=True)).status_code == 501


def test_late_answers_say_so(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Speaking):
        async def astream(self, prompt: Prompt, /, *, timeout: float | None = None) -> AsyncIterator[str | Reply]:
            yield "It"
            await asyncio.Event().wait()

    def written(event: Event, generator: str) -> bytes:
        if event == "It":
            later(600)
        return original(event, generator)

    original = routes._event
    monkeypatch.setattr(routes, "_event", written)
    monkeypatch.setattr(routes, "STREAM_GRACE", 600.0)
    client = serving({"marked": Marked(generator=Slow("x"))}, bounds=Bounds(timeout=600))
    found = events(client.post("/v1/answer", json=body(stream=True)))
    assert [name for name, _ in found] == ["screening", "text", "error"]
    assert found[-1][1]["error"]["type"] == "Timeout"


def test_what_streamed_is_counted_as_any_answer(serving: Serving, logged: Any) -> None:
    client = serving({"marked": Marked(generator=Speaking("Oslo."))})
    client.post("/v1/answer", json=body(stream=True))
    assert (logged()[-1]["dropped"], logged()[-1]["calls"]) == (2, 1)
    assert 'unpoison_passages_total{defense="marked",verdict="dropped"} 2.0' in client.get("/metrics").text
