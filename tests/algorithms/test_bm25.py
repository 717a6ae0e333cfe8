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


@pytest.mark.parametrize("statistics", ["single", "candidates"])
def test_nothing_at_all(statistics) -> None:
    assert bm25([], [], statistics=statistics).shape == (0, 0)
    assert bm25([["a"]], [], statistics=statistics).shape == (1, 0)
    assert bm25([], [["a"]], statistics=statistics).shape == (0, 1)
    assert bm25([[]], [[], []], statistics=statistics).tolist() == [[0, 0]]


def test_unknown_statistics_are_refused() -> None:
    with pytest.raises(ValueError, match="statistics must be"):
        bm25([], [], statistics="corpus")


@given(token_lists, token_lists, st.sampled_from(["single", "candidates"]))
def test_dense_and_sparse_agree(queries, documents, statistics) -> None:
    dense = bm25(queries, documents, statistics=statistics)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DENSE_CELLS", -1)
        patch.setattr(module, "BLOCK_CELLS", 3)
        sparse = bm25(queries, documents, statistics=statistics)
    np.testing.assert_allclose(sparse, dense, rtol=1e-12)


@given(token_lists, st.randoms(use_true_random=False))
def test_documents_may_come_in_any_order(documents, random) -> None:
    order = list(range(len(documents)))
    random.shuffle(order)
    scores = bm25(documents, documents)
    shuffled = [documents[i] for i in order]
    np.testing.assert_allclose(bm25(shuffled, shuffled), scores[np.ix_(order, order)], rtol=1e-12)
    assert (scores >= 0).all()


def test_single_statistics_know_no_other_document() -> None:
    query, document = [["a", "b"]], ["a", "b", "b", "c"]
    alone = bm25(query, [document])
    beside = bm25(query, [["b"] * 50, document])
    assert alone[0, 0] == pytest.approx(beside[0, 1])


def test_candidates_weigh_what_is_rare_and_how_long_a_text_is() -> None:
    """Okapi: ln(1 + (n - m + .5) / (m + .5)) f / (f + k1 (1 - b + b l / mean))."""
    documents = [["boat", "boat", "sail"], ["boat"], ["tide", "sail"]]
    found = bm25([["boat", "tide", "tide"]], documents, statistics="candidates", k1=1.2, b=0.75)
    boat, tide = np.log(1 + 1.5 / 2.5), np.log(1 + 2.5 / 1.5)
    length = lambda words: 1.2 * (0.25 + 0.75 * words / 2)  # noqa: E731
    expected = [boat * 2 / (2 + length(3)), boat / (1 + length(1)), 2 * tide / (1 + length(2))]
    assert found[0] == pytest.approx(expected)
