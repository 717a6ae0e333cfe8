"""Retrieval weighted by trust: score times trust, the rest as it was."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from ranges import assert_range
from unpoison import Passage, Rag, Sources
from unpoison.core.passages import MAX_PASSAGES, Query
from unpoison.errors import InputError, OptionError
from unpoison.models import FakeEncoder
from unpoison.retrieval import BM25Retriever, DenseRetriever, HybridRetriever
from unpoison.retrieval.base import (
    BATCH,
    Collection,
    aretrieve_passages,
    by_trust,
    check_count,
    depth,
    embed_query,
    reciprocal_rank_fusion,
    unit_rows,
    vectors_of,
)

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


def test_a_copy_without_some_passages_says_where_they_stood(passages):
    whole = Collection()
    whole.extend(whole.prepare(passages))
    whole.remove(["p1"])
    rest, places = whole.without(["p4", "p2", "p1", "of nobody"])
    assert places == [2, 4]
    assert [p.id for p in rest][:3] == ["p0", "p3", "p5"]
    assert len(rest) == len(whole) - 2


def test_vectors_of_passages_are_those_given_and_those_made():
    encoder = FakeEncoder({"b": (3.0, 4.0)})
    given_one = Passage("a", embedding=[1.0, 2.0])
    assert vectors_of([given_one, Passage("b"), given_one], encoder).tolist() == pytest.approx(
        np.array([[1, 2], encoder.encode(["b"])[0].tolist(), [1, 2]])
    )
    with pytest.raises(InputError, match="has 2 dimensions and the index 3; encode all passages"):
        vectors_of([given_one], encoder, 3)
    encoder = FakeEncoder()
    assert vectors_of([Passage(str(i)) for i in range(BATCH + 1)], encoder).shape == (BATCH + 1, 32)
    assert [len(call) for call in encoder.calls] == [BATCH, 1]


def test_rows_of_any_size_get_length_one():
    rows = unit_rows(np.array([[3, 4], [0, 0], [3e30, 4e30], [3e-30, -4e-30]], np.float32))
    assert rows.dtype == np.float32
    assert rows.tolist() == pytest.approx(np.array([[0.6, 0.8], [0, 0], [0.6, 0.8], [0.6, -0.8]]))


def test_a_question_that_brings_its_vector_is_not_encoded():
    encoder = FakeEncoder({"q": (1.0, 0.0)})
    asked, vector = embed_query(Query("q", [2.0, 3.0]), encoder)
    assert (vector.tolist(), encoder.calls) == ([2, 3], [])
    asked, vector = embed_query("q", encoder)
    assert (asked.text, asked.embedding.tolist(), vector.tolist()) == ("q", [1, 0], [1, 0])


@pytest.mark.parametrize(("passages", "says"), [("text", "must be a list of passages"), (["a", {"text": 5}], "text")])
def test_what_is_no_list_of_passages_is_not_added(passages, says):
    with pytest.raises(InputError, match=says):
        Collection().prepare(passages)


def test_a_collection_names_what_has_no_name_and_refuses_a_name_twice():
    whole = Collection()
    whole.extend(whole.prepare(["a", Passage("b", id="x")]))
    assert [p.id for p in whole] == ["0", "x"]
    whole.extend(whole.prepare(["c"]))
    assert (len(whole), whole[2].id) == (3, "2")
    for again in (["d", {"text": "e", "id": "x"}], [{"text": "d", "id": "y"}, {"text": "e", "id": "y"}]):
        with pytest.raises(InputError, match=r"passages\[1\]\.id is '[xy]', which another passage has"):
            whole.prepare(again)
    assert whole.remove(["x", "of nobody"]) == {1: Passage("b", id="x")}
    assert (len(whole), [p.id for p in whole]) == (2, ["0", "2"])
    with pytest.raises(InputError, match="the passage at position 1 was removed"):
        whole[1]
    whole.extend(whole.prepare([Passage("b", id="x")]))  # its name is free again
    assert len(whole) == 3


def test_options_have_ranges():
    assert_range(lambda **given: HybridRetriever(BM25Retriever(["a"]), **given), "constant", 0)
    assert_range(lambda **given: HybridRetriever(BM25Retriever(["a"]), **given), "depth", 1, MAX_PASSAGES)
    assert [check_count(k) for k in (0, MAX_PASSAGES)] == [0, MAX_PASSAGES]
    for k in (-1, MAX_PASSAGES + 1, 2.5, True):
        with pytest.raises(OptionError, match="k must be"):
            check_count(k)


@pytest.mark.parametrize(("k", "looked"), [(0, 0), (1, 50), (10, 50), (11, 55), (1_000, 5_000), (1_001, 5_000)])
def test_with_sources_five_times_as_many_are_looked_at(k: int, looked: int):
    assert (depth(Sources(), k), depth(None, k)) == (looked, k)


def test_a_retriever_of_somebody_elses_is_called_on_a_thread():
    class Plain:
        def retrieve(self, query: str, k: int) -> list[str]:
            self.thread = threading.current_thread()
            return ["a", "b"][:k]

    plain = Plain()
    assert asyncio.run(aretrieve_passages(plain, "q", 1)) == ["a"]
    assert plain.thread is not threading.main_thread()
    assert [p.text for p in asyncio.run(aretrieve_passages(BM25Retriever(["mill river", "town"]), "mill", 5))] == [
        "mill river"
    ]
