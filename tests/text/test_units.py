"""Numbers in digits and words, and units with their factors."""

from __future__ import annotations

from fractions import Fraction

import pytest

from unpoison.text.languages import MAX_NUMBER_CHARS, word_value
from unpoison.text.moments import kind_of
from unpoison.text.units import Numbers, Units, near, period_of, rounds, single, to_count, unit_name


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,250", 1250), ("1'250,5", Fraction(2501, 2)), ("8,50", Fraction(17, 2)), ("0.500", Fraction(1, 2)),
        ("1 000 000", 1_000_000), ("1.250.000", 1_250_000), ("1.250,75", Fraction(5003, 4)), ("3½", Fraction(7, 2)),
        ("2 million", 2_000_000), ("three hundred and fifty", 350), ("nineteen ninety nine", 1999),
        ("½", Fraction(1, 2)),
        ("quatre-vingt-dix", 90), ("zweihundertfünfzig", 250), ("two dozen", 24), ("dozen", 12), ("7th", 7),
        ("zweieinhalb", Fraction(5, 2)), ("twenty-one", 21),
    ],
)  # fmt: skip
def test_a_number_in_digits_or_words(text: str, value: Fraction) -> None:
    found = Numbers(text, dots=False).number(0)
    assert found is not None
    assert found[0] == value


def test_a_point_is_a_thousand_where_the_language_writes_it_so_or_where_it_is_money() -> None:
    assert Numbers("1.250", dots=False).number(0) == (Fraction(5, 4), 1)
    assert Numbers("1.250", dots=True).number(0) == (Fraction(1250), 1)
    assert Numbers("1.250 €", dots=False).number(0) == (Fraction(1250), 1)
    assert Numbers("harbour", dots=False).number(0) is None


def test_a_unit_by_its_names_in_any_number_and_language() -> None:
    assert [unit_name(word) for word in ("inches", "miles", "stunden", "glass", "harbour")] == [
        "inches", "mile", "hour", "", "",
    ]  # fmt: skip
    assert [single(word) for word in ("miles", "days", "glass", "gas", "ms")] == ["mile", "day", "glass", "gas", "ms"]


def test_amounts_in_the_base_unit() -> None:
    assert to_count(Fraction(2), "km").amount == 2000
    assert to_count(Fraction(3), "2 m") == (3, "2 m", 3, "area", "metric", "")
    assert to_count(Fraction(3), "3 cm").amount == Fraction(3, 1_000_000)
    rate = to_count(Fraction(90), "km/hour")
    assert (rate.amount, rate.kind) == (25, "length/time")


def test_units_of_one_system_are_exact_and_others_within_two_percent() -> None:
    mile, metres = to_count(Fraction(1), "mile"), to_count(Fraction(1609), "m")
    assert near(mile, metres)
    assert near(mile, to_count(Fraction(164, 100), "km"))
    assert not near(mile, to_count(Fraction(165, 100), "km"))
    assert not near(metres, to_count(Fraction(1610), "m"))


def test_a_word_of_number_words_is_read_up_to_a_bound() -> None:
    assert word_value("zweihundertfunfzig") == (2, 100, 50)
    assert word_value("hundert" * 20) == ()
    assert len("hundert" * 20) > MAX_NUMBER_CHARS


@pytest.mark.parametrize(
    ("rounded", "exact", "is_rounded"),
    [
        ((Fraction(21, 10), "kg"), (Fraction(2130), "g"), True),
        ((Fraction(2850), "m"), (Fraction(2847), "m"), True),
        ((Fraction(21, 10), "kg"), (Fraction(2160), "g"), False),
        ((Fraction(2), "kg"), (Fraction(2130), "g"), False),  # one digit says too little
        ((Fraction(48_000), ""), (Fraction(48_200), ""), False),  # a count is exact
        ((Fraction(100), "€"), (Fraction(101), "€"), False),
        ((Fraction(21, 10), "kg"), (Fraction(21, 10), "km"), False),
        ((Fraction(0), "kg"), (Fraction(0), "kg"), False),
    ],
)
def test_a_measure_is_rounded_to_two_digits_or_more(
    rounded: tuple[Fraction, str], exact: tuple[Fraction, str], is_rounded: bool
) -> None:
    assert rounds(to_count(*rounded), to_count(*exact)) is is_rounded


def part(value: Fraction | int, words: str) -> tuple[Fraction | int, list[str]]:
    """What is read of a text, and its words."""
    return value, words.split()


