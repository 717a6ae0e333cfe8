"""The values of a text: kind, amount and place, in twelve languages."""

from __future__ import annotations

from fractions import Fraction

import pytest

from effort import linear
from unpoison import Guard, Passage
from unpoison.text.units import Quantity
from unpoison.text.value_reader import MAX_CHARS, read_values, values


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("IBAN DE44 5001 0517 5407 3249 31", ["iban"]),
        ("VAT ID DE298771204", ["code"]),
        ("am 1. September 2026", ["date"]),
        ("30 minutes | 99.95 % | 49 EUR", ["duration", "share", "money"]),
        ("+49 40 123456-7", ["phone"]),
        ("at 14:30", ["clock"]),
        ("bis 11 Uhr, until 5 pm", ["clock", "clock"]),
        ("2026年3月15日", ["date"]),
        ("36个月, 三年間", ["duration", "duration"]),
        ("1,500円", ["money"]),
        ("9時から17時30分", ["clock", "clock"]),
        ("dans trois mois", ["duration"]),
        ("gardés une semaine", ["duration"]),
        ("within an hour", ["duration"]),
        ("120 requests a minute", ["number"]),
        ("siehe § 12", []),
        ("the SI-8", []),
        ("nothing", []),
    ],
)
def test_the_values_of_a_text(text: str, kinds: list[str]):
    assert [value.kind for value in values(text)] == kinds


@pytest.mark.parametrize(
    ("text", "written", "amount", "unit"),
    [
        ("It takes 1.5 hours.", "1.5 hours", Fraction(5_400), "hour"),
        ("twenty-five minutes", "twenty-five minutes", Fraction(1_500), "minute"),
        ("two and a half hours", "two and a half hours", Fraction(9_000), "hour"),
        ("1 hour 30 minutes", "1 hour 30 minutes", Fraction(5_400), "hour"),
        ("half an hour", "half an hour", Fraction(1_800), "hour"),
        ("¾ hour", "¾ hour", Fraction(2_700), "hour"),
        ("3 1/2 hours", "3 1/2 hours", Fraction(12_600), "hour"),
        ("2.5 million EUR", "2.5 million EUR", Fraction(2_500_000), "€"),
        ("$1,250.50", "$1,250.50", Fraction(2_501, 2), "$"),
        ("1.250,50 €", "1.250,50 €", Fraction(2_501, 2), "€"),
        ("12 km", "12 km", Fraction(12_000), "km"),
        ("7 %", "7 %", Fraction(7, 100), "%"),
    ],
)
def test_an_amount_is_exact_whatever_its_unit(text: str, written: str, amount: Fraction, unit: str):
    (value,) = values(text)
    assert text[value.start : value.end] == written
    assert isinstance(value.key, Quantity)
    assert (value.key.amount, value.unit) == (amount, unit)


@pytest.mark.parametrize("text", ["between 3 and 5 days", "3-5 days", "3 to 5 days"])
def test_both_ends_of_a_range_have_its_unit(text: str):
    first, last = values(text)
    assert (first.unit, first.part("range")) == ("day", "from")
    assert (last.unit, last.part("range")) == ("day", "to")


def test_what_qualifies_a_value_belongs_to_it():
    (least,) = values("at least 10 kg")
    assert least.part("bound") == "least"
    (speed,) = values("120 km/h")
    assert isinstance(speed.key, Quantity)
    assert (speed.unit, speed.key.amount) == ("km/hour", Fraction(100, 3))
    assert [value.unit for value in values("3 17/20")] == ["", ""]  # two numbers


