from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.tokens import rouge_l

texts = st.lists(st.lists(st.sampled_from(["ab", "cd", "ef", "gh", "法"]), max_size=10).map(" ".join), max_size=6)


def longest_common(left: list[str], right: list[str]) -> int:
    row = [0] * (len(right) + 1)
    for token in left:
        above = row[:]
        for place, other in enumerate(right):
            row[place + 1] = above[place] + 1 if token == other else max(above[place + 1], row[place])
    return row[-1]


def test_stems_are_compared_not_words() -> None:
    scores = rouge_l(["The team plays games in San Jose", "Teams played a game at San-Jose arena"])
    assert scores[0, 1] == pytest.approx(2 / 3)


@given(texts)
def test_against_the_textbook(texts_found) -> None:
    scores = rouge_l(texts_found)
    assert (scores == scores.T).all()
    assert ((scores >= 0) & (scores <= 1)).all()
    for i, left in enumerate(text.split() for text in texts_found):
        for j, right in enumerate(text.split() for text in texts_found):
            total = len(left) + len(right)
            assert scores[i, j] == (2 * longest_common(left, right) / total if total else 0)