@pytest.mark.parametrize(
    ("text", "value", "read"),
    [
        ("1,00,000 x", 100_000, "1,00,000"), ("12,34,567", 1_234_567, "12,34,567"), ("1,25", Fraction(5, 4), "1,25"),
        ("1'250'000", 1_250_000, "1'250'000"), ("1.250.000,5", Fraction(2_500_001, 2), "1.250.000,5"),
        ("01,250", Fraction(5, 4), "01,250"), ("1,250.5", Fraction(2501, 2), "1,250.5"), ("1,25,0", Fraction(5, 4),
        "1,25"),
        ("12,5000", Fraction(25, 2), "12,5000"), ("12 345 678 9", 12_345_678, "12 345 678"), ("1234 567", 1234, "1234"),
        ("1 000 00", 1000, "1 000"), ("1 0000", 1, "1"), ("3rd of", 3, "3 rd"), ("1er mai", 1, "1 er"),
        ("2 er", 2, "2"),
        ("5 hundred", 500, "5 hundred"), ("3 ½ x", Fraction(7, 2), "3 ½"),
        ("half a million x", 500_000, "half a million"),
        ("eine halbe million", 500_000, "eine halbe million"), ("2 mil millones", 2 * 10**9, "2 mil millones"),
        ("dos millones y medio", 2_500_000, "dos millones y medio"), ("two and a half x", Fraction(5, 2),
        "two and a half"),
        ("two and a half million", 2_500_000, "two and a half million"), ("5 million", 5_000_000, "5 million"),
        ("9" * 60, int("9" * 60), "9" * 60), ("1" + " million" * 7, 10**30, "1" + " million" * 5),
    ],
)  # fmt: skip
def test_digits_and_what_multiplies_them(text: str, value: Fraction | int, read: str) -> None:
    numbers = Numbers(text, dots=False)
    found = numbers.number(0)
    assert found is not None
    assert part(found[0], " ".join(numbers.words[: found[1]])) == part(value, read)


@pytest.mark.parametrize("text", ["9" * 61, "1.25.0", "a quarter of a million", "half", "un 5", "eine 5", "ein", ""])
def test_what_begins_with_no_number(text: str) -> None:
    assert Numbers(text, dots=True).number(0) is None


@pytest.mark.parametrize(
    ("text", "value", "read"),
    [
        ("one thousand two hundred and thirty-four", 1234, 8), ("twenty twenty", 2020, 2),
        ("nineteen hundred", 1900, 2),
        ("nineteen ten", 1910, 2), ("ten thirty", 1030, 2), ("twenty eleven", 2011, 2), ("soixante-dix", 70, 3),
        ("soixante et onze", 71, 3), ("quatre-vingt-dix-neuf", 99, 7), ("quatre-vingts", 80, 3),
        ("sixty twelve", 72, 2),
        ("one hundred five", 105, 3), ("two thousand twenty-four", 2024, 5), ("hundred", 100, 1), ("thousand", 1000, 1),
        ("two million three hundred thousand", 2_300_000, 5), ("one million one", 1_000_001, 3), ("five six", 5, 1),
        ("ten five", 10, 1), ("twenty-one-two", 21, 3), ("nine and ten", 9, 1), ("twenty and five", 25, 3),
        ("thirty and thirty", 30, 1), ("twenty five hundred", 2500, 3), ("five hundred twenty thousand", 520_000, 4),
        ("hundred thousand", 100_000, 2), ("eight hundred thousand", 800_000, 3), ("three dozen", 36, 2),
        ("anderthalb", Fraction(3, 2), 1), ("anderthalbtausend", 1500, 1), ("tweeënhalve", Fraction(5, 2), 1),
        ("einundzwanzig", 21, 1), ("vingt et un", 21, 3), ("treinta y cinco", 35, 3), ("one two three", 1, 1),
        ("sixty and one", 61, 3), ("twelve hundred", 1200, 2),
        ("mil millones", 10**9, 2), ("cinco mil millones", 5 * 10**9, 3),
        ("ciento veinte mil millones", 12 * 10**10, 4),
        ("two thousand million", 2 * 10**9, 3), ("zweitausend millionen", 2 * 10**9, 2),
        ("deux mille milliards", 2 * 10**12, 3),
        ("十五", 15, 2), ("二十五", 25, 3), ("五十", 50, 2), ("百二十", 120, 3), ("三百二十一", 321, 5),
        ("二千三百四十五", 2345, 7), ("三百二十一万", 3_210_000, 6), ("一万二千", 12_000, 4), ("五百零五", 505, 4),
    ],
)  # fmt: skip
def test_words_that_make_one_number(text: str, value: Fraction | int, read: int) -> None:
    assert Numbers(text, dots=False).number(0) == (value, read)


