from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.sentences import MAX_WORDS, around, sentences, split


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("two", "Is two here?"),
        ("One", "One is 3.5 here."),
        ("here. Is", "One is 3.5 here. Is two here?"),
        ("last", "the last one"),
        ("三", "三有。"),
    ],
)
def test_whole_sentences(part: str, sentence: str) -> None:
    text = "One is 3.5 here. Is two here? 二有。三有。\nthe last one"
    start = text.index(part)
    first, last = around(text, start, start + len(part))
    assert text[first:last] == sentence


def test_sentences_with_their_marks() -> None:
    text = '  He said "no."  Is it 3.5? 是。不\n\n- a list...\tand end '
    assert [text[a:b] for a, b in sentences(text)] == [
        'He said "no."',
        "Is it 3.5?",
        "是。",
        "不",
        "- a list...",
        "and end",
    ]


@pytest.mark.parametrize("marks", ["“", "»", "›", "」", "**", "_", "~~", "`", "``", "}", ")*", "’”"])
def test_a_sentence_ends_behind_what_closes_its_quotation_brackets_emphasis_or_code(marks: str) -> None:
    assert [region[0] for region in sentences(f"It is so.{marks} Here it goes on.")] == [0, len(f"It is so.{marks} ")]
    assert len(sentences(f"It is so.{marks}[1] Here it goes on.")) == 2
    assert len(sentences(f"It is so{marks} and goes on.")) == 1


def test_an_operator_ends_no_sentence() -> None:
    assert len(sentences("It is a != b and c ?= d and e !> f")) == 1


@given(st.text('ab .!?\n。"', max_size=40))
def test_sentences_rise_and_hold_every_letter(text: str) -> None:
    regions = sentences(text)
    assert all(a < b for a, b in regions)
    assert all(one[1] <= two[0] for one, two in pairwise(regions))
    assert "".join(c for a, b in regions for c in text[a:b] if c.isalpha()) == "".join(filter(str.isalpha, text))
    assert all(text[a:b].strip() for a, b in regions)


def test_a_sentence_gives_back_the_text_of_its_words_and_what_stands_between() -> None:
    first, second = split('Is it "the Queen\'s" ship, or not? Yes.')
    assert first.words == ("Is", "it", "the", "Queen's", "ship", "or", "not")
    assert first.span(2, 4) == "the Queen"
    assert first.span(5, 7) == "or not"
    assert [first.gap(position) for position in range(6)] == [" ", ' "', " ", '" ', ", ", " "]
    assert second.span(0, 1) == "Yes"


def test_a_long_sentence_is_read_in_pieces_that_keep_their_places() -> None:
    words = [f"w{n}" for n in range(2 * MAX_WORDS + 3)]
    pieces = split(" ".join(words))
    assert [len(piece.words) for piece in pieces] == [MAX_WORDS, MAX_WORDS, 3]
    assert " ".join(piece.text for piece in pieces) == " ".join(words)
    assert all(piece.span(0, len(piece.words)) == piece.text for piece in pieces)
