"""The dialects of `/rerank`: exact shapes, order, scores, and what becomes of poison."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from service_doubles import POISONED, Cuts, Held, Marked, Serving, problem, stop_clock
from unpoison.errors import ModelError
from unpoison.serve import Bounds
from unpoison.serve.rerank import rank_documents

DOCUMENTS: dict[str, Any] = {"query": "which word", "documents": POISONED}
TEXTS: dict[str, Any] = {"query": "which word", "texts": POISONED}
EVERY = [(2, 1.0), (0, 0.75), (1, 0.0), (3, 0.0)]
DROPPED = {"dropped": [1, 3]}


def pairs(results: list[dict[str, Any]]) -> list[tuple[int, float]]:
    return [(one["index"], one.get("score", one.get("relevance_score"))) for one in results]


def test_cohere_v2(client: TestClient) -> None:
    request = {"model": "rerank-v3.5", "max_tokens_per_doc": 4096, "top_n": 3, **DOCUMENTS}
    reply = client.post("/v2/rerank", json=request).json()
    assert isinstance(reply.pop("id"), str)
    assert reply == {
        "results": [{"index": 2, "relevance_score": 1.0}, {"index": 0, "relevance_score": 0.75}],
        "meta": {"api_version": {"version": "2"}},
        "unpoison": {**DROPPED, "ignored": ["max_tokens_per_doc"]},
    }
    first = client.post("/v2/rerank", json={**request, "return_documents": True}).json()["results"][0]
    assert first == {"index": 2, "document": {"text": "clean gamma"}, "relevance_score": 1.0}


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_vllm(client: TestClient, path: str) -> None:
    reply = client.post(path, json={"truncate_prompt_tokens": -1, "top_n": 2, **DOCUMENTS}).json()
    assert reply.pop("id").startswith("rerank-")
    assert reply == {
        "model": "marked",
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
        "results": [
            {"index": 2, "document": {"text": "clean gamma"}, "relevance_score": 1.0},
            {"index": 0, "document": {"text": "clean alpha"}, "relevance_score": 0.75},
        ],
        "unpoison": {**DROPPED, "ignored": ["truncate_prompt_tokens"]},
    }


def test_jina(client: TestClient) -> None:
    documents = [{"text": text} for text in POISONED]
    request = {"model": "jina-reranker-v2", "query": "which word", "documents": documents, "top_n": 1}
    reply = client.post("/v1/rerank", json=request).json()
    assert reply["model"] == "jina-reranker-v2"
    assert reply["results"] == [{"index": 2, "document": {"text": "clean gamma"}, "relevance_score": 1.0}]
    bare = client.post("/v1/rerank", json={**request, "return_documents": False}).json()
    assert bare["results"] == [{"index": 2, "relevance_score": 1.0}]


@pytest.mark.parametrize(
    ("path", "field", "meant"),
    [
        ("/v2/rerank", "topN", "top_n"),
        ("/v1/rerank", "TOP-K", "top_k"),
        ("/rerank", "returnDocuments", "return_documents"),
        ("/rerank", " rank fields", "rank_fields"),
    ],
)
def test_a_known_field_in_another_spelling_is_refused(client: TestClient, path: str, field: str, meant: str) -> None:
    """It would have no effect, and `top_n` decides whether dropped documents are returned."""
    assert f"write {meant}" in problem(client.post(path, json={**DOCUMENTS, field: 2}), 422)
    assert "write return_text" in problem(client.post("/rerank", json={**TEXTS, "returnText": True}), 422)


def test_other_fields_have_no_effect_and_are_listed(client: TestClient) -> None:
    request = {"user": "u", "top_nn": 2, "x" * 5_000: 1, **DOCUMENTS}
    reply = client.post("/v1/rerank", json=request).json()
    assert pairs(reply["results"]) == EVERY
    user, near, long = reply["unpoison"]["ignored"]
    assert (user, near) == ("user", "top_nn")
    assert len(long) < 200


def test_voyage(client: TestClient) -> None:
    request = {"model": "rerank-2.5", "top_k": None, "truncation": True, **DOCUMENTS}
    reply = client.post("/v1/rerank", json=request).json()
    assert reply["object"] == "list"
    assert pairs(reply["data"]) == EVERY
    (first,) = client.post("/v1/rerank", json={**request, "top_k": 1, "return_documents": True}).json()["data"]
    gateway = {"model": "rerank-2.5", "top_k": 1, "return_documents": True, **DOCUMENTS}  # as litellm writes it
    assert client.post("/v1/rerank", json=gateway).json()["data"] == [first]
    assert first == {"index": 2, "document": "clean gamma", "relevance_score": 1.0}


def test_tei(serving: Serving) -> None:
    assert pairs(serving().post("/rerank", json={**TEXTS, "raw_scores": False, "truncate": True}).json()) == EVERY
    dropping = serving(on_poison="drop").post("/rerank", json={**TEXTS, "return_text": True}).json()
    assert dropping[0] == {"index": 2, "score": 1.0, "text": "clean gamma"}
    assert pairs(dropping) == EVERY[:2]


@pytest.mark.parametrize("top_n", [None, 0, 4, 1000])
def test_a_client_that_asks_for_all_gets_a_score_for_each_position(client: TestClient, top_n: int | None) -> None:
    """Open WebUI and others pair the scores with the documents by position, so that a gap would shift them."""
    reply = client.post("/v1/rerank", json={"model": "x", "top_n": top_n, **DOCUMENTS}).json()
    assert pairs(reply["results"]) == EVERY
    assert reply["unpoison"] == DROPPED


@pytest.mark.parametrize(
    ("on_poison", "expected"),
    [("drop", EVERY[:2]), ("demote", EVERY), ("monitor", [(0, 1.0), (1, 0.75), (2, 0.5), (3, 0.25)])],
)
def test_what_the_operator_says_counts(serving: Serving, on_poison: str, expected: Any) -> None:
    client = serving(on_poison=on_poison)
    assert pairs(client.post("/v1/rerank", json=DOCUMENTS).json()["results"]) == expected
    assert pairs(client.post("/rerank", json=TEXTS).json()) == expected
    assert pairs(client.post("/v1/rerank", json={"top_n": 3, **DOCUMENTS}).json()["results"]) == expected[:3]
    assert 'unpoison_passages_total{defense="marked",verdict="dropped"} 6.0' in client.get("/metrics").text


def test_objects_are_ranked_by_the_fields_that_are_named(client: TestClient) -> None:
    documents = [{"data": "clean a", "note": "poison"}, {"data": "poison", "note": "b"}]
    request = {"query": "which", "documents": documents, "rank_fields": ["data"]}
    reply = client.post("/v1/rerank", json=request).json()
    assert pairs(reply["results"]) == [(0, 1.0), (1, 0.0)]
    assert reply["results"][0]["document"] == {"text": "clean a"}
    assert "documents[0] has no text, got {'data'" in problem(
        client.post("/v1/rerank", json={**request, "rank_fields": None}), 422
    )
    assert "rank_fields names 'x'" in problem(client.post("/v1/rerank", json={**request, "rank_fields": ["x"]}), 422)


def test_model_may_name_a_configured_defense(serving: Serving) -> None:
    client = serving({"marked": Marked(), "marked:word=clean": Marked("clean")})
    reply = client.post("/v2/rerank", json={"model": "marked:word=clean", "top_n": 2, **DOCUMENTS}).json()
    assert [result["index"] for result in reply["results"]] == [3, 1]


@given(st.lists(st.sampled_from(["poison", "clean"]), max_size=40), st.integers(0, 45), st.booleans())
def test_scores_fall_within_bounds_and_indices_come_once(words: list[str], top: int, drop: bool) -> None:
    screening = Marked(reverse=drop).screen("q", words)
    found = rank_documents(words, screening, "drop" if drop else "demote", top)
    indices, scores = [index for index, _ in found], [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert len(set(indices)) == len(indices)
    everything = words.count("clean") if drop else len(words)
    assert len(found) == (min(top, everything) if top else everything)
    assert all((score > 0) == (words[index] == "clean") for index, score in found)


def test_what_is_redacted_is_read_only_by_who_asks_for_the_texts(serving: Serving) -> None:
    client = serving({"cuts": Cuts()})
    reply = client.post("/v2/rerank", json={"model": "x", **DOCUMENTS}).json()
    assert pairs(reply["results"]) == [(0, 1.0), (2, 0.75), (1, 0.0), (3, 0.0)]
    assert reply["unpoison"] == DROPPED
    told = client.post("/v2/rerank", json={"model": "x", "return_documents": True, **DOCUMENTS}).json()
    assert [one["document"]["text"] for one in told["results"]] == [
        "clean alpha",
        "[removed] beta",
        "clean gamma",
        "[removed] delta",
    ]
    assert told["unpoison"] == {"dropped": []}


class Failing(Marked):
    """Fails in the way it is told."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def screening(self, query: Any, passages: Any) -> Any:
        raise self.error
        yield ()


