from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.sentences import LONG, MAX_WORDS, around, clauses, sentences, split


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


SPOKEN = "the receipts of all meals go to the office"


@pytest.mark.parametrize("between", [", ", "; ", ": ", " \u2013 ", " - ", " ("])
def test_a_long_sentence_has_clauses(between: str) -> None:
    text = between.join([SPOKEN] * 4)
    regions = clauses(text, 0, len(text))
    assert [text[start:end].strip(" ,;:(-\u2013") for start, end in regions] == [SPOKEN] * 4
    assert "".join(text[start:end] for start, end in regions) == text


def test_a_short_sentence_has_none_and_a_short_clause_stays_with_the_next() -> None:
    text = f"{SPOKEN}, {SPOKEN}, or"
    assert len(text) <= LONG
    assert clauses(text, 0, len(text)) == []
    text = f"yes, no, {SPOKEN}, {SPOKEN}, {SPOKEN}"
    first, *_ = clauses(text, 0, len(text))
    assert text[slice(*first)] == f"yes, no, {SPOKEN}, "


def test_clauses_of_a_script_without_spaces() -> None:
    clause = "\u5458\u5de5\u51fa\u5dee\u56de\u6765\u4e4b\u540e\u5fc5\u987b\u63d0\u4ea4\u9910\u8d39"
    text = f"{clause}\uff0c" * 4
    assert [text[slice(*one)] for one in clauses(text, 0, len(text))] == [f"{clause}\uff0c"] * 4


def test_a_long_clause_is_read_in_pieces_of_which_each_overlaps_the_next() -> None:
    text = " ".join(f"word{number}" for number in range(100))
    regions = clauses(text, 0, len(text))
    assert regions[0][0] == 0
    assert regions[-1][1] == len(text)
    for (start, end), (after, _) in pairwise(regions):
        assert start < after < (start + end) // 2 + 12
        assert {text[after - 1 : after + 1].strip(), text[end - 1 : end + 1].strip()} <= {*"w0123456789"}


@given(st.text(alphabet="ab ,;(\u2013\uff0c\u4e00", max_size=600), st.integers(0, 50))
def test_clauses_hold_every_letter_of_their_sentence_and_no_other(text: str, start: int) -> None:
    start = min(start, len(text))
    regions = clauses(text, start, len(text))
    held = {place for one in regions for place in range(*one)}
    assert held == (set(range(start, len(text))) if regions else set())
    assert all(end - first <= LONG + 30 for first, end in regions)
