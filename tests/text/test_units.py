"""Numbers in digits and words, and units with their factors."""

from __future__ import annotations

from fractions import Fraction

import pytest

from unpoison.text.languages import MAX_NUMBER_CHARS, word_value
from unpoison.text.units import Numbers, near, rounds, single, to_count, unit_name


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
