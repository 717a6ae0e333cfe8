from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.tokens import ENGLISH_33, ENGLISH_318, stem_sets, stems, words


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


@given(
    st.lists(st.one_of(st.text(max_size=40), st.sampled_from(["Games were played", "games PLAYED was \u6cd5\u56fd"])))
)
def test_sets_of_stems_are_the_stems_of_each_text(texts: list[str]) -> None:
    assert stem_sets(texts) == [set(stems(text)) for text in texts]
