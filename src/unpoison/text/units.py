"""Units of measure and currencies: their kind, their factor to the base unit of the kind, and their system."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from unpoison.text.lexicon import phrases

__all__ = ["CURRENCIES", "MEASURES", "Quantity", "near", "single", "to_count", "unit_name"]

ROUNDED = Fraction(2, 100)
"""Maximum relative difference of equal measures in different systems, because conversions are rounded."""


class Quantity(NamedTuple):
    """A number with its unit ("" for none), and the amount in the base unit of its kind.

    Units of one `system` convert exactly, others only approximately. `written` is set for a possible version number.
    """

    value: Fraction
    unit: str = ""
    amount: Fraction = Fraction(0)
    kind: str = ""
    system: str = ""
    written: str = ""


CURRENCIES = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr", "chf": "chf", "pln": "pln", "rub": "rub",
              "try": "try", "cny": "cny"}  # fmt: skip
"""The currency of each unit."""

MEASURES: dict[str, tuple[str, Fraction, str]] = {
    name: (kind, Fraction(factor), system)
    for (kind, system), rows in {
        ("length", "metric"): {"km kilometer kilometre": "1000", "m meter metre": "1", "cm centimeter centimetre":
                               "0.01", "mm millimeter millimetre": "0.001"},
        ("length", "imperial"): {"mi mile": "1609.344", "yd yard": "0.9144", "ft foot feet": "0.3048",
                                 "in inch inches": "0.0254"},
        ("mass", "metric"): {"kg kilogram kilo": "1000", "g gram gramme gramm": "1", "mg milligram": "0.001",
                             "mcg ug μg µg microgram": "0.000001", "t tonne": "1000000"},
        ("mass", "imperial"): {"lb lbs pound": "453.59237", "oz ounce": "28.349523125", "ton": "907184.74"},
        ("time", "clock"): {"ms": "0.001", "second": "1", "minute": "60", "hour": "3600",
                            "day": "86400", "week": "604800", "fortnight": "1209600"},
        ("time", "calendar"): {"month": "2629800", "year": "31557600", "decade": "315576000",
                               "century centuries": "3155760000"},
        ("volume", "metric"): {"l liter litre": "1", "ml milliliter millilitre": "0.001", "cl": "0.01", "dl": "0.1"},
        ("volume", "imperial"): {"gallon gal": "3.785411784", "quart": "0.946352946", "pint": "0.473176473"},
        ("area", "metric"): {"hectare ha": "10000", "km2 sqkm": "1000000", "m2 sqm": "1"},
        ("area", "imperial"): {"acre": "4046.8564224"},
        ("data", "data"): {"kb kilobyte": "1", "mb megabyte": "1000", "gb gigabyte": "1000000",
                           "tb terabyte": "1000000000", "pb petabyte": "1000000000000"},
        ("length/time", "imperial"): {"mph": "0.44704"},
        ("length/time", "metric"): {"kph kmh": "5/18"},
        ("length/time", "sea"): {"knot": "463/900"},
        ("share", "share"): {"%": "1/100"},
        **{(kind, kind): {sign: "1"} for sign, kind in CURRENCIES.items()},
        ("usd", "usd"): {"$": "1", "cent": "0.01"},
        ("gbp", "gbp"): {"£": "1", "pence": "0.01"},
    }.items()
    for names, factor in rows.items()
    for name in names.split()
}  # fmt: skip
"""Name to (kind, factor, system). Units of one system convert exactly, others approximately."""


def single(word: str) -> str:
    """A word without the ending of its plural. Constant time."""
    if word in MEASURES:
        return word
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def unit_name(word: str) -> str:
    """The name in `MEASURES` of the unit that a folded word names in any of the languages; "" if none."""
    named = phrases("units").get(word) or single(word)
    return named if named in MEASURES or named == "time" else ""


def to_count(value: Fraction, unit: str) -> Quantity:
    """A number with its amount in the base unit of its kind. Constant time."""
    if unit[:2] in ("2 ", "3 "):
        kind, factor, system = MEASURES[unit[2:]]
        power = int(unit[0])
        return Quantity(value, unit, value * factor**power, "area" if power == 2 else "volume3", system)
    if "/" in unit:
        numerator, denominator = (MEASURES[part] for part in unit.split("/"))
        return Quantity(
            value, unit, value * numerator[1] / denominator[1], f"{numerator[0]}/{denominator[0]}", numerator[2]
        )
    kind, factor, system = MEASURES.get(unit, ("", Fraction(1), ""))
    return Quantity(value, unit, value * factor, kind, system)


def near(left: Quantity, right: Quantity) -> bool:
    """Whether two measures of a kind are equal; approximately, across systems of units."""
    if left.system == right.system:
        return left.amount == right.amount
    return abs(left.amount - right.amount) <= ROUNDED * max(abs(left.amount), abs(right.amount))
