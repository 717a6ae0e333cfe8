"""FaissRetriever against the real library."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from unpoison.errors import InputError, OptionError
from unpoison.models import FakeEncoder, LexicalEncoder
from unpoison.retrieval import DenseRetriever, FaissRetriever
from unpoison.types import Passage, Query

faiss = pytest.importorskip("faiss", reason="FAISS ABSENT: pip install 'unpoison[faiss]'")


def index_of(description, vectors, metric=faiss.METRIC_INNER_PRODUCT):
    index = faiss.index_factory(vectors.shape[1], description, metric)
    index.train(vectors)
    if description.startswith("IDMap"):
        index.add_with_ids(vectors, np.arange(len(vectors)))
    else:
        index.add(vectors)
    return index


def test_it_finds_what_the_exact_search_finds_and_brings_the_vectors(encoder, passages):
    exact, retriever = DenseRetriever(encoder, passages), FaissRetriever(encoder, passages)
    encoder.calls.clear()
    for k in (1, 7, 20, 25):
        retrieved, expected = retriever.retrieve("text number 3", k), exact.retrieve("text number 3", k)
        assert [p.id for p in retrieved] == [p.id for p in expected]
        np.testing.assert_allclose([p.score for p in retrieved], [p.score for p in expected], atol=1e-6)
        np.testing.assert_allclose([p.embedding for p in retrieved], [p.embedding for p in expected], atol=1e-6)
    assert all(texts == ("text number 3",) for texts in encoder.calls)  # the hits were not encoded again


@pytest.mark.parametrize("description", ["Flat", "IDMap2,Flat", "HNSW8", "IVF2,Flat"])
@pytest.mark.parametrize("metric", [faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2])
def test_indexes_of_the_user(encoder, passages, description, metric, capfd):
    vectors = encoder.encode([p.text for p in passages])
    encoder.calls.clear()
    retriever = FaissRetriever(encoder, passages, index=index_of(description, vectors, metric))
    assert encoder.calls == []
    retrieved = retriever.retrieve("text number 3", 4)
    assert retrieved[0].id == "p3"
    assert [p.score for p in retrieved] == sorted((p.score for p in retrieved), reverse=True)
    np.testing.assert_array_equal(retrieved[0].embedding, vectors[3])


def test_an_index_that_finds_fewer_than_it_holds(encoder, passages, capfd):
    index = index_of("IVF20,Flat", encoder.encode([p.text for p in passages]))
    retrieved = FaissRetriever(encoder, passages, index=index).retrieve("text number 3", 20)
    assert 0 < len(retrieved) < 20


def test_an_index_that_keeps_no_vectors_says_what_to_do(encoder, passages):
    index = index_of("IDMap,Flat", encoder.encode([p.text for p in passages]))
    with pytest.raises(InputError, match=r"IndexIDMap.*make_direct_map"):
        FaissRetriever(encoder, passages, index=index).retrieve("q", 1)


def test_an_index_that_is_not_trained_says_so(encoder, passages):
    retriever = FaissRetriever(encoder, index=faiss.index_factory(32, "IVF2,Flat"))
    with pytest.raises(InputError, match=r"IndexIVFFlat\) is not trained; call its train"):
        retriever.add(passages)


def test_every_vector_needs_its_passage(encoder, passages):
    index = index_of("Flat", encoder.encode([p.text for p in passages]))
    with pytest.raises(InputError, match="holds 20 vectors and 19 passages were given"):
        FaissRetriever(encoder, passages[1:], index=index)
    retriever = FaissRetriever(encoder, passages, index=index)
    index.add(encoder.encode(["behind its back"]))
    with pytest.raises(InputError, match="found its vector 20, and there are 20 passages"):
        retriever.retrieve("behind its back", 1)


def test_adding(encoder, passages):
    retriever = FaissRetriever(encoder)
    assert retriever.retrieve("q", 3) == ()
    retriever.add(passages)
    retriever.add(["without an id"])
    assert retriever.retrieve("without an id", 1)[0].id == "20"
    for wrong, says in (
        ([Passage("a", id="new"), Passage("b", id="p3")], r"passages\[1\].id is 'p3', which another passage has"),
        ([Passage("a", id="new", embedding=[1, 2])], "embedding of passage 'new' has 2 dimensions and the index 32"),
    ):
        with pytest.raises(InputError, match=says):
            retriever.add(wrong)
    assert len(retriever) == retriever.index.ntotal == 21


def test_hostile_questions(encoder, passages):
    retriever = FaissRetriever(encoder, passages)
    assert retriever.retrieve("q", 0) == ()
    with pytest.raises(InputError, match="query's embedding has 3 dimensions and the index 32"):
        retriever.retrieve(Query("q", [1, 2, 3]), 1)
    with pytest.raises(OptionError, match="k must be"):
        retriever.retrieve("q", 5001)
    with pytest.raises(OptionError, match="'lexical' hold for the texts of one call only"):
        FaissRetriever(LexicalEncoder())


def test_async_equals_sync(encoder, passages):
    retriever = FaissRetriever(encoder, passages)
    assert asyncio.run(retriever.aretrieve("text number 1", 5)) == retriever.retrieve("text number 1", 5)


def test_given_embeddings_of_any_length_are_compared_by_their_direction():
    encoder = FakeEncoder({"q": [1, 0]})
    long = [Passage("near", id="a", embedding=[3, 0.1]), Passage("far", id="b", embedding=[90, 90])]
    passages = FaissRetriever(encoder, long).retrieve(Query("q", [7, 0]), 2)
    assert [p.id for p in passages] == ["a", "b"]
    assert passages[1].score == pytest.approx(0.5**0.5)
