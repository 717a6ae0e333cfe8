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


def spans(text: str, **asked: Any) -> list[tuple[str, Any, list[tuple[str, str]], str]]:
    values = read_values(text, **asked).values
    return [(value.kind, value.key, sorted(value.parts), text[value.start : value.end]) for value in values]


OPEN, YES = [("half", "open")], list[tuple[str, str]]()


@pytest.mark.parametrize(
    ("text", "minutes", "parts", "said"),
    [
        ("a quarter past eight o'clock sharp", 495, OPEN, "a quarter past eight"),
        ("half past 10", 630, OPEN, "half past 10"),
        ("at 3 h 15", 195, OPEN, "3 h 15"), ("at 15 h 05", 905, YES, "15 h 05"), ("15h05", 905, YES, "15h05"),
        ("um 8 Uhr am Montag", 480, YES, "8 Uhr"), ("um 8 am", 480, YES, "8 am"), ("8 a. m.", 480, YES, "8 a. m."),
        ("morning, 8 o'clock", 480, YES, "morning, 8 o'clock"), ("le 8", 480, OPEN, "8"),
        ("15 Uhr 7", 900, YES, "15 Uhr"),
        ("evening of the year 8 o'clock", 480, OPEN, "8 o'clock"), ("0:00", 0, YES, "0:00"),
        ("00:30", 30, YES, "00:30"),
        ("half twaalf", 690, OPEN, "half twaalf"), ("half een", 30, OPEN, "half een"),
        ("half twee", 90, OPEN, "half twee"),
        ("kwart voor acht", 465, OPEN, "kwart voor acht"), ("4 h moins le quart", 225, OPEN, "4 h moins le quart"),
        ("à 3 h et demie", 210, OPEN, "3 h et demie"), ("à 5 heures et quart", 315, OPEN, "5 heures et quart"),
        ("8:00 UTC", 480, [*OPEN, ("zone", "0")], "8:00 UTC"), ("8時30分", 510, OPEN, "8時30分"),
        ("午後8時", 1200, YES, "午後8時"),
        ("8 in the morning", 480, YES, "8 in the morning"), ("8:30:15", 510, OPEN, "8:30:15"),
        ("7.30 Uhr", 450, YES, "7.30 Uhr"),
        ("midnight", 0, YES, "midnight"), ("12 noon", 720, YES, "12 noon"), ("23:59", 1439, YES, "23:59"),
    ],
)  # fmt: skip
def test_a_time_of_day_and_the_words_that_say_it(
    text: str, minutes: int, parts: list[tuple[str, str]], said: str
) -> None:
    assert [one for one in spans(text) if one[0] == "clock"] == [("clock", (minutes,), parts, said)]


@pytest.mark.parametrize(
    "text",
    ["15 h 5", "at 24 h", "3 h moins le quart", "at 7.30", "8:60", "9:5", "20 past 11", "at the eighth", "at 8 euros"],
)
def test_what_looks_like_a_time_of_day_is_something_else(text: str) -> None:
    assert "clock" not in [kind for kind, *_ in spans(text)]


@pytest.mark.parametrize(
    ("text", "alone", "kind", "said"),
    [
        ("14h", True, "clock", "14h"), ("14h", False, "duration", "14h"), ("open 14h", True, "duration", "14h"),
        ("8.30", False, "clock", "8.30"), ("8.12", False, "number", "8.12"), ("8.13", False, "clock", "8.13"),
    ],
)  # fmt: skip
def test_where_a_date_is_asked_for_an_hour_answers(text: str, alone: bool, kind: str, said: str) -> None:
    ((found_kind, _, _, found_said),) = spans(text, asked="date", alone=alone)
    assert (found_kind, found_said) == (kind, said)


@pytest.mark.parametrize(("text", "kind"), [("1h30", "duration"), ("14:30", "clock"), ("1 h 30", "duration")])
def test_where_a_duration_is_asked_for_hours_and_minutes_are_one(text: str, kind: str) -> None:
    ((found_kind, _, _, said),) = spans(text, asked="duration")
    assert (found_kind, said) == (kind, text)


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("5 of May", (None, 5, 5), "5 of May"), ("May 5 2020", (2020, 5, 5), "May 5 2020"), ("Sept. 5", (None, 9, 5),
        "Sept. 5"),
        ("May , 2020 the", (2020, 5, None), "May , 2020"), ("5. Mai 2020 roku", (2020, 5, 5), "5. Mai 2020 roku"),
        ("31 May", (None, 5, 31), "31 May"), ("early May", (None, 5, None), "May"), ("5 May 2100", (None, 5, 5),
        "5 May"),
        ("5 May 999", (None, 5, 5), "5 May"), ("fifth of May", (None, 5, 5), "fifth of May"), ("3月", (None, 3, None),
        "3月"),
        ("2026年3月", (2026, 3, None), "2026年3月"), ("2026年", (2026, None, None), "2026年"), ("may I", None, ""),
        ("the may", None, ""), ("5.5 May", None, ""), ("0 May", None, ""), ("31日", None, ""), ("2/5/20", None, ""),
        ("5 of the May", None, ""),
    ],
)  # fmt: skip
def test_a_date_and_the_words_that_say_it(text: str, key: tuple[int | None, ...] | None, said: str) -> None:
    assert [one for one in spans(text) if one[0] == "date"] == (
        [] if key is None else [("date", key, one_part(text), said)]
    )


def one_part(text: str) -> list[tuple[str, str]]:
    return [("phase", "early")] if "early" in text else []


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("1999 years", "date", "1999"), ("1999 s", "duration", "1999 s"), ("1990-95", "number", "1990"),
        ("1999:5", "number", "1999"), ("1999.5", "number", "1999.5"),
        ("nineteen ninety nine", "date", "nineteen ninety nine"),
        ("1999-", "date", "1999"),
    ],
)  # fmt: skip
def test_where_a_year_is_asked_for_a_number_of_something_is_none(text: str, kind: str, said: str) -> None:
    found_kind, _, _, found_said = spans(text, asked="date", years=True)[0]
    assert (found_kind, found_said) == (kind, said)


@pytest.mark.parametrize(
    ("text", "day", "parts", "said"),
    [
        ("every second Friday", 5, [("pace", "2")], "every second Friday"),
        ("every 2 Fridays", 5, [("pace", "2")], "every 2 Fridays"),
        ("every Friday", 5, [("pace", "1")], "every Friday"), ("first Monday", 1, [("nth", "1")], "first Monday"),
        ("the last Friday of", 5, [("nth", "last")], "last Friday"), ("on Friday", 5, [], "Friday"),
        ("third Friday", 5, [("nth", "3")], "third Friday"),
    ],
)  # fmt: skip
def test_a_weekday_with_its_pace_or_its_place_in_the_month(
    text: str, day: int, parts: list[tuple[str, str]], said: str
) -> None:
    assert spans(text) == [("weekday", (day,), parts, said)]