def test_a_text_is_read_up_to_a_bound():
    filler = "word " * (MAX_CHARS // 5)
    assert values(f"{filler}5 days") == ()
    assert len(values(f"{filler[:-10]}5 days")) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no more than 5 days", "duration '5 days' 5 day bound=most"),
        ("within 5 business days", "duration '5 business days' 5 day bound=within days=working"),
        ("10 working days", "duration '10 working days' 10 day days=working"),
        ("two thirds", "share 'two thirds' 200/3 %"),
        ("a quarter of the users", "share 'a quarter' 25 %"),
        ("half of them", ""),
        ("5 out of 20", "share '5 out of 20' 25 %"),
        ("one and a half years", "duration 'one and a half years' 3/2 year"),
        ("1 hour and a half", "duration '1 hour and a half' 3/2 hour"),
        ("2 years and 3 months", "duration '2 years and 3 months' 9/4 year"),
        ("5 weeks and 2 days", "duration '5 weeks and 2 days' 37/7 week"),
        ("3/4 cup", "number '3/4' 3/4 cup"),
        ("twice a week", "number 'twice' 2 time rate=week"),
        ("once a day", "number 'once' 1 time rate=day"),
        ("it was once there", ""),
        ("three times per month", "number 'three times' 3 time rate=month"),
        ("no one", ""),
        ("49 EUR per month", "money '49 EUR' 49 \u20ac rate=month"),
        ("2 users each", "number '2' 2 user"),
        ("20 litres/day", "number '20 litres' 20 l rate=day"),
        ("30 square metres", "number '30 square metres' 30 2_m"),
        ("5 cubic feet", "number '5 cubic feet' 5 3_feet"),
        ("12 m\u00b2", "number '12 m\u00b2' 12 2_m"),
        ("120 m2 each", "number '120 m2' 120 2_m"),
        ("5 km\u00b3", "number '5 km\u00b3' 5 3_km"),
        ("12 m 2 cm", "number '12 m' 12 m; number '2 cm' 2 cm"),
        ("US$ 30", "money 'US$ 30' 30 $"),
        ("A$30", "money 'A$30' 30 a$"),
        ("30 Canadian dollars", "money '30 Canadian dollars' 30 c$"),
        ("30 dollars", "money '30 dollars' 30 $"),
        ("$3m", "money '$3m' 3000000 $"),
        ("3 m", "number '3 m' 3 m"),
        ("\u20ac1.5bn", "money '\u20ac1.5bn' 1500000000 \u20ac"),
        ("2k users", "number '2k' 2000 user"),
        ("20 \u00b0C", "number '20' 20 degree_celsius"),
        ("68 degrees Fahrenheit", "number '68' 68 degree_fahrenheit"),
        ("3 degrees", "number '3' 3 degree"),
        ("minus 5 degrees", "number 'minus 5' -5 degree"),
        ("-5 \u00b0C", "number '-5' -5 degree_celsius"),
        ("+3 %", "share '+3 %' 3 %"),
        ("6 in", "number '6 in' 6 in"),
        ("6 in all", "number '6' 6"),
        ("3 dozen eggs", "number '3 dozen' 36 egg"),
        ("from 3 to 5 days", "duration '3' 3 day range=from; duration '5 days' 5 day range=to"),
        ("between 9 and 10", "number '9' 9 range=from; number '10' 10 range=to"),
        ("9 and 10", "number '9' 9; number '10' 10"),
        ("every 3 hours", "number 'every 3 hours' 1 time rate=3 hour"),
        ("2 tablets every 24 hours", "number '2' 2 tablet rate=day"),
        ("50 euros every 12 months", "money '50 euros' 50 \u20ac rate=year"),
        ("half a million people", "number 'half a million' 500000 people"),
        ("half a kilo", "number 'half a kilo' 1/2 kg"),
        ("three percentage points", "number 'three percentage points' 3 pp"),
        ("from 5 to 8 euros", "money '5' 5 \u20ac range=from; money '8 euros' 8 \u20ac range=to"),
        ("from 5 euros", "money '5 euros' 5 \u20ac bound=least"),
        ("by 20 euros", "money '20 euros' 20 \u20ac"),
        ("until 20 euros", "money '20 euros' 20 \u20ac bound=most"),
        ("1 h 30 min", "duration '1 h 30 min' 3/2 hour"),
        ("1 h 30 sec", "duration '1 h' 1 hour; duration '30 sec' 30 second"),
    ],
)
def test_a_value_has_all_that_belongs_to_it_and_takes_no_other_words(text: str, expected: str) -> None:
    told = []
    for value in values(text):
        assert isinstance(value.key, Quantity)
        words = [value.kind, repr(text[value.start : value.end]), str(value.key.value), value.unit.replace(" ", "_")]
        told.append(" ".join(filter(None, [*words, *sorted(f"{name}={part}" for name, part in value.parts)])))
    assert "; ".join(told) == expected


@pytest.mark.parametrize(
    ("text", "kind", "key"),
    [
        ("DE44 5001 0517 5407 3249 31", "iban", "DE44500105175407324931"),
        ("+49 (30) 123-4567", "phone", "+49301234567"),
        ("AB-1234", "code", "AB1234"),
    ],
)
def test_a_shape_is_known_by_its_characters(text: str, kind: str, key: str) -> None:
    (value,) = values(f"It is {text}, they say.")
    assert (value.kind, value.key, value.start, value.end) == (kind, key, 6, 6 + len(text))


def test_a_version_is_no_decimal_fraction() -> None:
    left, right = (values(f"Python {number}")[0].key for number in ("3.1", "3.10"))
    assert isinstance(left, Quantity) and isinstance(right, Quantity)
    assert (left.written, right.written) == ("3.1", "3.10")
    assert left != right
    assert values("about 3.1")[0].key.written == ""  # type: ignore[union-attr]


