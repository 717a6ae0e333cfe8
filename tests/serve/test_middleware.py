"""The middleware: keys, names, sizes, slots, times, and what is logged and counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service_doubles import POISONED, Asking, Broken, Held, Serving, body, problem
from unpoison.errors import OptionError
from unpoison.models import FunctionGenerator
from unpoison.serve import Bounds, create_app

Log = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def held() -> Iterator[Held]:
    defense = Held()
    yield defense
    defense.go.set()


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/openapi.json", "/assets/page.css", "/examples/0"])
def test_what_is_open_needs_no_key(serving: Serving, path: str) -> None:
    assert serving(keys="secret").get(path).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "secret"},
        {"Authorization": "Basic secret"},
        {"Authorization": "Bearer secret2"},
        {"Authorization": "Bearer"},
        {"X-API-Key": "secret"},
        {"Authorization": "Bearer s\u00e9cret".encode()},
    ],
)
def test_everything_else_does(serving: Serving, headers: dict[str, Any]) -> None:
    client = serving(keys="secret")
    for method, path in [
        ("POST", "/v1/screen"),
        ("POST", "/rerank"),
        ("POST", "/play"),
        ("OPTIONS", "/v1/screen"),
        ("GET", "/metrics"),
    ]:
        response = client.request(method, path, headers=headers)
        assert "Authorization: Bearer KEY" in problem(response, 401)
        assert response.headers["www-authenticate"] == "Bearer"


def test_paths_that_look_open_are_not(serving: Serving) -> None:
    client = serving(keys="secret")
    for path in ("/healthz/", "/assetsx", "/sample", "/metrics/", "/metrics/assets/", "/v1/defenses"):
        assert client.get(path, follow_redirects=False).status_code == 401, path
    assert client.get("/assets/%2e%2e/metrics").status_code == 404


def test_foreign_names_are_refused(serving: Serving) -> None:
    client = serving(hosts=("localhost", "127.0.0.1", "[::1]"))
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:9", "[::1]:8000", "[::1]"):
        assert client.get("/healthz", headers={"Host": host}).status_code == 200, host
    for host in ("evil.example", "localhost.evil.example", "localhost:80.evil.example", ""):
        assert "--allow-host" in problem(client.get("/healthz", headers={"Host": host}), 421)


def test_large_body_is_refused_by_its_header_and_by_its_bytes(serving: Serving) -> None:
    client = serving(bounds=Bounds(body=1000))
    large = body(passages=["x" * 2000])
    assert "1,000 bytes" in problem(client.post("/v1/screen", json=large), 413)

    def pieces() -> Iterator[bytes]:
        for _ in range(30):
            yield b" " * 100

    headers = {"Content-Type": "application/json"}
    assert "1,000 bytes" in problem(client.post("/v1/screen", content=pieces(), headers=headers), 413)
    for length in ("-1", "x", "9" * 5000):
        response = client.post("/v1/screen", content=b"{}", headers={**headers, "Content-Length": length})
        assert "1,000 bytes" in problem(response, 413)
    assert client.post("/v1/screen", json=body()).status_code == 200
    told = client.get("/metrics").text
    assert 'unpoison_rejected_total{reason="TooLarge"} 5.0' in told


@pytest.mark.parametrize(
    ("request_body", "said"),
    [
        (body(passages=["a"] * 6), "6 passages were sent and at most 5"),
        (body(query="q" * 31), "query has 31 characters"),
        (body(passages=["a" * 26] * 4), "the passages have 104 characters together and at most 100"),
    ],
)
def test_sizes_within_a_body_are_bounded(serving: Serving, request_body: dict[str, Any], said: str) -> None:
    client = serving(bounds=Bounds(passages=5, characters=30, total=100))
    assert said in problem(client.post("/v1/screen", json=request_body), 422)
    documents = {"query": request_body["query"], "documents": request_body["passages"]}
    named = said.replace("passages", "documents")
    assert named in problem(client.post("/v1/rerank", json=documents), 422)


def test_full_service_says_so_and_recovers(serving: Serving, held: Held) -> None:
    client = serving({"held": held}, bounds=Bounds(max_concurrency=1, threads=1, wait=0.05))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, "/v1/screen", json=body())
        assert held.begun.wait(30)
        refused = client.post("/v1/screen", json=body())
        assert "1 requests are worked on already" in problem(refused, 503)
        assert refused.headers["retry-after"] == "1"
        assert client.get("/readyz").status_code == 200, "its share would go to the others, until all are out"
        assert client.get("/healthz").json() == {"status": "ok"}
        told = client.get("/metrics").text
        assert "unpoison_in_flight 1.0" in told
        assert 'unpoison_rejected_total{reason="Overloaded"} 1.0' in told
        held.go.set()
        assert first.result().status_code == 200
    assert client.get("/readyz").json() == {"status": "ready"}
    assert client.post("/v1/screen", json=body()).status_code == 200


def test_loop_is_free_while_a_defense_computes_between_model_calls(serving: Serving, held: Held) -> None:
    """Such a defense runs on the loop of the model calls, which is not the server's."""
    held.models = Asking(generator=FunctionGenerator(lambda messages: "x")).models
    held.needs = ("generator",)
    client = serving({"held": held})
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.post, "/v1/screen", json=body())
        assert held.begun.wait(30)
        assert client.get("/healthz").status_code == 200
        held.go.set()
        assert slow.result().status_code == 200


