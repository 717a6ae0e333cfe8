"""The values of a text: kind, amount and place, in twelve languages."""

from __future__ import annotations

from fractions import Fraction

import pytest

from unpoison.text.units import Quantity
from unpoison.text.value_reader import MAX_CHARS, values


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
