"""A number or name that differs from a near-copy's: which of two documents was changed, by their age and company.

A lie is often a true page with one number in it changed. Nobody need say which is true: the newer one, and the one that
has less company, is the suspect; where neither can be said, or they contradict each other, both are shown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.collection import ALIKE, MAX_RIVAL_SHARE, Collection
from unpoison.scan.documents import Document
from unpoison.text.changed_words import ChangedWords, changed_words
from unpoison.text.near_duplicates import FoldedText

__all__ = ["CODE", "Change", "changes"]

CODE = "changed_in_near_copy"
"""The code of this reason."""

BOTH, ONE, OPEN = 0.95, 0.85, 0.6
"""Suspicion of a document whose near-copy is older and has more company, has one of the two, and where it is open."""

MAX_FILLINGS = 2
"""What near-copies may have in one place; with more the place is one that a template leaves open."""

FEWEST = 10
"""So many changed documents are believed in a collection of any size."""


class Change(NamedTuple):
    """Where a unit differs from a near-copy, and which of the two is the suspect.

    Attributes:
        kind: `number`, `name`, or `numbers` where two differ.
        ours, theirs: The words of each.
        document: The number of the near-copy.
        older: Which was there first, `ours` or `theirs`; None where their times do not say.
        ours_company, theirs_company: How many independent documents among the near-copies say so.
        start, end: Where ours stands in the unit's body.
        suspicion: Of the unit, in [0, 1].
    """

    kind: str
    ours: str
    theirs: str
    document: int
    older: str | None
    ours_company: int
    theirs_company: int
    start: int
    end: int
    suspicion: float

    @property
    def more_company(self) -> str | None:
        """Whose words more documents say, `ours` or `theirs`; None where as many."""
        if self.ours_company == self.theirs_company:
            return None
        return "ours" if self.ours_company > self.theirs_company else "theirs"

    def words(self, name: str) -> str:
        """The finding as a sentence.

        Args:
            name: The near-copy's, as it may be shown.
        """
        company = f"{self.theirs_company} to {self.ours_company}"
        sides = {
            ("theirs", "theirs"): f"{name} is older and has more company ({company})",
            ("theirs", None): f"{name} is older",
            (None, "theirs"): f"{name} has more company ({company})",
            ("theirs", "ours"): f"{name} is older, but has less company ({company})",
            ("ours", "theirs"): f"{name} has more company ({company}), but is newer",
        }
        verdict = sides.get((self.older, self.more_company), "neither is older or has more company, as far as is known")
        number = "two numbers or names" if " | " in self.ours else f"one {self.kind}"
        return f"it differs from {name} in {number}: {self.ours} / {self.theirs}; {verdict}"

    def to_dict(self, name: str) -> dict[str, Any]:
        """The object in a row of `scan --json`; `from` is the near-copy's id."""
        return {
            "code": CODE,
            "kind": self.kind,
            "from": name,
            "ours": self.ours,
            "theirs": self.theirs,
            "older": self.older,
            "more_company": self.more_company,
            "company": {"ours": self.ours_company, "theirs": self.theirs_company},
        }


def changes(collection: Collection, wanted: NDArray[np.bool_]) -> dict[int, Change]:
    """The change of each wanted unit that differs from a near-copy and is no better than it.

    Only units of which a near-copy stands nearby are compared, each with its `NEAREST`: O(n) time. Where more than
    `MAX_RIVAL_SHARE` of the documents are changed ones the collection is made by templates, and nothing is said.
    """
    near, cosine = collection.near, collection.cosine

    @lru_cache(maxsize=256)
    def fold(unit: int) -> FoldedText:
        return FoldedText(collection.units[unit].body)

    by_unit = dict[int, Change]()
    for unit in np.flatnonzero(wanted & (cosine.max(axis=1, initial=0.0) >= ALIKE)).tolist():
        alike = [other for other, value in zip(near[unit].tolist(), cosine[unit].tolist()) if value >= ALIKE]
        change = _change(collection, unit, alike, fold)
        if change is not None:
            by_unit[unit] = change
    changed = len({int(collection.owner[unit]) for unit in by_unit})
    return by_unit if changed <= max(FEWEST, 2 * MAX_RIVAL_SHARE * len(collection.documents)) else {}


def _change(
    collection: Collection, unit: int, others: Sequence[int], fold: Callable[[int], FoldedText]
) -> Change | None:
    """The change that most speaks against a unit."""
    folded = fold(unit)
    equal, places = [unit], defaultdict[tuple[tuple[int, int], ...], list[tuple[int, tuple[ChangedWords, ...]]]](list)
    for other in others:
        found = changed_words(folded, fold(other))
        if found:
            places[tuple(change.place for change in found)].append((other, found))
        elif found is not None:
            equal.append(other)
    worst = None
    for rivals in places.values():
        fillings = Counter(tuple(change.theirs.casefold() for change in found) for _, found in rivals)
        if len(places) + len(fillings) > MAX_FILLINGS + 1 or len(fillings) >= MAX_FILLINGS:
            return None  # a template
        change = _judge(collection, equal, rivals, folded)
        if change is not None and (worst is None or change.suspicion > worst.suspicion):
            worst = change
    return worst


def _judge(
    collection: Collection,
    ours: Sequence[int],
    theirs: Sequence[tuple[int, tuple[ChangedWords, ...]]],
    folded: FoldedText,
) -> Change | None:
    """None where the unit is the better one of the two."""
    mine = [collection.documents[collection.owner[unit]] for unit in ours]
    others = [collection.documents[collection.owner[unit]] for unit, _ in theirs]
    if _is_series(mine[0], others[0]):
        return None
    our_company, their_company = len(set(map(_origin, mine))), len(set(map(_origin, others)))
    older = _older(mine, others)
    against = [older == "theirs", their_company > our_company]
    for_us = [older == "ours", our_company > their_company]
    if any(for_us) and not any(against):
        return None
    suspicion = OPEN if any(for_us) or not any(against) else BOTH if all(against) else ONE
    first, found = min(theirs, key=lambda rival: (_time(collection, rival[0]), rival[0]))
    return Change(
        found[0].kind if len({change.kind for change in found}) == 1 else "number or name",
        " | ".join(change.ours for change in found),
        " | ".join(change.theirs for change in found),
        int(collection.owner[first]),
        older,
        our_company,
        their_company,
        folded.starts[found[0].place[0]],
        folded.starts[found[0].place[1] - 1] + len(folded.words[found[0].place[1] - 1]),
        suspicion,
    )


def _time(collection: Collection, unit: int) -> float:
    added_at = collection.documents[collection.owner[unit]].added_at
    return np.inf if added_at is None else added_at.timestamp()


def _origin(document: Document) -> str:
    """Documents of one origin have one voice."""
    source = document.passage.source
    if source and source != document.id:
        return source.partition("://")[2].partition("/")[0] or source
    return document.author or document.id


def _older(mine: Sequence[Document], others: Sequence[Document]) -> str | None:
    """Whose first document came first; None unless all say when."""
    times = [[document.added_at for document in side if document.added_at is not None] for side in (mine, others)]
    if not all(times) or sum(map(len, times)) < len(mine) + len(others) or min(times[0]) == min(times[1]):
        return None
    return "ours" if min(times[0]) < min(times[1]) else "theirs"


def _is_series(one: Document, other: Document) -> bool:
    """Whether the titles tell them apart by a number or name of their own."""
    left, right = one.passage.title or "", other.passage.title or ""
    return bool(left and right) and left.casefold() != right.casefold()