def test_bug_is_reported_without_the_text_that_it_quotes(serving: Serving, logged: Log, caplog: Any) -> None:
    client = serving({"broken": Broken()})
    message = problem(client.post("/v1/screen", json=body(), headers={"X-Request-Id": "me-1"}), 500)
    assert "its log says more under me-1" in message
    bug, access = logged()
    assert bug["error"] == "RuntimeError"
    assert any("service_doubles.py" in place for place in bug["where"])
    assert (access["status"], access["error"]) == (500, "InternalError")
    assert not any(text in str(vars(record)) for record in caplog.records for text in POISONED)


def test_log_has_facts_and_no_texts(serving: Serving, logged: Log) -> None:
    serving(keys="secret").post(
        "/v1/screen?q=private", json=body(query="my secret question"), headers={"Authorization": "Bearer secret"}
    )
    (line,) = logged()
    assert line.pop("ms") >= 0
    assert re.fullmatch("[0-9a-f]{32}", line.pop("id"))
    told = {"method": "POST", "route": "/v1/screen", "key": "default", "status": 200, "client": "testclient"}
    assert line == {**told, "defense": "marked", "k": 4, "dropped": 2}


def test_metrics_count_by_route_and_defense(client: TestClient) -> None:
    client.post("/v1/screen", json=body())
    client.post("/v1/screen", json=body(passages=["clean"]))
    client.get("/v1/nothing/here")
    client.get("/examples/3")
    told = client.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain")
    for line in (
        'unpoison_requests_total{route="/v1/screen",status="200"} 2.0',
        'unpoison_requests_total{route="/examples/{number}",status="200"} 1.0',
        'unpoison_requests_total{route="other",status="404"} 1.0',
        'unpoison_request_seconds_count{route="/v1/screen"} 2.0',
        'unpoison_passages_total{defense="marked",verdict="kept"} 3.0',
        'unpoison_passages_total{defense="marked",verdict="dropped"} 2.0',
        'unpoison_screenings_total{defense="marked",dropped="yes"} 1.0',
        'unpoison_screenings_total{defense="marked",dropped="no"} 1.0',
        "unpoison_in_flight 0.0",
    ):
        assert line in told.text.splitlines()


def test_application_needs_a_defense_and_a_known_manner() -> None:
    with pytest.raises(OptionError, match="defenses must map names to defenses"):
        create_app({})
    with pytest.raises(OptionError, match="on_poison must be one of drop, demote, monitor"):
        create_app(on_poison="hide")  # type: ignore[arg-type]


@pytest.mark.parametrize("prefix", ["", "/unpoison"])
def test_under_a_root_path_everything_is_where_the_proxy_has_it_stripped_or_not(serving: Serving, prefix: str) -> None:
    client = serving(root_path="/unpoison/", keys="secret")
    assert client.get(f"{prefix}/healthz").status_code == 200
    assert client.get(f"{prefix}/").status_code == 200
    assert client.post(f"{prefix}/v1/screen", json=body()).status_code == 401
    assert client.get(f"{prefix}/openapi.json").json()["servers"] == [{"url": "/unpoison"}]


@pytest.mark.parametrize(
    "path",
    ["/unpoison/unpoison/healthz", "/unpoisonhealthz", "/unpoison/v1/screen", "//v1/screen", "/healthz/../metrics"],
)
def test_no_path_gets_past_the_key_by_the_root_path(serving: Serving, path: str) -> None:
    client = serving(root_path="/unpoison", keys="secret")
    assert client.get(path).status_code in (401, 404)
    assert client.post(path, json=body()).status_code == 401
