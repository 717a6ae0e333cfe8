"""The variants of a defense that a paper proposes: as its text says, and as its released code does.

No table of TrustRAG, RADAR or RAGDefender says which of the two produced it, and they keep different passages, so every
such row is measured in both. GRADA has one variant: where its text is silent, its code is followed, and nowhere else do
they differ in what is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unpoison.bench.evaluation.specs import format_spec
from unpoison.core.registry import parse

__all__ = ["PAPER", "REFERENCE", "row_variants", "shortfalls", "variants"]

PAPER, REFERENCE = "paper", "reference"

_REFERENCE: Mapping[str, Mapping[str, str]] = {
    "trustrag": {"mode": "reference"},
    "radar": {"mode": "reference", "fallback": "memory"},
    "ragdefender": {"mode": "reference"},
}
"""What makes a defense do as its released code does."""

_SAID = {
    False: "where no passage answers, theirs reads all of them",
    True: "the year of a question is not told, theirs tells it",
}
"""In what RADAR's reference is not the released code, alone and over time."""

_OVER_TIME = {"fallback": "all", "lenient_below": "3"}
"""What RADAR's released code does otherwise over time."""


def variants(spec: str, *, over_time: bool = False) -> dict[str, str]:
    """The option strings to measure for a row that does not say which variant it has, by variant.

    Args:
        spec: Of the row.
        over_time: Whether it is a row of RADAR's tables over time, whose code is another.

    Returns:
        `paper` and `reference`; only "" for a defense that has no variants, or where the option string names one.
    """
    name, options = parse(spec)
    if name not in _REFERENCE or {"mode", "rule"} & set(options):
        return {"": spec}
    as_printed = {"rule": "paper"} if name == "ragdefender" and options.get("hops") == "multi" else {}
    return {
        PAPER: format_spec(name, {**options, **as_printed}),
        REFERENCE: format_spec(name, {**options, **_REFERENCE[name], **(_OVER_TIME if over_time else {})}),
    }


def shortfalls(variant: str, spec: str, *, over_time: bool = False) -> tuple[str, ...]:
    """In what a variant is not what it is named after, one phrase each."""
    return (_SAID[over_time],) if variant == REFERENCE and parse(spec)[0] == "radar" else ()


def row_variants(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows that stand for a row of a preset's file: one for each variant of its defense."""
    for variant, spec in variants(row["defense"]).items():
        differs = [*row.get("differs", ()), *shortfalls(variant, spec)]
        yield {**row, "variant": variant, "defense": spec, "differs": differs}
