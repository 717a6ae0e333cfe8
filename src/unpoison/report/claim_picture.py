"""Layout of the claim graph: sources on the left, claims on the right; `claims.svg` draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unpoison.core.screenings import Screening
from unpoison.sources.sources import Standing

__all__ = ["Box", "ClaimPicture", "Link", "PictureRow", "claim_picture", "sources_of"]

MAX_SOURCES = 12
MAX_CLAIMS = 8
"""More boxes than these are counted and not drawn."""

STEP = 52
"""SVG units from one box to the next below it."""


class PictureRow(NamedTuple):
    """One source of a screening.

    Attributes:
        name: The origin, "" for a passage without one.
        level: Its standing (`sources.Standing`).
        trust: The weight of its word, in [0, 1].
        passages: Positions of its passages, ascending.
    """

    name: str
    level: str
    trust: float
    passages: tuple[int, ...]

    @property
    def label(self) -> str:
        return self.name or f"passage {self.passages[0]}"


class Box(NamedTuple):
    """A source or a claim: its middle from above, its words, a line below them, and a class."""

    y: int
    text: str
    note: str
    kind: str = ""


class Link(NamedTuple):
    """A source makes a claim: the middles of the two boxes, whether any passage behind it is kept, and a sentence."""

    start: int
    end: int
    kept: bool
    title: str


class ClaimPicture(NamedTuple):
    """The drawn sources and claims, and their total numbers."""

    sources: tuple[Box, ...]
    claims: tuple[Box, ...]
    links: tuple[Link, ...]
    height: int
    of: tuple[int, int]


def sources_of(standings: Sequence[Standing]) -> tuple[PictureRow, ...]:
    """The sources in the order in which they first speak; a passage without an origin is a source of its own."""
    rows: dict[str | int, PictureRow] = {}
    for i, one in enumerate(standings):
        key: str | int = one.origin or i
        before = rows.get(key, PictureRow(one.origin, one.level, one.trust, ()))
        strongest = max(before, PictureRow(one.origin, one.level, one.trust, ()), key=lambda row: row.trust)
        rows[key] = strongest._replace(passages=(*before.passages, i))
    return tuple(rows.values())


def claim_picture(screening: Screening, sources: Sequence[PictureRow]) -> ClaimPicture | None:
    """The picture; None if no claim was read."""
    if not screening.claims:
        return None
    claims = screening.claims[:MAX_CLAIMS]
    said = {i for claim in claims for i in claim.passages}
    drawn = sorted(sources, key=lambda row: said.isdisjoint(row.passages))[:MAX_SOURCES]  # silent sources come last
    height = STEP * max(len(drawn), len(claims))
    rows = _column(len(drawn), height), _column(len(claims), height)
    kept = set(screening.kept_indices)
    links = []
    for start, row in zip(rows[0], drawn):
        for end, claim in zip(rows[1], claims):
            if common := sorted({*row.passages} & {*claim.passages}):
                title = f"{row.label} says {claim.text} ({_passages(common)})"
                links.append(Link(start, end, not kept.isdisjoint(common), title))
    return ClaimPicture(
        tuple(Box(y, row.label, f"{row.level}, weighs {row.trust:.2g}", row.level) for y, row in zip(rows[0], drawn)),
        tuple(
            Box(y, claim.text, f"weight {claim.weight:.2g}, {_count(claim.passages)}", "" if n else "leading")
            for n, (y, claim) in enumerate(zip(rows[1], claims))
        ),
        tuple(links),
        height,
        (len(sources), len(screening.claims)),
    )


def _column(count: int, height: int) -> list[int]:
    """The middles of the boxes, evenly from top to bottom."""
    return [round(height * (n + 0.5) / count) for n in range(count)]


def _count(positions: Sequence[int]) -> str:
    return f"{len(positions)} passage{'s' * (len(positions) > 1)}"


def _passages(positions: Sequence[int]) -> str:
    named = ", ".join(map(str, positions[:6])) + ("…" if len(positions) > 6 else "")
    return f"passage{'s' * (len(positions) > 1)} {named}"
