"""Retrievers in memory against a search by hand, while passages come and go."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ranges import assert_range
from unpoison.algorithms.cosine import best_first, cosine
from unpoison.core.passages import Passage, Query
from unpoison.errors import InputError, ModelError, OptionError
from unpoison.models import FakeEncoder
from unpoison.retrieval import BM25Retriever, DenseRetriever, Retriever
from unpoison.retrieval import memory as module
from unpoison.retrieval.base import unit_rows
from unpoison.retrieval.memory import BM25Index, nearest
from unpoison.text.tokens import stems

TEXTS = [
    "Bananas grow in the tropics.",
    "Paris is the capital of France.",
    "The capital of Spain is Madrid.",
    "The capital of Spain is Madrid.",
]
DOCUMENTS = st.lists(st.lists(st.sampled_from("abcde"), max_size=8), max_size=8)


@given(documents=DOCUMENTS, query=st.lists(st.sampled_from("abcdef"), max_size=6), k1=st.sampled_from([0.0, 0.9, 1.5]))
def test_the_index_scores_by_what_is_rare_and_how_long_a_text_is(documents, query, k1):
    """Okapi: ln(1 + (n - m + .5) / (m + .5)) f / (f + k1 (1 - b + b l / mean))."""
    index = BM25Index(k1=k1, b=0.75)
    for document in documents:
        index.add(document)
    mean = max(sum(map(len, documents)) / max(len(documents), 1), 1.0)
    for score, document in zip(index.scores(query), documents, strict=True):
        expected = 0.0
        for token in query:
            holders, count = sum(token in other for other in documents), document.count(token)
            rarity = np.log(1 + (len(documents) - holders + 0.5) / (holders + 0.5))
            expected += rarity * count / (count + k1 * (0.25 + 0.75 * len(document) / mean)) if count else 0.0
        assert score == pytest.approx(expected, abs=1e-12)


def test_best_first_with_ids_and_scores_and_no_embeddings():
    retriever = BM25Retriever(TEXTS)
    passages = retriever.retrieve("the capital of Spain", 10)
    assert [p.id for p in passages] == ["2", "3", "1"]  # 2 and 3 tie; 0 shares no token
    assert passages[0].score == passages[1].score > passages[2].score > 0
    assert [p.embedding for p in passages] == [None] * 3
    assert retriever.encoder is None
    assert isinstance(retriever, Retriever)


def test_fewer_more_and_none():
    retriever = BM25Retriever(TEXTS)
    assert [p.id for p in retriever.retrieve("capital", 2)] == ["1", "2"]
    assert retriever.retrieve("capital", 0) == ()
    assert retriever.retrieve("", 3) == retriever.retrieve("of the and", 3) == retriever.retrieve("zebra", 3) == ()
    assert BM25Retriever().retrieve("capital", 3) == ()
    assert BM25Retriever(["", " ", "the"]).retrieve("the", 3) == ()


def test_ids_are_kept_and_an_id_again_is_refused_as_a_whole():
    retriever = BM25Retriever([Passage("Spain", id="a"), {"content": "Portugal", "id": 7}])
    retriever.add(["Andorra"])
    assert [retriever.retrieve(name, 1)[0].id for name in ("Spain", "Portugal", "Andorra")] == ["a", "7", "2"]
    for wrong, position in (
        ([Passage("France", id="b"), Passage("x", id="a")], 1),
        ([Passage("x", id="b"), Passage("y", id="b")], 1),
        ([Passage("x", id="4"), "y"], 1),  # the place of the second
    ):
        with pytest.raises(InputError, match=rf"passages\[{position}\].id is '[ab4]', which another passage has"):
            retriever.add(wrong)
    assert len(retriever) == 3
    assert retriever.retrieve("France", 1) == ()


def test_unusable_passages_are_refused():
    with pytest.raises(InputError, match=r"passages\[1\] has no text, got None"):
        BM25Retriever(["a", None])
    with pytest.raises(InputError, match="wrap it in a list"):
        BM25Retriever("one text")


def test_the_callers_object_comes_along():
    document = {"text": "Spain", "page": 3}
    assert BM25Retriever([document]).retrieve("spain", 1)[0].original is document


def test_another_tokeniser_for_other_scripts():
    texts = ["圣何塞鲨鱼队在SAP中心比赛", "鲨鱼队的主场是李维斯体育场", "巴黎是法国的首都"]
    assert BM25Retriever(texts).retrieve("首都", 1) == ()
    assert [p.id for p in BM25Retriever(texts, tokenize=stems).retrieve("首都", 1)] == ["2"]


def test_options_are_checked():
    for options in ({"k1": -0.1}, {"b": 1.5}, {"k1": float("nan")}):
        with pytest.raises(OptionError):
            BM25Retriever(**options)


def test_searching_while_others_add():
    retriever = BM25Retriever(TEXTS)
    positions: list[int] = []

    def search() -> None:
        positions.extend(len(retriever.retrieve("capital", 500)) for _ in range(100))

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(100):
        retriever.add([f"capital number {i}"])
    for thread in threads:
        thread.join()
    assert len(positions) == 300
    assert len(retriever.retrieve("capital", 500)) == 103


NUMBERS = st.one_of(
    st.just(0.0), st.floats(-(2.0**99), 2.0**99, width=32, allow_subnormal=False), st.floats(-2, 2, width=32)
)


def ids(retrieved):
    return [p.id for p in retrieved]


@given(data=st.data(), count=st.integers(1, 12))
def test_the_nearest_are_those_of_brute_force(data, count):
    n, d = data.draw(st.integers(1, 10)), data.draw(st.integers(1, 5))
    rows = unit_rows(data.draw(arrays(np.float32, (n, d), elements=NUMBERS)))
    rows = rows[data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=12))]  # equal rows tie
    vector = data.draw(arrays(np.float32, d, elements=NUMBERS))
    vector = unit_rows(vector[None])[0]
    places, scores = nearest(rows, vector, count)
    exact = rows.astype(float) @ vector.astype(float)
    np.testing.assert_array_equal(places, best_first(exact)[:count])
    np.testing.assert_allclose(scores, exact[places], atol=1e-6)


def test_the_nearest_of_many_whatever_the_blocks(monkeypatch):
    generator = np.random.default_rng(0)
    rows = unit_rows(generator.standard_normal((3000, 24)).astype(np.float32))
    rows[2000:] = rows[:1000]
    vector = rows[500] + rows[7]
    expected = best_first(cosine(vector[None], rows)[0])
    for cells in (2**22, 24 * 7):
        monkeypatch.setattr(module, "BLOCK_CELLS", cells)
        for count in (1, 2, 10, 3000, 5000):
            np.testing.assert_array_equal(nearest(rows, vector, count)[0][:50], expected[:count][:50])


def test_what_brings_its_embedding_is_not_encoded(encoder):
    vector = encoder.encode(["other"])[0]
    encoder.calls.clear()
    retriever = DenseRetriever(encoder, [Passage("given", id="a", embedding=vector), Passage("made", id="b")])
    assert retriever.retrieve(Query("q", vector), 1)[0].id == "a"
    assert encoder.calls == [("made",)]


def test_a_text_without_vector_is_last():
    retriever = DenseRetriever(FakeEncoder(), ["", "some text"])
    assert [(p.id, p.score) for p in retriever.retrieve("some text", 2)] == [("1", pytest.approx(1)), ("0", 0.0)]
    assert [p.score for p in retriever.retrieve("", 2)] == [0.0, 0.0]


def test_hostile_vectors_are_refused(encoder, passages):
    retriever = DenseRetriever(encoder, passages)
    for wrong, says in (
        ([{"text": "a", "embedding": [1.0, float("nan")]}], r"passages\[0\].embedding\[1\] is nan"),
        ([Passage("a", id="new", embedding=[1, 2])], "embedding of passage 'new' has 2 dimensions and the index 32"),
        ([Passage("b", id="b"), Passage("a", id="p3")], r"passages\[1\].id is 'p3', which another passage has"),
    ):
        with pytest.raises(InputError, match=says):
            retriever.add(wrong)
    with pytest.raises(InputError, match="query's embedding has 3 dimensions and the index 32"):
        retriever.retrieve(Query("q", [1, 2, 3]), 1)
    with pytest.raises(InputError, match="embedding of passage '1' has 3 dimensions and the index 2"):
        DenseRetriever(encoder, [Passage("a", embedding=[1, 2]), Passage("b", embedding=[1, 2, 3])])
    assert len(retriever) == 20
    assert retriever.retrieve("text number 3", 1)[0].id == "p3"


def test_enormous_and_tiny_vectors_have_a_direction():
    retriever = DenseRetriever(
        FakeEncoder(), [Passage("huge", embedding=[3e38, 3e38]), Passage("tiny", embedding=[1e-38, -1e-38])]
    )
    assert [p.score for p in retriever.retrieve(Query("q", [1e30, 1e30]), 2)] == [pytest.approx(1), pytest.approx(0)]


def test_an_encoder_that_fails_leaves_the_index_as_it_was():
    encoder = FakeEncoder({"a": [1, 0], "q": [1, 0]})
    retriever = DenseRetriever(encoder, ["a"])
    with pytest.raises(ModelError):
        retriever.add([Passage("b", embedding=[0, 1]), "unknown"])
    assert len(retriever) == 1
    retriever.add([Passage("b", embedding=[0, 1])])
    assert ids(retriever.retrieve("q", 5)) == ["0", "1"]


def test_the_lexical_encoder_cannot_be_kept():
    with pytest.raises(OptionError, match="the encoder 'lexical' are valid within one call only"):
        DenseRetriever("lexical")


def test_texts_are_encoded_in_batches(encoder):
    DenseRetriever(encoder, [f"text {i}" for i in range(600)])
    assert [len(texts) for texts in encoder.calls] == [256, 256, 88]


def test_the_options_of_bm25_have_ranges():
    assert_range(BM25Index, "b", 0.0, 1.0)
    for k1 in (0, 0.5, 1e6):
        assert BM25Index(k1=k1).k1 == k1
    with pytest.raises(OptionError, match="k1"):
        BM25Index(k1=-0.1)
    assert (BM25Index().k1, BM25Index().b) == (1.5, 0.75)


def test_an_index_forgets_what_is_removed_as_if_it_had_never_been_there():
    texts = [["mill", "river"], ["mill", "mill", "town"], ["river"]]
    index, fresh = BM25Index(), BM25Index()
    for tokens in texts:
        index.add(tokens)
    index.remove(1, texts[1])
    for tokens in (texts[0], texts[2]):
        fresh.add(tokens)
    for query in (["mill"], ["river", "river"], ["town"], ["mill", "town", "other"]):
        first, gone, last = index.scores(query).tolist()
        assert (first, last) == tuple(fresh.scores(query).tolist())
        assert gone == 0
    assert len(index) == len(fresh) == 2
    assert sorted(index._postings) == ["mill", "river"]
    for position in (0, 2):
        index.remove(position, texts[position])
    assert (len(index), index._postings, index.scores(["mill"]).tolist()) == (0, {}, [0, 0, 0])
