"""Spans: parts of the caller's text, validated, and what a passage says without them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from text.test_canonical import PIECES
from unpoison import Passage, Query, Screening, Verdict
from unpoison.core.verdicts import (
    Claim,
    Contest,
    Evidence,
    Rival,
    Span,
    cuts_of,
    disagreement,
    is_disagreement,
    merge_spans,
    spans_of,
    unmistakable,
    without,
)
from unpoison.text.canonical import MARK, canonical, redact_text

GOOD = {"start": 1, "end": 3, "probability": 0.5, "reason": "why"}
TEXT = "One is here. Two is b\u200bad. Three is here."
TWO = Span(13, 25, 0.9, "bad")
"""Of `TEXT`, the second sentence."""


@pytest.mark.parametrize(
    "changed",
    [
        {"start": -1},
        {"start": True},
        {"end": 1},
        {"probability": 1.1},
        {"probability": float("nan")},
        {"reason": None},
        {"field": "source"},
    ],
)
def test_bad_ones_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="span"):
        Span(**{**GOOD, **changed})


def test_they_are_frozen_and_go_through_json() -> None:
    span = Span(**GOOD, field="title")
    assert Span.from_dict(span.to_dict()) == span
    with pytest.raises(FrozenInstanceError):
        span.start = 0  # type: ignore[misc]


def test_overlaps_are_united() -> None:
    spans = [Span(5, 9, 0.4, "b"), Span(0, 6, 0.8, "a"), Span(9, 10, 0.1, "c"), Span(0, 6, 0.2, "t", "title")]
    assert merge_spans(spans) == (
        Span(0, 6, 0.2, "t", "title"),
        Span(0, 9, 0.8, "a; b"),
        Span(9, 10, 0.1, "c"),
    )


@pytest.mark.parametrize(
    "spans", [(Span(3, 5, 0.1, ""), Span(0, 2, 0.1, "")), (Span(0, 3, 0.1, ""), Span(2, 5, 0.1, ""))]
)
def test_a_verdict_has_them_rising_and_apart(spans: tuple[Span, ...]) -> None:
    with pytest.raises(ValueError, match="without overlaps"):
        Verdict(0, True, 1.0, 0, "", spans)


def test_a_screening_refuses_what_is_not_in_the_text() -> None:
    with pytest.raises(ValueError, match="ends at 5 of 4"):
        Screening.decided(
            "d", Query("q"), [Passage("abcd")], kept=[0], scores=[1], reasons=[""], spans={0: [Span(0, 5, 1, "")]}
        )
    with pytest.raises(ValueError, match="ends at 2 of 0"):
        Screening.decided(
            "d",
            Query("q"),
            [Passage("abcd")],
            kept=[0],
            scores=[1],
            reasons=[""],
            spans={0: [Span(0, 2, 1, "", "title")]},
        )


def screening(passage: Passage, *spans: Span, kept: bool = True) -> Screening:
    return Screening.decided(
        "d", Query("q"), [Passage("first"), passage], kept=[1, 0] if kept else [0], scores=[1, 1], reasons=["", ""],
        spans={1: spans},
    )  # fmt: skip


def test_texts_are_canonical_with_the_title_in_front_and_without_spans() -> None:
    drawn = screening(Passage(TEXT, title="A  T\u200bitle"), TWO)
    assert drawn.texts == ("A Title\nOne is here. [removed] Three is here.", "first")
    assert drawn.read[0].reading == "A Title\nOne is here. Three is here."
    assert drawn.redacted_indices == (1,)
    assert drawn.read[1] is drawn.passages[0]
    assert drawn.summary()["texts"] == list(drawn.texts)
    assert drawn.summary()["verdicts"][1]["spans"] == [TWO.to_dict()]
    assert screening(Passage(TEXT), TWO, kept=False).texts == ("first",)
    again = Screening.from_dict(drawn.to_dict())
    assert again == drawn
    assert again.texts == drawn.texts


def test_a_title_can_be_cut() -> None:
    passage = Passage("Berlin is a city.", title="Obey me. Berlin")
    cut = without(passage, [Span(0, 8, 1.0, "", "title")])
    assert cut.shown == "[removed] Berlin\nBerlin is a city."
    found = spans_of(passage, [(0, 22, 0.5, "x"), (16, 22, 0.4, "y")])
    assert [[(s.field, s.start, s.end) for s in own] for own in found] == [
        [("title", 0, 15), ("text", 0, 6)],
        [("text", 0, 6)],
    ]


def test_a_title_that_the_text_begins_with_has_no_spans_of_its_own() -> None:
    passage = Passage("Berlin is a city.", title="Berlin")
    ((span,),) = spans_of(passage, [(0, 9, 0.5, "x")])
    assert (span.field, span.start, span.end) == ("text", 0, 9)
    assert cuts_of(passage, [Span(0, 3, 1.0, "", "title")]) == ()


def test_nothing_is_cut_where_there_is_nothing() -> None:
    passage = Passage(TEXT)
    assert without(passage, []) is passage
    assert passage.shown == passage.reading
    assert passage.regions([]) == []


CODE = "Use:\n```python\ndef f(x):\n    if x:\n\treturn 1\n    return 2\n```\nThat is all."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (CODE, CODE),
        ("    return 1\n  x = 2", "    return 1\n  x = 2"),
        ("a\n" + " " * 300 + "b", "a\n" + " " * 80 + "b"),
        ("a\n\n  \n  b   c", "a\n  b c"),
        ("a\n  <p>b", "a\nb"),
        ("a\n  b<!-- one two three four five -->", "a\n  b"),
        ("<p class='one two three four five'>a</p>\n<i>b", "a\nb"),
    ],
)
def test_a_model_is_shown_lines_with_their_indentation_and_without_asides(text: str, shown: str) -> None:
    assert Passage(text).shown == shown
    assert Passage("\n  a b").shown == "a b"
    assert Passage(text, title="T").shown == f"T\n{shown}"


def test_what_is_left_of_code_is_indented() -> None:
    at = CODE.index("if x")
    cut = without(Passage(CODE), [Span(at, CODE.index("    return 2"), 1.0, "")])
    assert cut.shown == CODE.replace("if x:\n\treturn 1\n    return", "[removed] return")


def test_an_embedding_of_the_whole_is_none_of_the_rest() -> None:
    passage = Passage(TEXT, embedding=[1.0, 2.0], original="theirs")  # type: ignore[arg-type]
    cut = without(passage, [TWO])
    assert cut.embedding is None
    assert cut.original == "theirs"
    assert cut == replace(passage, embedding=None)


def test_verbatim_readings_are_raw() -> None:
    assert Passage("a\u200bb", verbatim=True).regions([(0, 2), (1, 1)]) == [((0, 2),), ()]


@given(PIECES, st.one_of(st.none(), PIECES), st.lists(st.tuples(st.integers(0, 80), st.integers(1, 30)), max_size=4))
@settings(max_examples=100)
def test_windows_become_spans_inside_the_text_and_cutting_them_takes_them_out(
    text: str, title: str | None, places: list[tuple[int, int]]
) -> None:
    passage = Passage(text, title=title)
    size = len(passage.reading)
    windows = [(min(a, size), min(a + n, size), 0.5, "r") for a, n in places]
    spans = merge_spans(chain.from_iterable(spans_of(passage, windows)))
    for span in spans:
        assert span.end <= len(passage.text if span.field == "text" else passage.title or "")
    assert all(one.end <= two.start for one, two in pairwise(spans) if one.field == two.field)
    if not spans:
        return
    cut = without(passage, spans)
    assert canonical(cut.reading).text == cut.reading
    assert canonical(cut.shown).text == redact_text(cut.raw, cut.cuts, MARK).text
    # The letters that are left are those outside the windows, but for what shares a replacement with one.
    inside = sum(sum(map(str.isalnum, passage.reading[a:b])) for a, b, *_ in {(a, b) for a, b, *_ in windows})
    left = sum(map(str.isalnum, cut.reading))
    assert left <= sum(map(str.isalnum, passage.reading)) - inside / max(len(windows), 1)


@given(st.text("abc .", min_size=4, max_size=60), st.data())
def test_of_a_plain_text_exactly_the_span_goes(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    left = without(Passage(text), [Span(start, end, 1.0, "")]).reading
    assert left.replace(" ", "") == (text[:start] + text[end:]).replace(" ", "")


def test_a_source_on_one_side_is_named_and_one_on_both_by_its_pages() -> None:
    passages = [
        Passage("14 days", source="https://wiki.example/a"),
        Passage("30 days", source="https://wiki.example/b"),
        Passage("30 days", source="https://shop.example/c"),
        Passage("30 days"),
    ]
    wiki, shop = passages[0].origin, passages[2].origin
    short, long = Claim("14 days", 1.0, (wiki,), (0,)), Claim("30 days", 2.0, (shop,), (2,))
    assert disagreement([short, long], passages).endswith(f"14 days ({wiki}); 30 days ({shop})")
    both = disagreement([short, Claim("30 days", 2.0, (wiki, shop), (1, 2))], passages)
    assert "wiki.example/a" in both
    assert "wiki.example/b" in both
    assert f"{shop}, " in both
    assert "30 days (2 passages)" in disagreement([short, Claim("30 days", 1.0, (), (1, 3))], [Passage("x")] * 4)


@pytest.mark.parametrize(
    "made",
    [
        lambda: Rival(" ", (0,), 1),
        lambda: Rival("30 days", (), 1),
        lambda: Rival("30 days", (1, 1), 1),
        lambda: Rival("30 days", (2, 1), 1),
        lambda: Rival("30 days", (-1,), 1),
        lambda: Rival("30 days", (True,), 1),
        lambda: Rival("30 days", (0, 1), 0),
        lambda: Rival("30 days", (0, 1), 3),
        lambda: Contest((Rival("30 days", (0,), 1),)),
        lambda: Contest((Rival("30 days", (0, 1), 2), Rival("14 days", (1,), 1))),
        lambda: Claim(" ", 1.0, (), (0,)),
        lambda: Claim("30 days", -0.1, (), (0,)),
        lambda: Claim("30 days", float("inf"), (), (0,)),
        lambda: Claim("30 days", 1.0, (), ()),
        lambda: Claim("30 days", 1.0, (), (1, 0)),
    ],
)
def test_rivals_and_claims_that_cannot_be(made: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"rival|voices|claim"):
        made()


def test_a_contest_counts_its_passages_and_says_how_many_are_independent() -> None:
    contest = Contest((Rival("30 days", (0, 2), 1), Rival("14 days.", (1,), 1), Rival("9 days", (3, 4), 2)))
    assert contest.passages == (0, 1, 2, 3, 4)
    said = 'sources disagree: 30 days (2 passages, 1 independent), "14 days." (1), 9 days (2)'
    assert str(contest) == contest.to_dict()["says"] == said
    assert str(Contest((Rival("a", (0,), 1), Rival("b", (1,), 1)))) == "sources disagree: a (1 passage), b (1)"
    assert Contest.from_dict(contest.to_dict()) == contest
    assert Claim("free", 0, (), (0,)).weight == 0  # nobody who counts says so


@pytest.mark.parametrize(
    ("answer", "shown"),
    [("14 days", "14 days"), ("It is so!", '"It is so!"'), ("one (1)", '"one (1)"'), ('a "b", c', "\"a 'b', c\"")],
)
def test_an_answer_is_quoted_where_it_could_be_taken_for_the_sentence(answer: str, shown: str) -> None:
    assert unmistakable(answer) == shown


def test_four_sources_of_a_side_are_three_and_one_more() -> None:
    pages = [Passage("30 days", source=f"https://{name}.example/p") for name in "abcd"]
    many = Claim("30 days", 1.0, tuple(page.origin for page in pages), (0, 1, 2, 3))
    said = disagreement([many, Claim("14 days", 1.0, (), (0,))], pages)
    assert said == "Sources disagree: 30 days (a.example, b.example, c.example and 1 more); 14 days (1 passage)"
    assert is_disagreement(said)
    assert not is_disagreement("14 days")
    few = disagreement([Claim("30 days", 1.0, many.origins[:3], (0, 1, 2)), Claim("9", 1.0, ("x",), (3,))], pages)
    assert "(a.example, b.example, c.example);" in few


def test_a_page_is_named_with_its_author_and_date() -> None:
    page = Passage("30 days", source="https://a.example/p", metadata={"author": "Ann", "date": "2024", "size": "huge"})
    shared = [Claim("30 days", 1.0, (page.origin,), (0,)), Claim("14 days", 1.0, (page.origin,), (1,))]
    said = disagreement(shared, [page, Passage("14 days", source="https://a.example/q")])
    assert "a.example/p, Ann, 2024" in said
    assert "huge" not in said


def test_a_flagged_span_is_no_cut_and_a_dropped_passage_has_none() -> None:
    spans = (TWO, replace(TWO, start=30, end=35, flagged=True))
    assert Verdict(0, True, 1.0, 0, "", spans).cuts == (TWO,)  # type: ignore[arg-type]
    assert Verdict(0, False, 1.0, None, "", spans).cuts == ()  # type: ignore[arg-type]


def test_the_arrays_of_the_evidence_cannot_be_written_and_go_through_json() -> None:
    mine = np.arange(4.0).reshape(2, 2)
    evidence = Evidence({"similarity": mine}, ("two passages",), "similarity")
    with pytest.raises(ValueError, match="read-only"):
        evidence["similarity"][0, 0] = 9
    mine[0, 0] = 5  # the caller's own array stays writable
    assert (len(evidence), list(evidence)) == (1, ["similarity"])
    again = Evidence.from_dict(evidence.to_dict(), evidence.notes)
    assert again["similarity"].tolist() == [[5, 1], [2, 3]]
    assert (again.notes, again.graph) == (("two passages",), "similarity")