@pytest.mark.parametrize(
    ("beside", "value"),
    [
        ("8,50", 1250), ("3,5", 1250), ("2.500.000", 1250), ("12.500,5", 1250), ("3,555", Fraction(5, 4)),
        ("7.5", Fraction(5, 4)),
    ],
)  # fmt: skip
def test_other_numbers_show_what_a_point_is(beside: str, value: Fraction | int) -> None:
    found = Numbers(f"1.250 and {beside}", dots=False).number(0)
    assert found is not None
    assert found[0] == value


@pytest.mark.parametrize(
    ("text", "unit", "end", "parts"),
    [
        ("degrees c", "degree celsius", 2, []), ("° kelvin", "degree kelvin", 2, []),
        ("degrees north", "degree", 1, []),
        ("°", "degree", 1, []), ("working days", "day", 2, [("days", "working")]), ("full days", "day", 2, []),
        ("werktage", "day", 1, [("days", "working")]), ("calendar days", "day", 2, [("days", "calendar")]),
        ("working hours", "hour", 2, [("days", "working")]), ("working people", "people", 0, []),
        ("whole weeks", "week", 2, []), ("us dollars", "$", 2, []), ("canadian dollars", "c$", 2, []),
        ("us people", "us", 0, []), ("square metres", "2 m", 2, []), ("cubic m", "3 m", 2, []), ("m²", "2 m", 1, []),
        ("m2", "2 m", 2, []), ("m 2", "m", 1, []), ("cm³", "3 cm", 1, []), ("km/h", "km/hour", 3, []),
        ("km per hour", "km/hour", 3, []), ("mb per second", "mb/second", 3, []), ("mg per day", "mg", 1, []),
        ("points per day", "point", 0, []), ("euros per day", "€", 1, []), ("mile per gallon", "mile/gallon", 3, []),
        ("in box", "", 0, []), ("in", "in", 1, []), ("inches", "inches", 1, []), ("the box", "", 0, []),
        ("k", "", 0, []),
        ("night", "night", 0, []), ("percent", "%", 1, []), ("工作日", "day", 1, [("days", "working")]),
    ],
)  # fmt: skip
def test_a_unit_where_it_ends_and_what_qualifies_it(
    text: str, unit: str, end: int, parts: list[tuple[str, str]]
) -> None:
    assert Units(text, False, False).unit(0) == (unit, end, parts)


@pytest.mark.parametrize(
    ("text", "period", "once"),
    [
        ("a day", "day", "day"), ("daily", "day", "day"), ("per 100 ml", "100 ml", "100 ml"), ("per kg", "kg", "kg"),
        ("every two weeks", "2 week", "2 week"), ("every other week", "2 week", "2 week"),
        ("every week", "week", "week"),
        ("every 12 months", "year", "year"), ("per 24 hours", "day", "day"), ("per 7 days", "week", "week"),
        ("every half hour", "1/2 hour", "1/2 hour"), ("in two weeks", None, "2 week"), ("two weeks", None, None),
        ("per person", "person", None), ("per 2 persons", None, None), ("every person", None, None),
        ("per", None, None),
        ("per the", None, None), ("a night", None, None), ("every 30 m", None, None),
    ],
)  # fmt: skip
def test_what_a_rate_is_for(text: str, period: str | None, once: str | None) -> None:
    for given, said in ((False, period), (True, once)):
        found = Units(text, False, False).per(0, once=given)
        assert (found and found[0]) == said
        assert found is None or found[1] == len(text.split())


@pytest.mark.parametrize(
    ("text", "at", "sign"),
    [
        ("-5", 0, (-1, 1)), ("+5", 0, (1, 1)), ("- 5", 0, (1, 0)), ("5-5", 1, (1, 1)), ("minus 5", 0, (-1, 1)),
        ("5", 0, (1, 0)),
    ],
)  # fmt: skip
def test_a_sign_stands_before_its_number_and_behind_none(text: str, at: int, sign: tuple[int, int]) -> None:
    assert Units(text, False, False).sign(at) == sign


