"""Retrieval weighted by trust: score times trust, the rest as it was."""

from __future__ import annotations

import asyncio

import pytest

from unpoison import Passage, Rag, Sources
from unpoison.retrieval import BM25Retriever, DenseRetriever, HybridRetriever
from unpoison.retrieval.base import by_trust, depth

POLICY = {"trusted": ["handbook.example"], "known": ["wiki.example"], "blocked": ["evil.example"]}
QUESTION = "refund window"


def page(host: str, text: str, score: float | None = None) -> Passage:
    return Passage(text, id=f"{host}-{text}", source=f"https://{host}.example/", score=score)


def hosts(passages: tuple[Passage, ...]) -> list[str]:
    return [passage.origin.partition(".")[0] for passage in passages]


def test_score_times_trust_and_what_is_blocked_is_left_out() -> None:
    found = [page("evil", "a", 9.0), page("new", "b", 8.0), page("wiki", "c", 1.0), page("handbook", "d", 0.9)]
    weighed = by_trust(Sources(POLICY), QUESTION, found, 10)
    assert hosts(weighed) == ["handbook", "wiki", "new"]
    assert [passage.score for passage in weighed] == pytest.approx([0.9, 0.8, 0.4])


def test_distrust_lowers_a_negative_score_too() -> None:
    found = [page("new", "a", -1.0), page("wiki", "b", -2.0), page("handbook", "c", -3.0)]
    weighed = by_trust(Sources(POLICY), QUESTION, found, 10)
    assert [passage.score for passage in weighed] == pytest.approx([-2.5, -3.0, -20.0])
    assert hosts(weighed) == ["wiki", "handbook", "new"]


def test_equal_scores_keep_their_order_and_so_does_everything_where_nobody_is_known() -> None:
    found = [page("wiki", text, 1.0) for text in "abc"]
    assert [p.text for p in by_trust(Sources(POLICY), QUESTION, found, 2)] == ["a", "b"]
    mixed = [page("new", "a", 3.0), page("old", "b", 2.0), page("new", "c", -1.0)]
    assert by_trust(Sources(), QUESTION, mixed, 10) == tuple(mixed)
    assert by_trust(None, QUESTION, mixed, 2) == tuple(mixed[:2])


def test_more_are_looked_for_than_are_wanted() -> None:
    assert [depth(None, 7), depth(Sources(), 0), depth(Sources(), 7), depth(Sources(), 30)] == [7, 0, 50, 150]
    assert depth(Sources(), 5_000) == 5_000


FLOOD = [page("new", f"refund window {i} refund window") for i in range(20)]
TRUE = page("handbook", "the refund window is 30 days after purchase of any kind")


def test_bm25_brings_up_what_is_trusted() -> None:
    passages = [*FLOOD, TRUE]
    assert "handbook" not in hosts(BM25Retriever(passages).retrieve(QUESTION, 5))
    assert hosts(BM25Retriever(passages, sources=POLICY).retrieve(QUESTION, 5))[0] == "handbook"
    assert BM25Retriever(passages, sources=Sources()).retrieve(QUESTION, 5) == BM25Retriever(passages).retrieve(
        QUESTION, 5
    )


def test_vectors_and_fusion_too(encoder) -> None:  # type: ignore[no-untyped-def]
    passages = [*FLOOD, TRUE, page("evil", "refund window")]
    dense = DenseRetriever(encoder, passages, sources=POLICY)
    both = HybridRetriever(BM25Retriever(passages), DenseRetriever(encoder, passages), sources=POLICY)
    for retriever in (dense, both):
        found = retriever.retrieve(QUESTION, 25)
        assert "evil" not in hosts(found)
        assert len(found) == 21
        assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)
        assert asyncio.run(retriever.aretrieve(QUESTION, 25)) == found
    assert hosts(both.retrieve(QUESTION, 3))[0] == "handbook"


def test_rag_reads_what_is_trusted_first() -> None:
    rag = Rag(BM25Retriever([*FLOOD, TRUE], sources=POLICY), defense="vanilla", k=3)
    assert rag.retrieve(QUESTION)[0].text == TRUE.text
