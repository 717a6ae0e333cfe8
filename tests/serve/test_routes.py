"""`/v1/screen`, `/v1/answer`, `/v1/defenses`: what the command line says, over HTTP; answers as server-sent events."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service_doubles import POISONED, Asking, Marked, Serving, body, later, problem
from unpoison import Guard, TrustRag
from unpoison.core.answers import Reply
from unpoison.errors import ModelError
from unpoison.models import ExtractiveReader, FunctionGenerator, ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison.screener.screener import Event
from unpoison.serve import Bounds, create_app, routes


def test_screening_is_that_of_the_command_line(client: TestClient) -> None:
    screening = client.post("/v1/screen", json=body()).json()["screening"]
    assert screening == Marked().screen("which word", POISONED).summary()
    assert screening["kept"] == [2, 0]
    assert screening["notes"] == ["noted"]


def test_guard_is_the_default_and_tells_threshold_and_probabilities(serving: Serving) -> None:
    with TestClient(create_app()) as client:
        screening = client.post("/v1/screen", json=body()).json()["screening"]
    direct = Guard().screen("which word", POISONED)
    assert screening["defense"] == "guard"
    assert screening["threshold"] == direct.evidence["threshold"]
    assert screening["probability"] == direct.evidence["probability"].tolist()


def test_defense_is_chosen_by_name(serving: Serving) -> None:
    defenses: dict[str, Any] = {
        "marked": Marked(),
        "trustrag:stages=1": TrustRag(stages=1),
        "marked:word=clean": Marked("clean"),
    }
    client = serving(defenses)
    said = {
        name: client.post("/v1/screen", json=body(defense=name)).json()["screening"] for name in [*defenses, "trustrag"]
    }
    assert said["marked"]["kept"] == [2, 0]
    assert said["marked:word=clean"]["kept"] == [3, 1]
    assert said["trustrag"] == said["trustrag:stages=1"]
    assert "did you mean 'marked'?" in problem(client.post("/v1/screen", json=body(defense="markd")), 422)
    listed = client.get("/v1/defenses").json()["defenses"]
    assert [one["name"] for one in listed] == list(defenses)
    assert [one["default"] for one in listed] == [True, False, False]


def test_answer_carries_screening_and_calls(serving: Serving) -> None:
    client = serving({"guard": Guard(generator=ExtractiveReader())})
    passages = ["The tower stands in Lyon.", "Lyon has a tower.", "The tower of Lyon was built in 1890."]
    reply = client.post("/v1/answer", json={"query": "Where does the tower stand?", "passages": passages}).json()
    assert set(reply) == {"screening", "answer", "generator"}
    assert "Lyon" in reply["answer"]["text"]
    assert [call["kind"] for call in reply["answer"]["calls"]][-1] == "generate"
    assert reply["generator"] == ExtractiveReader().name


def test_answer_without_a_generator_says_how_to_give_one(client: TestClient) -> None:
    assert "--generator" in problem(client.post("/v1/answer", json=body()), 501)


def test_defense_that_asks_a_model_screens_and_is_counted(serving: Serving) -> None:
    generator = ScriptedGenerator(lambda prompt: "Lyon")
    client = serving({"asking": Asking(generator=generator)})
    assert client.post("/v1/screen", json=body()).json()["screening"]["kept"] == [2, 0]
    told = client.get("/metrics").text
    assert f'unpoison_model_calls_total{{kind="generate",model="{generator.name}"}} 4.0' in told


def test_failing_model_is_a_bad_gateway(serving: Serving) -> None:
    def fail(messages: Any) -> str:
        raise ModelError("the model is out of order; repair it", retry_after=7.2)

    client = serving({"asking": Asking(generator=FunctionGenerator(fail))})
    response = client.post("/v1/screen", json=body())
    assert "out of order" in problem(response, 502)


def test_examples_of_the_description_are_served(serving: Serving) -> None:
    client = serving({"marked": Marked(generator=ScriptedGenerator("x"))})
    described = client.get("/openapi.json").json()
    count = 0
    for path, methods in described["paths"].items():
        for reference in re.findall(
            r"'#/components/schemas/(\w+)'", str(methods.get("post", {}).get("requestBody", ""))
        ):
            for example in described["components"]["schemas"][reference].get("examples", []):
                assert client.post(path, json=example).status_code == 200, (path, example)
                count += 1
    assert count >= 6


def test_what_gateways_ask_before_they_route(client: TestClient) -> None:
    assert [row["id"] for row in client.get("/v1/models").json()["data"]] == ["marked"]
    info = client.get("/info").json()
    assert (info["model_id"], info["max_client_batch_size"]) == ("marked", 1000)
    assert set(info["model_type"]) == {"reranker"}


def test_every_address_describes_its_replies_and_refuses_other_methods(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths["/v1/answer"]["post"]["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    for path, methods in paths.items():
        if "get" in methods:
            told = client.get(path)
            kinds = methods["get"]["responses"]["200"].get("content", {})
            assert told.headers.get("content-type", "").partition(";")[0] in (kinds or [""])
            refused = client.post(path)
            assert (refused.status_code, refused.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/", "/openapi.json"])
def test_head_is_get_without_its_body(client: TestClient, path: str) -> None:
    told = client.head(path)
    assert (told.status_code, told.content) == (200, b"")
    assert told.headers["content-type"] == client.get(path).headers["content-type"]


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [("Content-Encoding", "gzip", 415), ("Expect", "a-reply", 417), ("Content-Encoding", "identity", 200)],
)
def test_what_is_asked_of_the_service_and_not_known_is_refused(
    client: TestClient, name: str, value: str, status: int
) -> None:
    assert client.post("/v1/screen", json=body(), headers={name: value}).status_code == status


def test_probes_are_answered_whatever_is_loaded(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    health = client.get("/health")
    assert (health.status_code, health.content) == (200, b"")


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
