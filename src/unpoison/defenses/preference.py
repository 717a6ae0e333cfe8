"""Which side of a dispute a policy tells first: what is approved, or older, or newer."""

from __future__ import annotations

from collections.abc import Sequence

from unpoison.core.claims import Claim
from unpoison.types import Passage

__all__ = ["sort_by_preference"]

DATES = ("date", "published", "modified", "added_at")
"""Metadata that say when a page was written, first match wins; texts such as 2026-11-01, compared as they are."""


def sort_by_preference(claims: Sequence[Claim], passages: Sequence[Passage], prefer: str) -> list[Claim]:
    """The sides of a dispute, those first that the policy prefers; else in their order.

    Args:
        claims: The sides, the heaviest first.
        passages: All passages of the question.
        prefer: "", `older`, `newer` or `field:NAME=value` (`sources.Policy.prefer`).
    """
    if prefer.startswith("field:"):
        name, _, wanted = prefer.removeprefix("field:").partition("=")
        return sorted(claims, key=lambda c: not any(str(passages[i].metadata.get(name)) == wanted for i in c.passages))
    if not prefer:
        return list(claims)
    dates = [[date for i in claim.passages if (date := _date(passages[i]))] for claim in claims]
    if not all(dates):  # what has no date is neither older nor newer
        return list(claims)
    order = sorted(range(len(claims)), key=lambda n: min(dates[n]) if prefer == "older" else max(dates[n]))
    return [claims[n] for n in (order if prefer == "older" else reversed(order))]


def _date(passage: Passage) -> str:
    written = (passage.metadata.get(name) for name in DATES)
    return next((date.replace("/", "-") for date in written if isinstance(date, str) and date[:4].isdigit()), "")
