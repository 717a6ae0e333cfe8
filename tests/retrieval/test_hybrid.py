from __future__ import annotations

import asyncio

import pytest

from unpoison.core.passages import Passage, Query
from unpoison.errors import OptionError
from unpoison.models import FakeEncoder
from unpoison.retrieval import BM25Retriever, DenseRetriever, HybridRetriever
from unpoison.retrieval.hybrid import reciprocal_rank_fusion


def ranking(*names: str) -> list[Passage]:
    return [Passage(f"text of {name}", id=name) for name in names]


def test_the_formula():
    fused = reciprocal_rank_fusion([ranking("a", "b", "c"), ranking("b", "d")])
    assert [p.id for p in fused] == ["b", "a", "d", "c"]
    assert [p.score for p in fused] == [1 / 62 + 1 / 61, 1 / 61, 1 / 62, 1 / 63]
    assert [p.id for p in reciprocal_rank_fusion([ranking("a", "b"), ranking("b", "a")])] == ["a", "b"]  # a tie
    assert reciprocal_rank_fusion([]) == reciprocal_rank_fusion([[], []]) == ()


def test_texts_stand_for_missing_ids_and_repetitions_count_once():
    retrieved = reciprocal_rank_fusion(
        [[Passage("x"), Passage("x"), Passage("y")], [Passage("y"), Passage("x", id="x")]]
    )
    assert [(p.text, p.id) for p in retrieved] == [("y", None), ("x", None), ("x", "x")]
    assert retrieved[1].score == 1 / 61


def test_what_either_finds_is_found_and_brings_its_embedding(encoder, passages):
    retriever = HybridRetriever(BM25Retriever(passages), DenseRetriever(encoder, passages))
    retrieved = retriever.retrieve("text number 3", 5)
    assert retrieved[0].id == "p3"
    assert all(p.embedding is not None for p in retrieved)
    assert retriever.encoder is encoder
    assert len(retriever.retrieve("zebra", 30)) == 20
    assert retriever.retrieve("q", 0) == ()


def test_the_query_is_encoded_once(encoder, passages):
    retriever = HybridRetriever(DenseRetriever(encoder, passages[:9]), DenseRetriever(encoder, passages[9:]))
    encoder.calls.clear()
    retriever.retrieve("text number 3", 5)
    assert encoder.calls == [("text number 3",)]


def test_vectors_of_two_encoders_are_not_mixed(passages):
    first, second = FakeEncoder(), FakeEncoder(dimensions=8)
    second.name = "second"
    retriever = HybridRetriever(DenseRetriever(first, passages), DenseRetriever(second, passages))
    assert retriever.encoder is None
    retrieved = retriever.retrieve(Query("text number 3", [1.0, 2.0, 3.0]), 30)  # in neither's space
    assert retrieved[0].id == "p3"
    assert all(p.embedding is None for p in retrieved)


def test_each_is_asked_for_enough():
    class Asked(BM25Retriever):
        counts: list[int] = []  # noqa: RUF012

        def retrieve(self, query, k):
            self.counts.append(k)
            return super().retrieve(query, k)

    retriever = HybridRetriever(Asked(["a b"]), depth=7)
    retriever.retrieve("q", 3)
    retriever.retrieve("q", 30)
    assert Asked.counts == [7, 30]


def test_anything_that_retrieves_will_do(passages):
    class Foreign:
        def retrieve(self, query, k):
            return [{"content": "text number 3", "id": "p3", "embedding": [1, 2]}, "without an id"][:k]

    retriever = HybridRetriever(Foreign(), BM25Retriever(passages))
    retrieved = retriever.retrieve("text number 13", 30)
    assert [p.id for p in retrieved[:3]] == ["p3", "p13", None]
    assert retrieved[0].embedding is None  # nobody says in which space it is
    assert asyncio.run(retriever.aretrieve("text number 13", 30)) == retrieved


def test_options_are_checked():
    for make in (
        HybridRetriever,
        lambda: HybridRetriever(BM25Retriever(), constant=-1),
        lambda: HybridRetriever(BM25Retriever(), depth=0),
        lambda: HybridRetriever(BM25Retriever(), depth=5001),
    ):
        with pytest.raises(OptionError):
            make()
