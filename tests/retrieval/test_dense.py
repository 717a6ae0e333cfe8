from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unpoison.algorithms.cosine import best_first, cosine
from unpoison.core.passages import Passage, Query
from unpoison.errors import InputError, ModelError, OptionError
from unpoison.models import FakeEncoder
from unpoison.retrieval import DenseRetriever
from unpoison.retrieval import dense as module
from unpoison.retrieval.base import unit_rows
from unpoison.retrieval.dense import nearest

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
