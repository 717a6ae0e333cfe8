"""What is said of the input: texts that are empty, hide something, or of which a part is not judged."""

from __future__ import annotations

import pytest

from unpoison import Passage, Query, Vanilla
from unpoison.screener.notes import LONG, MAX_NOTES, input_notes, length_notes, overlong


def test_what_is_too_long_is_named_from_one_character_on() -> None:
    passages = [Passage("x" * LONG), Passage("x" * (LONG + 1)), Passage("x", title="x" * (LONG + 1))]
    assert overlong(passages) == [1, 2]


@pytest.mark.parametrize(("count", "notes"), [(1, 1), (MAX_NOTES, MAX_NOTES), (MAX_NOTES + 3, MAX_NOTES + 1)])
def test_empty_and_hiding_passages_are_named_one_by_one_up_to_a_number(count: int, notes: int) -> None:
    empty = Vanilla().screen("who?", [""] * count).notes
    assert len([note for note in empty if "empty" in note]) == notes
    hiding = Vanilla().screen("who?", ["a\u200bb"] * count).notes
    assert len([note for note in hiding if "hide" in note]) == notes
    if count > MAX_NOTES:
        assert f"{count - MAX_NOTES} more passages are empty" in empty


@pytest.mark.parametrize(("words", "noted"), [(3, False), (4, True)])
def test_an_encoder_with_a_limit_leaves_out_the_words_past_it(words: int, noted: bool) -> None:
    notes = input_notes(Query("who?"), [Passage("a b"), Passage("x " * words)], 3)
    assert (
        notes == ["the encoder reads 3 tokens of a text, so vectors made here leave out the rest of passage 1"] * noted
    )
    assert input_notes(Query("who?"), [Passage("x " * words)], None) == []


@pytest.mark.parametrize(("count", "more"), [(MAX_NOTES, ""), (MAX_NOTES + 1, " and 1 more")])
def test_long_passages_are_listed_up_to_a_number(count: int, more: str) -> None:
    (note,) = length_notes([Passage("x" * (LONG + 1))] * count)
    assert f"passage {', '.join(map(str, range(MAX_NOTES)))}{more}; screen it in parts" in note


def test_the_question_is_named_where_it_is_empty_or_hides_something() -> None:
    assert input_notes(Query(" "), [], None) == ["the question is empty"]
    (note,) = input_notes(Query("a\u200bb"), [], None)
    assert note.startswith("the question hides ")
