from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unpoison.text.rouge as module
from unpoison.text.rouge import rouge_l

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


def test_order_matters() -> None:
    assert rouge_l(["one two", "two one"])[0, 1] == 0.5


def test_equal_texts_and_texts_without_tokens() -> None:
    assert rouge_l(["", "Rome", "ROME!", "?"]).tolist() == [
        [0, 0, 0, 0],
        [0, 1, 1, 0],
        [0, 1, 1, 0],
        [0, 0, 0, 0],
    ]


def test_no_texts_and_one() -> None:
    assert rouge_l([]).shape == (0, 0)
    assert rouge_l(["Rome"]).tolist() == [[1]]


def test_a_value_on_the_border_is_exact() -> None:
    assert rouge_l(["a1 b1 c1 d1", "a1 x1 y1 z1"])[0, 1] == 0.25


def test_no_stem_is_a_surrogate() -> None:
    characters = [module._character(number) for number in range(0xD7F0, 0xE010)]
    assert characters[0] == "\ud7f0"
    assert len(set(characters)) == len(characters)
    assert not any("\ud800" <= character <= "\udfff" for character in characters)
    assert module._character(module.CODE_POINTS - 1) == "\U0010ffff"


@given(texts)
def test_more_stems_than_characters(texts_found) -> None:
    expected = rouge_l(texts_found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CODE_POINTS", 0)
        assert (rouge_l(texts_found) == expected).all()


@given(texts)
def test_against_the_textbook(texts_found) -> None:
    scores = rouge_l(texts_found)
    assert (scores == scores.T).all()
    assert ((scores >= 0) & (scores <= 1)).all()
    for i, left in enumerate(text.split() for text in texts_found):
        for j, right in enumerate(text.split() for text in texts_found):
            total = len(left) + len(right)
            assert scores[i, j] == (2 * longest_common(left, right) / total if total else 0)


@given(texts, st.randoms(use_true_random=False))
def test_texts_may_come_in_any_order(texts_found, random) -> None:
    order = list(range(len(texts_found)))
    random.shuffle(order)
    assert (rouge_l([texts_found[i] for i in order]) == rouge_l(texts_found)[np.ix_(order, order)]).all()


def test_hostile_text() -> None:
    scores = rouge_l(["a" * 200_000, "\ud800 lone", "\x00", "😀" * 1000])
    assert np.isfinite(scores).all()
