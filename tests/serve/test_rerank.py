"""The four dialects of `/rerank`: exact shapes, order, scores, and what becomes of poison."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from service_doubles import POISONED, Cuts, Held, Marked, Serving, problem, stop_clock
from unpoison.errors import DeadlineError, InputError, ModelError, StoreError
from unpoison.serve import Bounds
from unpoison.serve.rerank import rank_documents

DOCUMENTS: dict[str, Any] = {"query": "which word", "documents": POISONED}
TEXTS: dict[str, Any] = {"query": "which word", "texts": POISONED}


def test_cohere_v2(client: TestClient) -> None:
    reply = client.post("/v2/rerank", json={"model": "rerank-v3.5", "max_tokens_per_doc": 4096, **DOCUMENTS}).json()
    assert isinstance(reply.pop("id"), str)
    assert reply == {
        "results": [{"index": 2, "relevance_score": 1.0}, {"index": 0, "relevance_score": 0.75}],
        "meta": {"api_version": {"version": "2"}},
    }


def test_cohere_v2_with_documents_as_gateways_ask(client: TestClient) -> None:
    reply = client.post("/v2/rerank", json={"model": "any", "return_documents": True, **DOCUMENTS}).json()
    assert reply["results"][0] == {"index": 2, "document": {"text": "clean gamma"}, "relevance_score": 1.0}
    assert set(reply) == {"id", "results", "meta"}


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_vllm(client: TestClient, path: str) -> None:
    reply = client.post(path, json={"truncate_prompt_tokens": -1, "top_n": 0, **DOCUMENTS}).json()
    assert reply.pop("id").startswith("rerank-")
    assert reply == {
        "model": "marked",
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
        "results": [
            {"index": 2, "document": {"text": "clean gamma"}, "relevance_score": 1.0},
            {"index": 0, "document": {"text": "clean alpha"}, "relevance_score": 0.75},
        ],
    }


def test_jina(client: TestClient) -> None:
    documents = [{"text": text} for text in POISONED]
    request = {"model": "jina-reranker-v2", "query": "which word", "documents": documents, "top_n": 1}
    reply = client.post("/v1/rerank", json=request).json()
    assert reply["model"] == "jina-reranker-v2"
    assert reply["usage"]["total_tokens"] == 0
    assert reply["results"] == [{"index": 2, "document": {"text": "clean gamma"}, "relevance_score": 1.0}]
    bare = client.post("/v1/rerank", json={**request, "return_documents": False}).json()
    assert bare["results"] == [{"index": 2, "relevance_score": 1.0}]


def test_tei_gets_as_many_scores_as_it_sent_texts(client: TestClient) -> None:
    """Its clients count them, so what is dropped is last with score 0, unless the operator says otherwise."""
    assert client.post("/rerank", json={**TEXTS, "raw_scores": False, "truncate": True}).json() == [
        {"index": 2, "score": 1.0},
        {"index": 0, "score": 0.75},
        {"index": 1, "score": 0.0},
        {"index": 3, "score": 0.0},
    ]


def test_tei_drops_where_that_is_said(serving: Serving) -> None:
    client = serving(on_poison="drop")
    assert client.post("/rerank", json={**TEXTS, "return_text": True}).json() == [
        {"index": 2, "score": 1.0, "text": "clean gamma"},
        {"index": 0, "score": 0.75, "text": "clean alpha"},
    ]


def test_voyage(client: TestClient) -> None:
    request = {"model": "rerank-2.5", "top_k": None, "truncation": True, **DOCUMENTS}
    reply = client.post("/v1/rerank", json=request).json()
    assert reply["object"] == "list"
    assert reply["data"] == [{"index": 2, "relevance_score": 1.0}, {"index": 0, "relevance_score": 0.75}]
    assert reply["usage"]["total_tokens"] == 0
    (first,) = client.post("/v1/rerank", json={**request, "top_k": 1, "return_documents": True}).json()["data"]
    assert first == {"index": 2, "document": "clean gamma", "relevance_score": 1.0}


def test_tei_and_vllm_are_told_apart(client: TestClient) -> None:
    assert "send one of them" in problem(client.post("/rerank", json={**TEXTS, **DOCUMENTS}), 422)
    assert "documents is missing" in problem(client.post("/rerank", json={"query": "which"}), 422)
    assert "texts[0] should be a valid string" in problem(client.post("/rerank", json={**TEXTS, "texts": [{}]}), 422)
    assert "documents is missing" in problem(client.post("/v1/rerank", json=TEXTS), 422)


@pytest.mark.parametrize("top_n", [None, 0, 4, 1000])
def test_all_are_meant(client: TestClient, top_n: int | None) -> None:
    reply = client.post("/v2/rerank", json={"model": "x", "top_n": top_n, **DOCUMENTS}).json()
    assert [result["index"] for result in reply["results"]] == [2, 0]


def test_fewer_than_none_is_refused(client: TestClient) -> None:
    assert "top_n should be greater" in problem(client.post("/v1/rerank", json={"top_n": -1, **DOCUMENTS}), 422)


def test_demoted_poison_comes_last_with_nothing(serving: Serving) -> None:
    client = serving(on_poison="demote")
    found = [
        {"index": 2, "score": 1.0},
        {"index": 0, "score": 0.75},
        {"index": 1, "score": 0},
        {"index": 3, "score": 0},
    ]
    assert client.post("/rerank", json=TEXTS).json() == found
    first = client.post("/v1/rerank", json={"top_n": 3, **DOCUMENTS}).json()["results"]
    assert [(one["index"], one["relevance_score"]) for one in first] == [(2, 1.0), (0, 0.75), (1, 0.0)]


def test_monitor_changes_nothing_but_counts(serving: Serving) -> None:
    client = serving(on_poison="monitor")
    assert [one["index"] for one in client.post("/rerank", json=TEXTS).json()] == [0, 1, 2, 3]
    assert 'unpoison_passages_total{defense="marked",verdict="dropped"} 2.0' in client.get("/metrics").text


def test_model_may_name_a_configured_defense(serving: Serving) -> None:
    client = serving({"marked": Marked(), "marked:word=clean": Marked("clean")})
    reply = client.post("/v2/rerank", json={"model": "marked:word=clean", **DOCUMENTS}).json()
    assert [result["index"] for result in reply["results"]] == [3, 1]


@pytest.mark.parametrize(("path", "request_body"), [("/v1/rerank", DOCUMENTS), ("/v2/rerank", DOCUMENTS)])
def test_no_documents_are_no_error(client: TestClient, path: str, request_body: dict[str, Any]) -> None:
    assert client.post(path, json={**request_body, "model": "x", "documents": []}).json()["results"] == []
    assert client.post("/rerank", json={**TEXTS, "texts": []}).json() == []


@given(st.lists(st.sampled_from(["poison", "clean"]), max_size=40), st.integers(0, 45), st.booleans())
def test_scores_fall_within_bounds_and_indices_come_once(words: list[str], top: int, drop: bool) -> None:
    screening = Marked(reverse=drop).screen("q", words)
    found = rank_documents(len(words), screening, "drop" if drop else "demote", top)
    indices, scores = [index for index, _ in found], [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert len(set(indices)) == len(indices)
    everything = words.count("clean") if drop else len(words)
    assert len(found) == (min(top, everything) if top else everything)
    assert all((score > 0) == (words[index] == "clean") for index, score in found)


class Failing(Marked):
    """Fails in the way it is told."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def screening(self, query: Any, passages: Any) -> Any:
        raise self.error
        yield ()


