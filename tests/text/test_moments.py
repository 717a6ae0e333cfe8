"""The bounds of dates and times of day: the last day, month, year and hour that count, and the first that do not."""

from __future__ import annotations

from typing import Any

import pytest

from unpoison.text.value_reader import read_values


def found(text: str, **asked: Any) -> list[tuple[str, Any, set[tuple[str, str]]]]:
    return [(value.kind, value.key, set(value.parts)) for value in read_values(text, **asked).values]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("31 March", (None, 3, 31)),
        ("1999-12-31", (1999, 12, 31)),
        ("31.12.2020", (2020, 12, 31)),
        ("13/12/2020", (2020, 12, 13)),
        ("2026年3月15日", (2026, 3, 15)),
        ("3月15日", (None, 3, 15)),
        ("1000年", (1000, None, None)),
    ],
)
def test_the_last_day_and_month_are_dates(text: str, key: tuple[int | None, ...]) -> None:
    assert found(text) == [("date", key, set())]


@pytest.mark.parametrize("text", ["32 March", "1999-13-01", "1999-12-32", "32.12.2020", "31.13.2020", "999年", "15日"])
def test_what_no_calendar_has_is_no_date(text: str) -> None:
    assert "date" not in {kind for kind, *_ in found(text)}


@pytest.mark.parametrize(("text", "open_order"), [("12/11/2020", True), ("12/12/2020", False), ("13/12/2020", False)])
def test_the_order_of_day_and_month_is_open_where_both_may_be_a_month(text: str, open_order: bool) -> None:
    ((_, _, parts),) = found(text)
    assert parts == ({("order", "open")} if open_order else set())


@pytest.mark.parametrize(("text", "year"), [("999", False), ("1000", True), ("2099", True), ("2100", False)])
def test_a_number_alone_is_a_year_between_two_bounds(text: str, year: bool) -> None:
    assert [kind for kind, *_ in found(text, years=True)] == ["date" if year else "number"]


def test_a_decade_is_no_number_of_seconds() -> None:
    assert found("the 1990s", asked="date", years=True) == [("date", (1990, None, None), {("decade", "yes")})]
    assert found("1990 s", asked="date", years=True) != found("1990s", asked="date", years=True)


@pytest.mark.parametrize(
    ("text", "minutes", "exact"),
    [
        ("24:00", 0, True),
        ("at 12:59", 779, False),
        ("at 13:00", 780, True),
        ("at 07:30", 450, True),
        ("at 7:30", 450, False),
        ("at 12 am", 0, True),
        ("at 12 pm", 720, True),
        ("half zes", 330, False),
    ],
)
def test_the_half_of_the_day_is_open_until_one_in_the_afternoon(text: str, minutes: int, exact: bool) -> None:
    assert found(text) == [("clock", (minutes,), set() if exact else {("half", "open")})]


@pytest.mark.parametrize("text", ["25:00", "at 8 people", "at 8", "7.30", "may go", "9 and 10"])
def test_other_numbers_and_words_are_no_time(text: str) -> None:
    assert not {"clock", "date"} & {kind for kind, *_ in found(text)}


@pytest.mark.parametrize(
    ("text", "minutes", "half_open"),
    [
        ("9 Uhr 30", 570, False),
        ("half past eight", 510, True),
        ("a quarter to nine", 525, True),
        ("um halb acht", 450, True),
        ("\u00e0 8 h du matin", 480, False),
        ("las tres de la tarde", 900, False),
        ("midnight", 0, False),
        ("noon", 720, False),
        ("8 o'clock", 480, True),
        ("8 p.m.", 1200, False),
        ("8:15 in the evening", 1215, False),
    ],
)
def test_a_time_of_day_in_the_words_of_its_language(text: str, minutes: int, half_open: bool) -> None:
    assert found(text) == [("clock", (minutes,), {("half", "open")} if half_open else set())]


def test_a_zone_belongs_to_its_time() -> None:
    assert found("12:30 pm CET") == [("clock", (750,), {("zone", "60")})]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("in May", (None, 5, None)),
        ("May 5", (None, 5, 5)),
        ("5 May 2020", (2020, 5, 5)),
        ("May 2020", (2020, 5, None)),
        ("March 3rd, 2021", (2021, 3, 3)),
        ("1er mai 2020", (2020, 5, 1)),
        ("3. M\u00e4rz", (None, 3, 3)),
        ("15 de mayo de 2021", (2021, 5, 15)),
        ("the 5th of May", (None, 5, 5)),
    ],
)
def test_a_date_in_the_words_of_its_language(text: str, key: tuple[int | None, ...]) -> None:
    assert found(text) == [("date", key, set())]


def test_a_month_or_a_year_alone_is_a_date_where_one_is_asked_for() -> None:
    assert found("May", asked="date") == [("date", (None, 5, None), set())]
    assert found("1999", asked="date", years=True) == [("date", (1999, None, None), set())]
    assert found("1999%", asked="date", years=True)[0][0] == "share"
    assert [(key[0], parts) for _, key, parts in found("1990-1995", asked="date", years=True)] == [
        (1990, {("range", "from")}),
        (1995, {("range", "to")}),
    ]


@pytest.mark.parametrize(
    ("text", "key", "parts"),
    [
        ("bis 15.04. möglich", (None, 4, 15), {("bound", "until")}),
        ("15/04", (None, 4, 15), set()),
        ("3/4", (None, 3, 4), {("order", "open")}),
    ],
)
def test_a_date_may_lack_its_year(text: str, key: tuple[int | None, ...], parts: set[tuple[str, str]]) -> None:
    assert found(text, asked="date") == [("date", key, parts)]


def test_what_is_no_day_of_a_month_is_no_date_without_a_year() -> None:
    assert all(kind != "date" for text in ("15/13", "32.04.", "5.1") for kind, *_ in found(text, asked="date"))
