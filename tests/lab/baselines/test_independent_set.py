from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from unpoison_lab.baselines.reliabilityrag import maximum_independent_set


def graph(size: int, *edges: tuple[int, int]) -> NDArray[np.bool_]:
    matrix = np.zeros((size, size), bool)
    for left, right in edges:
        matrix[left, right] = matrix[right, left] = True
    return matrix


def by_trying_all(edges: NDArray[np.bool_]) -> list[int]:
    """The first of the largest: `combinations` yields in lexicographic order."""
    size = len(edges)
    for count in range(size, -1, -1):
        for chosen in combinations(range(size), count):
            if not edges[np.ix_(chosen, chosen)].any():
                return list(chosen)
    return []


@pytest.mark.parametrize(
    ("edges", "members"),
    [
        (graph(4, (0, 1), (1, 2), (1, 3)), [0, 2, 3]),
        (graph(2, (0, 1)), [0]),
        (graph(4, (0, 1), (2, 3)), [0, 2]),
        (graph(5, (0, 1), (1, 2), (2, 3), (3, 4), (4, 0)), [0, 2]),
        (graph(4, (0, 1), (0, 2), (0, 3)), [1, 2, 3]),
        (graph(3), [0, 1, 2]),
        (graph(1), [0]),
        (graph(0), []),
    ],
)
def test_the_worked_examples(edges: NDArray[np.bool_], members: list[int]) -> None:
    chosen = maximum_independent_set(edges)
    assert (chosen.members.tolist(), chosen.exact) == (members, True)


@given(size=st.integers(0, 12), share=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_it_finds_what_trying_all_finds(size: int, share: float, seed: int) -> None:
    upper = np.triu(np.random.default_rng(seed).random((size, size)) < share, 1)
    chosen = maximum_independent_set(upper | upper.T)
    assert chosen.exact
    assert chosen.members.tolist() == by_trying_all(upper | upper.T)


@given(
    groups=st.lists(st.integers(0, 3), max_size=12), clashes=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)))
)
def test_equal_answers_stand_and_fall_together(groups: list[int], clashes: set[tuple[int, int]]) -> None:
    edges = np.array([[a != b and bool({(a, b), (b, a)} & clashes) for b in groups] for a in groups], bool)
    edges = edges.reshape(len(groups), len(groups))
    assert maximum_independent_set(edges).members.tolist() == by_trying_all(edges)


def test_when_the_work_is_used_up_a_large_set_remains_and_says_so() -> None:
    upper = np.triu(np.random.default_rng(0).random((200, 200)) < 0.05, 1)
    edges = upper | upper.T
    greedy: list[int] = []
    for vertex in range(200):
        if not edges[vertex, greedy].any():
            greedy.append(vertex)
    hurried = maximum_independent_set(edges, work=0)
    longer = maximum_independent_set(edges, work=100_000)
    assert not hurried.exact
    assert not longer.exact
    assert hurried.members.tolist() == greedy
    assert len(longer.members) >= len(greedy)
    for search in (hurried, longer):
        assert not edges[np.ix_(search.members, search.members)].any()


def test_the_diagonal_does_not_count_and_the_rest_must_be_symmetric() -> None:
    assert maximum_independent_set(np.eye(3)).members.tolist() == [0, 1, 2]
    for wrong in (np.triu(np.ones((2, 2)), 1), np.ones((2, 3)), np.ones(3)):
        with pytest.raises(ValueError, match="symmetric"):
            maximum_independent_set(wrong)
