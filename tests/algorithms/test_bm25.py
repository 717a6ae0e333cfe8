from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unpoison.algorithms.bm25 as module
from unpoison.algorithms.bm25 import bm25

token_lists = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12), max_size=8)


def test_one_occurrence_of_one_token() -> None:
    assert bm25([["paris"]], [["paris", "rome"]]) == pytest.approx(np.array([[0.115073]]), abs=1e-6)


def test_worked_example_of_four_documents() -> None:
    documents = [
        text.split()
        for text in (
            "paris capital france",
            "paris capital france city",
            "lyon capital france query words",
            "berlin wall history",
        )
    ]
    scores = bm25(documents, documents)
    between = (scores + scores.T) / 2
    assert between[0, 1] == pytest.approx(0.345218, abs=2e-6)
    assert between[0, 2] == between[1, 2] == pytest.approx(0.230146, abs=1e-6)
    assert between[3, :3].tolist() == [0, 0, 0]
    to_query = bm25(documents, [["capital", "france"]])
    assert to_query[:, 0] == pytest.approx([0.230146, 0.230146, 0.230146, 0], abs=1e-6)


def test_nothing_at_all() -> None:
    assert bm25([], []).shape == (0, 0)
    assert bm25([["a"]], []).shape == (1, 0)
    assert bm25([], [["a"]]).shape == (0, 1)
    assert bm25([[]], [[], []]).tolist() == [[0, 0]]


@given(token_lists, token_lists)
def test_dense_and_sparse_agree(queries, documents) -> None:
    dense = bm25(queries, documents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DENSE_CELLS", -1)
        patch.setattr(module, "BLOCK_CELLS", 3)
        sparse = bm25(queries, documents)
    np.testing.assert_allclose(sparse, dense, rtol=1e-12)


@given(token_lists, st.randoms(use_true_random=False))
def test_documents_may_come_in_any_order(documents, random) -> None:
    order = list(range(len(documents)))
    random.shuffle(order)
    scores = bm25(documents, documents)
    shuffled = [documents[i] for i in order]
    np.testing.assert_allclose(bm25(shuffled, shuffled), scores[np.ix_(order, order)], rtol=1e-12)
    assert (scores >= 0).all()


def test_a_document_is_scored_without_the_others() -> None:
    query, document = [["a", "b"]], ["a", "b", "b", "c"]
    alone = bm25(query, [document])
    beside = bm25(query, [["b"] * 50, document])
    assert alone[0, 0] == pytest.approx(beside[0, 1])