@pytest.mark.parametrize(
    ("text", "currency", "end"),
    [
        ("$ 5", "$", 1), ("us$5", "$", 2), ("c $5", "c$", 2), ("canadian $ 5", "c$", 2), ("eur 5", "€", 1),
        ("chf 5", "chf", 1),
        ("€ five", "", 0), ("au 5", "", 0), ("% 5", "%", 1), ("%", "", 0), ("% x", "", 0), ("dollar", "", 0),
        ("", "", 0),
    ],
)  # fmt: skip
def test_a_currency_or_a_share_before_a_number(text: str, currency: str, end: int) -> None:
    assert Units(text, False, False).currency(0) == (currency, end)


@pytest.mark.parametrize(
    ("text", "number", "money"),
    [
        ("5k", (5000, 2), (5000, 2)), ("5 k", (5, 1), (5000, 2)), ("5m", (5, 1), (5_000_000, 2)),
        ("5bn", (5 * 10**9, 2), (5 * 10**9, 2)), ("5/8", (Fraction(5, 8), 3), (Fraction(5, 8), 3)), ("5 / 8", (5, 1),
        (5, 1)),
        ("5/0", (5, 1), (5, 1)), ("5 1/2", (Fraction(11, 2), 4), (Fraction(11, 2), 4)), ("5 1/5", (5, 1), (5, 1)),
        ("5 2/3", (Fraction(17, 3), 4), (Fraction(17, 3), 4)), ("5 4/3", (5, 1), (5, 1)),
    ],
)  # fmt: skip
def test_what_scales_or_divides_a_number(text: str, number: tuple[object, int], money: tuple[object, int]) -> None:
    units = Units(text, False, False)
    assert [units.scaled(Fraction(5), 1, asked) for asked in (False, True)] == [number, money]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("and a half", 3),
        ("and half", 2),
        ("y media", 2),
        ("und eine halbe", 3),
        ("half", 0),
        ("and a third", 0),
        ("", 0),
    ],
)
def test_and_a_half(text: str, end: int) -> None:
    assert Units(text, False, False).and_a_half(0) == end


@pytest.mark.parametrize(
    ("text", "unit", "alone", "value", "end"),
    [
        ("1 h 30 min", "hour", False, Fraction(3, 2), 4), ("1h30", "hour", False, Fraction(3, 2), 3),
        ("2 hours 05", "hour", False, Fraction(25, 12), 3), ("2 hours 75", "hour", False, 2, 2),
        ("2 years and 6 months", "year", False, Fraction(5, 2), 5), ("1 week 3 days", "week", False, Fraction(10, 7),
        4),
        ("1 week 3 hours", "week", False, 1, 2), ("1 std. 30 min", "hour", False, Fraction(3, 2), 5),
        ("1 km 5 m", "km", False, 1, 2), ("5 euro 50", "€", True, Fraction(11, 2), 3), ("5 euro 50", "€", False, 5, 2),
        ("5 euro 9", "€", True, 5, 2), ("5 euro 10", "€", True, Fraction(51, 10), 3), ("5 euro 100", "€", True, 5, 2),
        ("5 euro and 50", "€", False, Fraction(11, 2), 4), ("5 euro 50 x", "€", True, 5, 2),
    ],
)  # fmt: skip
def test_a_smaller_unit_behind_a_larger_one(text: str, unit: str, alone: bool, value: Fraction | int, end: int) -> None:
    units = Units(text, False, alone)
    first = units.number(0)
    assert first is not None
    assert units.longer(first[0], unit, 2) == (value, end)


@pytest.mark.parametrize(
    ("count", "unit", "name"),
    [
        (1, "day", "day"), (12, "month", "year"), (24, "hour", "day"), (7, "day", "week"), (60, "minute", "hour"),
        (168, "hour", "week"), (2, "week", "2 week"), (365, "day", "365 day"), (1, "g", "g"), (1000, "g", "1000 g"),
    ],
)  # fmt: skip
def test_a_period_has_one_name(count: int, unit: str, name: str) -> None:
    assert period_of(Fraction(count), unit) == name


def test_what_kind_a_quantity_is() -> None:
    kinds = [kind_of(to_count(Fraction(1), unit)) for unit in ("$", "a$", "%", "day", "", "kg")]
    assert kinds == ["money", "money", "share", "duration", "number", "number"]
