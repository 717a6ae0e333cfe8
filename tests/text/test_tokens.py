from __future__ import annotations

from unpoison.text.tokens import ENGLISH_33, ENGLISH_318, stems, words


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
