"""Which passages a defense reads: no blocked source, nothing twice; and what is said of the others."""

from __future__ import annotations

import pytest

from unpoison import Passage, Sources, Vanilla
from unpoison.screener.admission import LONG, MAX_NOTES, Selection, overlong, select_passages

SOURCES = Sources({"blocked": ["evil.example"]})


def of(text: str, title: str | None = None, host: str = "a.example") -> Passage:
    return Passage(text, title=title, source=f"https://{host}/page")


@pytest.mark.parametrize(
    ("passages", "selected"),
    [
        ([of("x"), of("x"), of("y")], Selection((0, 2), (), {1: 0})),
        ([of("x"), of("x", host="b.example")], Selection((0, 1))),
        ([of("x", "One"), of("x", "Two"), of("x")], Selection((0, 1, 2))),
        ([of("x", "One"), of("x", "One")], Selection((0,), (), {1: 0})),
        ([of("x", host="evil.example"), of("x")], Selection((1,), (0,))),
        ([of("x"), of("y"), of("x"), of("x")], Selection((0, 1), (), {2: 0, 3: 0})),
        ([], Selection(())),
    ],
)
def test_a_copy_has_the_source_the_title_and_the_text_of_an_earlier_one(
    passages: list[Passage], selected: Selection
) -> None:
    assert select_passages(SOURCES, passages) == selected
    assert select_passages(None, passages) == Selection(tuple(range(len(passages))))


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