@pytest.mark.parametrize("error", [ModelError("the model is down"), RuntimeError("a bug"), MemoryError()])
def test_monitor_passes_the_documents_through_whatever_fails(serving: Serving, error: Exception) -> None:
    client = serving({"failing": Failing(error)}, on_poison="monitor")
    for path, sent in [("/rerank", TEXTS), ("/v2/rerank", {"model": "m", **DOCUMENTS})]:
        reply = client.post(path, json=sent)
        assert reply.status_code == 200
        found = reply.json() if path == "/rerank" else reply.json()["results"]
        assert [one["index"] for one in found] == [0, 1, 2, 3]
    assert f'unpoison_unscreened_total{{reason="{type(error).__name__}"}} 2.0' in client.get("/metrics").text
    assert client.post("/v1/screen", json={"query": "q", "passages": POISONED}).status_code != 200, "only what watches"


@pytest.mark.parametrize("documents", [["a"] * 11, [{}, {"text": None}]], ids=["too many", "no text"])
def test_monitor_passes_through_what_cannot_be_screened(serving: Serving, documents: list[Any]) -> None:
    client = serving(on_poison="monitor", bounds=Bounds(passages=10))
    reply = client.post("/v1/rerank", json={"query": "q" * 30_000, "documents": documents})
    assert [one["index"] for one in reply.json()["results"]] == list(range(len(documents)))


def test_monitor_waits_neither_for_a_place_nor_for_a_result(serving: Serving) -> None:
    held = Held()
    client = serving({"held": held}, on_poison="monitor", bounds=Bounds(max_concurrency=1, wait=0.05, timeout=600))
    move = stop_clock(client)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, "/rerank", json=TEXTS)
        assert held.begun.wait(30)
        move(601)  # the limit of the middleware itself is two seconds later
        assert [one["index"] for one in first.result().json()] == [0, 1, 2, 3]
        held.go.set()
    assert 'unpoison_unscreened_total{reason="TimeoutError"} 1.0' in client.get("/metrics").text
