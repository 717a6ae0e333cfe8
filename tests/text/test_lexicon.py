"""The words of values in twelve languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.lexicon import duration_unit, fold, mentions, phrases, pieces


@given(st.text(max_size=40))
def test_folding_keeps_every_position(text: str) -> None:
    assert len(fold(text)) == len(text)
    folded = fold(text)
    assert all(folded[piece.start : piece.end] == piece.text for piece in pieces(folded))


@pytest.mark.parametrize(
    ("text", "folded"), [("ÉTÉ", "ete"), ("\u0663", "3"), ("½", "½"), ("a\u2013b", "a-b"), ("l\u2019an", "l'an")]
)
def test_case_accents_and_marks_are_one(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_a_piece_is_a_date_a_time_a_number_a_word_or_a_sign() -> None:
    assert [piece.text for piece in pieces("on 3/4/2020 at 10:30, 1,250.5 l'an x_1")] == [
        "on", "3/4/2020", "at", "10:30", ",", "1,250.5", "l'", "an", "x", "_", "1",
    ]  # fmt: skip


def test_the_longest_phrase_counts() -> None:
    table = phrases("dayparts")
    assert (table.at(["a", "m", "x"], 0), table.at(["am", "x"], 0)) == (None, ("am", 1))
    assert table.get("harbour") is None
    assert phrases("numbers").get("seven") == 7
    assert phrases("numbers").before(["seven", "days"], 1)
    assert not phrases("numbers").before(["seven", "days"], 2)


@pytest.mark.parametrize(
    ("word", "unit"), [("Stunden", "hour"), ("days", "day"), ("か月", "month"), ("kg", ""), ("harbour", "")]
)
def test_units_of_time(word: str, unit: str) -> None:
    assert duration_unit(word) == unit


def test_a_text_that_has_a_phrase_of_a_table() -> None:
    assert mentions("weekdays", "It opens on Monday.")
    assert not mentions("weekdays", "It opens at noon.")
