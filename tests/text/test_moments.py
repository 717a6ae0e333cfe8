"""The bounds of dates and times of day: the last day, month, year and hour that count, and the first that do not."""

from __future__ import annotations

from typing import Any

import pytest

from unpoison.text.value_reader import read_values


def found(text: str, **asked: bool) -> list[tuple[str, Any, set[tuple[str, str]]]]:
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
    assert found("the 1990s", date=True, years=True) == [("date", (1990, None, None), {("decade", "yes")})]
    assert found("1990 s", date=True, years=True) != found("1990s", date=True, years=True)


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


def test_an_hour_past_the_day_is_no_time() -> None:
    assert found("25:00") == []