def test_an_article_is_one_in_an_answer_alone() -> None:
    assert [value.unit for value in read_values("a week", alone=True).values] == ["week"]
    assert read_values("a week").values == ()
    assert read_values("a week").loose == {("rate", "week")}
    assert [value.unit for value in read_values("within a week").values] == ["week"]


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("The rent rose by 5 %.", "by"),
        ("The rent rose to 5 %.", "to"),
        ("The rent rose 5 %.", "by"),
        ("an increase of 5 %", "by"),
        ("Die Miete stieg um rund 5 %.", "by"),
        ("Die Miete ist auf 500 Euro gestiegen.", "to"),
        ("Le loyer a augmenté de 5 %.", "by"),
        ("Le loyer a augmenté à 5 %.", "to"),
        ("El alquiler subió un 5 %.", "by"),
        ("El alquiler subió hasta el 5 %.", "to"),
        ("Czynsz wzrósł do 500 zł.", "to"),
        ("Цена выросла на 5 %.", "by"),
        ("房租增长到5%", "to"),
        ("Kira %5 arttı.", "by"),
        ("The rate is 5 %.", ""),
        ("up to 5 %", ""),
        ("almeno 200 euro", ""),
    ],
)
def test_by_how_much_and_to_what_are_parts_of_a_change(text: str, change: str) -> None:
    (value,) = values(text)
    assert value.part("change") == change
    assert not (change == "to" and value.part("bound")), "no limit"


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("1h30", "3/2"),
        ("1 h 30", "3/2"),
        ("1:30 h", "3/2"),
        ("1 Std. 30 Min.", "3/2"),
        ("2 hours", "2"),
        ("à 1h30", None),
        ("1h75", "1"),
    ],
)
def test_hours_and_minutes_are_a_duration_where_one_is_asked_for(text: str, hours: str | None) -> None:
    first = read_values(text, asked="duration").values[0]
    assert (first.kind == "duration") == (hours is not None)
    if hours is not None:
        assert isinstance(first.key, Quantity)
        assert first.key.value == Fraction(hours)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1.000 visitors", 1),
        ("1.000 visitors in June, 2.500,50 in all", 1000),
        ("1.000 visitors, in all 1.250.000", 1000),
        ("1.000 visitors in 2,5 hours", 1000),
        ("1.000 visitors, in all 1,250,000", 1),
        ("1.000 from 192.168.100.200", 1),
    ],
)
def test_other_numbers_of_a_text_show_how_it_writes_thousands(text: str, amount: int) -> None:
    key = values(text)[0].key
    assert isinstance(key, Quantity)
    assert key.value == amount


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Take 2 tablets a day.", "2 tablets a day"),
        ("It is for at least 18 years.", "at least 18 years"),
        ("It costs 5 euros.", None),
        ("It rose by about 5 % then.", "rose by about 5 %"),
        ("It takes from 3 to 5 days.", "from 3 to 5 days"),
        ("It opened on 4 May 1931 by the mayor.", None),
        ("4 Mayıs'a kadar", "4 Mayıs'a kadar"),
    ],
)
def test_the_whole_of_a_value_has_all_that_qualifies_it(text: str, whole: str | None) -> None:
    for value in values(text):
        assert (value.whole and text[slice(*value.whole)]) == whole


def test_rates_and_years_have_one_name() -> None:
    assert [value.part("rate") for value in values("4 % per annum, 5 euros pro Quartal")] == ["year", "3 month"]
    assert [value.unit for value in values("三年")] == ["year"]


def test_a_price_before_another_number_is_read() -> None:
    assert [value.key.value for value in read_values("15 euros 3 things", alone=True).values] == [15, 3]  # type: ignore[union-attr]


def test_what_twelve_languages_write_otherwise() -> None:
    assert [value.unit for value in values("iki yıldır, een kwartaal, 50 درهما")] == ["year", "quartal", "aed"]
    assert values("dodici euro e cinquanta.")[0].key.value == Fraction(25, 2)  # type: ignore[union-attr]
    assert values("o ósmej wieczorem")[0].key == (1200,)
    first, _ = values("20 gotas dos veces al día")
    assert first.whole == (0, 25)
    left, right = (values(f"The bug is fixed in version {text}")[0].key.written for text in ("4.10.", "4.1 at last"))  # type: ignore[union-attr]
    assert (left, right) == ("4.10", "4.1")


@pytest.mark.parametrize("text", ["rose by 5 %, ", "2 tablets a day, ", "at least 21 years, "])
def test_many_values_with_many_parts_take_linear_time(text: str) -> None:
    def read(times: int) -> None:
        read_values.cache_clear()
        read_values(text * times)

    assert linear(read, 60)


@pytest.mark.parametrize(
    "number", ["9" * 5_000, "2." + "1" * 5_000, "1 " + "000 " * 2_000, "5 " + "million " * 2_000, "1" + ",000" * 2_000]
)
def test_numbers_of_thousands_of_digits_end_no_answer(number: str) -> None:
    """Python refuses to read or write them: one passage, or a question, made every answer fail."""
    passages = [Passage(f"It costs {number} euros.", source="https://a.example/"), Passage("It costs 5 euros.")]
    for question in ("How much does it cost?", f"Does it cost {number} euros?"):
        answer = Guard(generator="extractive", sources={"known": ["b.example"]}).answer(question, passages)
        assert answer.text
