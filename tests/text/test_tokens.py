"""Words, stems and folded tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.tokens import (
    ENGLISH_33,
    ENGLISH_318,
    arabic,
    fold_text,
    lower_text,
    rouge_l,
    separate_words,
    squad,
    stems,
    tokens,
    trim_text,
    without_accents,
    words,
)


def test_words_are_lower_cased_and_at_least_two_characters() -> None:
    assert words("A cat's 7 lives: CAT_2, no. 42 — Été") == ["cat", "lives", "cat_2", "no", "42", "été"]


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


def test_han_and_kana_are_single_tokens() -> None:
    assert stems("法国的首都 is パリ2") == [*"法国的首都", "is", "パ", "リ", "2"]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Café CRÈME", "cafe creme"),
        ("Αθήνα", "αθηνα"),
        ("Ϊος", "ιος"),
        ("Ёлкин йод", "елкин иод"),
        ("\u0662\u0660\u0662\u0664 \uff12\uff10", "2024 20"),
    ],
)
def test_accents_go_where_they_are_form_and_digits_are_european(text: str, plain: str) -> None:
    assert fold_text(text) == plain


@pytest.mark.parametrize(
    ("text", "other"), [("\u05e9\u05c1", "\u05e9\u05c2"), ("\u304c", "\u304b"), ("\u0939\u093f", "\u0939")]
)
def test_marks_stay_where_they_tell_letters_apart(text: str, other: str) -> None:
    assert fold_text(text) != fold_text(other)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Louis XIV of France", "louis 14 of france"),
        ("chapter IX.", "chapter ix."),  # no numeral before a dot: an initial
        ("U.S. and U. K.", "us. and uk."),
        ("A & B", "a and b"),
        ("5\u00b2 m, 2\u00bd cups", "5^2 m, 2 1/2 cups"),
        ("3\u20444", "3/4"),
        ("1\u20132, a \u2014 b, \u22125", "1-2, a - b, -5"),
        ("it\u2019s 5\u2032 6\u2033", "it's 5' 6\""),
        ("  two \n words ", "two words"),
    ],
)
def test_one_spelling_stands_for_all(text: str, folded: str) -> None:
    assert fold_text(text) == folded
    assert fold_text(folded) == folded


@pytest.mark.parametrize(
    ("numeral", "value"), [("IV", 4), ("VI", 6), ("IX", 9), ("XIV", 14), ("XL", 40), ("LXXXIX", 89), ("XC", 90)]
)
def test_roman_numerals_behind_a_word_are_numbers(numeral: str, value: int) -> None:
    assert arabic(f"Louis {numeral} and {numeral}") == f"Louis {value} and {value}"
    assert arabic(f"{numeral} {numeral}. {numeral}+") == f"{numeral} {numeral}. {numeral}+"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3.5-4 km, ok?", ["3.5-4", "km", "+,", "ok", "+?"]),
        ("$5.5m a/b", ["$", "+5.5", "+m", "a", "+/", "+b"]),
        ("don't x2y c++", ["don't", "x2y", "c", "++", "++"]),
        ("", []),
    ],
)
def test_a_token_says_whether_it_is_glued_to_the_one_before(text: str, found: list[str]) -> None:
    assert ["+" * token.glued + token.text for token in tokens(text)] == found


def test_published_normal_forms() -> None:
    assert [trim_text(text) for text in (" A. ", ".", "A..", 5)] == ["a", ".", "a.", "5"]
    assert lower_text(" A. ") == "a."
    assert squad("The  Cat's an-apple, a b.") == "cats anapple b"


def test_accents_go_from_letters_that_stay_what_they_are() -> None:
    assert without_accents("\u00dcn\u00ef \u0439 \u0386") == "Uni \u0438 \u0391"
    assert without_accents("\u0939\u093f \u304c") == "\u0939\u093f \u304c"


def test_scripts_without_spaces_get_them() -> None:
    assert separate_words("\u6771\u4eac\u306f\u300c5\u300dok\u3002") == "\u6771 \u4eac \u306f \u300c 5 \u300d ok \u3002"


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