@pytest.mark.parametrize(
    "error",
    [
        ModelError("the model is down"),
        StoreError("no store"),
        DeadlineError("too late"),
        InputError("cannot be used"),
        RuntimeError("a bug"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_monitor_passes_the_documents_through_whatever_fails(serving: Serving, error: Exception) -> None:
    client = serving({"failing": Failing(error)}, on_poison="monitor")
    for path, request_body in [
        ("/rerank", TEXTS),
        ("/v1/rerank", DOCUMENTS),
        ("/v2/rerank", {"model": "m", **DOCUMENTS}),
    ]:
        reply = client.post(path, json=request_body)
        assert reply.status_code == 200
        found = reply.json() if path == "/rerank" else reply.json()["results"]
        assert [one["index"] for one in found] == [0, 1, 2, 3]
    assert f'unpoison_unscreened_total{{reason="{type(error).__name__}"}} 3.0' in client.get("/metrics").text
    assert client.post("/v1/screen", json={"query": "q", "passages": POISONED}).status_code != 200, "only what watches"


@pytest.mark.parametrize(
    "documents",
    [
        ["a"] * 11,
        ["poison", ""],
        [{}, {"text": None}],
        [{"text": "a", "embedding": [1]}, {"text": "b", "embedding": [1, 2]}],
    ],
    ids=["too many", "empty", "no text", "sizes of embeddings"],
)
def test_monitor_passes_through_what_cannot_be_screened(serving: Serving, documents: list[Any]) -> None:
    client = serving(on_poison="monitor", bounds=Bounds(passages=10))
    reply = client.post("/v1/rerank", json={"query": "q" * 30_000, "documents": documents})
    assert [one["index"] for one in reply.json()["results"]] == list(range(len(documents)))
    assert (
        len(client.post("/v1/rerank", json={"query": "q", "documents": documents, "top_n": 1}).json()["results"]) == 1
    )


def test_monitor_does_not_wait_longer_than_the_request(serving: Serving) -> None:
    held = Held()
    client = serving({"held": held}, on_poison="monitor", bounds=Bounds(timeout=600))
    move = stop_clock(client)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(client.post, "/rerank", json=TEXTS)
        assert held.begun.wait(60)
        move(601)  # the limit of the middleware itself is two seconds later
        assert [one["index"] for one in reply.result().json()] == [0, 1, 2, 3]
        held.go.set()
    assert 'unpoison_unscreened_total{reason="TimeoutError"} 1.0' in client.get("/metrics").text


def test_monitor_passes_through_what_finds_no_place(serving: Serving) -> None:
    held = Held()
    client = serving({"held": held}, on_poison="monitor", bounds=Bounds(at_once=1, wait=0.05))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, "/rerank", json=TEXTS)
        assert held.begun.wait(30)
        assert [one["index"] for one in client.post("/rerank", json=TEXTS).json()] == [0, 1, 2, 3]
        held.go.set()
        assert first.result().status_code == 200
    assert 'unpoison_unscreened_total{reason="Overloaded"} 1.0' in client.get("/metrics").text


def test_voyage_asks_for_its_best(client: TestClient) -> None:
    reply = client.post("/v1/rerank", json={"model": "rerank-2", "top_k": 1, **DOCUMENTS}).json()
    assert [one["index"] for one in reply["results"]] == [2]


@pytest.mark.parametrize("field", ["documents", "texts"])
def test_errors_name_the_field_that_was_sent(serving: Serving, field: str) -> None:
    client = serving(bounds=Bounds(passages=3))
    said = problem(client.post("/rerank", json={"query": "q", field: ["a"] * 4}), 422)
    assert said == f"4 {field} were sent and at most 3 are taken; send the best of them"
    if field == "documents":
        sent = {"query": "q", "documents": ["a", {"id": "x"}]}
        assert problem(client.post("/rerank", json=sent), 422).startswith("documents[1] has no text")


@pytest.mark.parametrize(
    ("path", "request_body", "field"),
    [
        ("/v2/rerank", {"model": "any", **DOCUMENTS}, "return_documents"),
        ("/v1/rerank", DOCUMENTS, "return_documents"),
        ("/rerank", DOCUMENTS, "return_documents"),
        ("/rerank", TEXTS, "return_text"),
    ],
)
def test_redacted_documents_go_to_who_reads_the_reply_and_to_nobody_else(
    serving: Serving, path: str, request_body: dict[str, Any], field: str
) -> None:
    def results(client: TestClient, **more: Any) -> list[dict[str, Any]]:
        reply = client.post(path, json={**request_body, **more}).json()
        return reply["results"] if isinstance(reply, dict) else reply

    client = serving({"cuts": Cuts()}, on_poison="drop")
    assert [one["index"] for one in results(client)] == [0, 2]
    assert [one["index"] for one in results(client, **{field: False})] == [0, 2]
    asked = results(client, **{field: True})
    assert [one["index"] for one in asked] == [0, 1, 2, 3]
    texts = [one["text"] if "text" in one else one["document"]["text"] for one in asked]
    assert texts == ["clean alpha", "[removed] beta", "clean gamma", "[removed] delta"]
    demoting = results(serving({"cuts": Cuts()}, on_poison="demote"))
    assert [one["index"] for one in demoting] == [0, 2, 1, 3]
    assert [one.get("score", one.get("relevance_score")) for one in demoting][2:] == [0.0, 0.0]
    assert "poison beta" not in str(demoting)
    watching = results(serving({"cuts": Cuts()}, on_poison="monitor"), **{field: True})
    assert "poison beta" in str(watching)
