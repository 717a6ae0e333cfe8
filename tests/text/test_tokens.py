from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.tokens import ENGLISH_33, ENGLISH_318, stem_sets, stems, words


def test_words_are_lower_cased_and_at_least_two_characters() -> None:
    assert words("A cat's 7 lives: CAT_2, no. 42 — Été") == ["cat", "lives", "cat_2", "no", "42", "été"]


def test_words_leave_out_stop_words_and_keep_repetitions() -> None:
    assert words("Paris is Paris, not Rome", ENGLISH_33) == ["paris", "paris", "rome"]


def test_words_of_nothing() -> None:
    assert words("") == []
    assert words("? ! a 😀") == []


def test_stop_word_lists_have_their_published_sizes() -> None:
    assert len(ENGLISH_33) == 33
    assert len(ENGLISH_318) == 318
    assert all(word == word.lower().strip() for word in ENGLISH_33 | ENGLISH_318)


def test_stems_cut_only_words_longer_than_three_characters() -> None:
    assert stems("Teams played games in San-Jose, was it?") == [
        "team",
        "plai",
        "game",
        "in",
        "san",
        "jose",
        "was",
        "it",
    ]


def test_stems_split_ascii_at_underscores_too() -> None:
    assert stems("snake_case") == ["snake", "case"]


def test_stems_keep_other_scripts() -> None:
    assert stems("Müller wohnt") == ["müller", "wohnt"]
    assert stems("Привет мир") == ["привет", "мир"]


def test_han_and_kana_are_single_tokens() -> None:
    assert stems("法国的首都 is パリ2") == [*"法国的首都", "is", "パ", "リ", "2"]


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_ascii_stems_hold_letters_and_digits_only(text: str) -> None:
    stems_found = stems(text)
    assert all(re.fullmatch("[a-z0-9]+", stem) for stem in stems_found)
    assert len(stems_found) == len(re.findall("[a-z0-9]+", text.lower()))


@given(st.text(), st.text())
def test_tokens_of_two_texts_are_the_tokens_of_both(left: str, right: str) -> None:
    assert words(f"{left} \n {right}") == words(left) + words(right)


@given(
    st.lists(st.one_of(st.text(max_size=40), st.sampled_from(["Games were played", "games PLAYED was \u6cd5\u56fd"])))
)
def test_sets_of_stems_are_the_stems_of_each_text(texts: list[str]) -> None:
    assert stem_sets(texts) == [set(stems(text)) for text in texts]
