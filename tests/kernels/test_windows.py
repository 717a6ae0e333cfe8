from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.kernels.windows import LONGEST, windows

TEXT = "The shop opens at nine. Refunds are possible within 30 days! Call us, if you like, on any weekday."


def words_of(cut, part):
    return [cut.words[i] for i in cut.word[cut.part == part]]


def test_a_window_is_a_sentence_or_two_that_follow_each_other() -> None:
    cut = windows("when", [TEXT])
    assert [TEXT[s:e] for s, e in zip(cut.start[1:], cut.end[1:], strict=True)] == [
        "The shop opens at nine",
        "Refunds are possible within 30 days",
        "Call us, if you like, on any weekday",
    ]
    assert list(zip(cut.first.tolist(), cut.last.tolist(), strict=True)) == [(1, 1), (2, 2), (3, 3), (1, 2), (2, 3)]


def test_no_window_reaches_over_two_texts() -> None:
    cut = windows("when", ["The shop opens at nine.", "Refunds are possible within days."])
    assert (cut.owner[cut.first] == cut.owner[cut.last]).all()


@pytest.mark.parametrize(
    "form",
    [
        str.upper,
        lambda text: "“" + text.replace("! ", "!” \n ") + ")",
        lambda text: text.replace("The", "Thé").replace("Refunds", "Réfùnds"),
        lambda text: text.replace(", ", " ; ").replace("30", "[30]"),
    ],
    ids=["capitals", "quotation", "accents", "marks"],
)
def test_form_changes_no_word(form) -> None:
    plain, changed = windows("when", [TEXT]), windows("when", [form(TEXT)])
    for part in (1, 2, 3):
        assert words_of(changed, part) == words_of(plain, part)


def test_accents_of_other_scripts_stay() -> None:
    cut = windows("q", ["हिन्दी में प्रश्न और उत्तर और कुछ"])
    assert len(set(cut.words)) > 3
    assert any("\u0900" <= c <= "\u097f" for word in cut.words for c in word)


def test_a_sentence_without_end_is_cut_into_parts_that_overlap() -> None:
    text = " ".join(f"w{i}" for i in range(100))
    cut = windows("q", [text])
    parts = [words_of(cut, part) for part in range(1, len(cut.owner))]
    assert max(map(len, parts)) == LONGEST
    assert {word for part in parts for word in part} == set(text.split())
    assert parts[0][LONGEST // 2] == parts[1][0]


def test_a_short_part_belongs_to_its_neighbour() -> None:
    cut = windows("q", ["Dr. Smith of the university of Lyon wrote it. Yes."])
    assert len(cut.owner) == 2


def test_text_added_behind_leaves_the_windows_that_were_there() -> None:
    more = windows("when", [f"{TEXT} Nobody knows who wrote all of this."])
    before = windows("when", [TEXT])
    sizes = [words_of(before, part) for part in (1, 2, 3)]
    assert [words_of(more, part) for part in (1, 2, 3)] == sizes


@given(st.lists(st.text(max_size=200), min_size=1, max_size=4), st.text(max_size=40))
def test_every_word_is_in_a_window_and_positions_are_inside(texts, question) -> None:
    cut = windows(question, texts)
    for owner, start, end in zip(cut.owner[1:], cut.start[1:], cut.end[1:], strict=True):
        assert 0 <= start < end <= len(texts[owner])
    assert set(cut.owner[cut.first].tolist()) <= set(range(len(texts)))
    assert np.isin(np.arange(1, len(cut.owner)), cut.first).all()
