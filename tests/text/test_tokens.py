"""Words, stems and folded tokens."""

from __future__ import annotations

import pytest

from unpoison.text.tokens import ENGLISH_33, ENGLISH_318, fold_text, stems, words


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
