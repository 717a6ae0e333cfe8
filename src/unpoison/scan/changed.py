"""Documents that differ from a near-copy in one or two numbers or names, and which of the two was changed.

A lie is often a true page with one number changed. The suspect is the document of the less trusted source, or the newer
one. Without such evidence both are suspicious, but below the usual threshold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import clip
from unpoison.scan.collection import ScanCollection
from unpoison.scan.documents import Document
from unpoison.sources.sources import Sources
from unpoison.text.answer_forms import read_answer
from unpoison.text.near_duplicates import BEGINNING, FoldedText, differ, differences, diverge, with_unit
from unpoison.text.questions import read_question

__all__ = ["OPEN", "Change", "Changes", "changes"]

SURE, LIKELY, OPEN = 0.95, 0.85, 0.45
"""Suspicion if both source and age are evidence, if one of them is, and if neither is."""

MIN_SHARED, MIN_SHARE = 6, 0.8
"""Minimum number and share of common words of near-copies."""

MAX_CHANGES = 2
"""Maximum number of differences, and of positions that differ from near-copies; more are fields of a template."""

MAX_WORDS = 4
"""Maximum words of a name."""

SUBJECT_WORDS = 3
"""A difference among this many first words is the subject: the documents are a series from one template."""

MAX_SHARE, FEWEST = 0.04, 10
"""Maximum share of documents with a difference, unless there are only so few; more come from templates."""

OLDER = timedelta(hours=1)
"""Documents closer in time are simultaneous, such as copied files."""

TRUST_GAP = 0.1
"""Minimum difference of trust between two sources."""

_COUNTED = read_question("how many")


class Change(NamedTuple):
    """A difference from a near-copy.

    Attributes:
        reason: The finding as a sentence, with the words of both documents.
        start, end: The region of the first difference in the unit's body.
        suspicion: The suspicion of the document, in [0, 1].
    """

    reason: str
    start: int
    end: int
    suspicion: float


class Changes(NamedTuple):
    """Differences from near-copies.

    Attributes:
        by_unit: The difference of each unit that is not the better version.
        withheld: Number of documents whose differences come from a template and are not reported.
    """

    by_unit: dict[int, Change]
    withheld: int = 0


class _Words(NamedTuple):
    """The words of both texts at a difference, and their range in ours."""

    ours: str
    theirs: str
    place: tuple[int, int]


def changes(collection: ScanCollection, wanted: NDArray[np.bool_], sources: Sources | None = None) -> Changes:
    """Find the units that differ from a near-copy among their neighbours in one or two numbers or names.

    Args:
        collection: The documents.
        wanted: The units to check, shape (units,).
        sources: The policy or history that says which sources to trust; None without one.

    Complexity: O(n) time for n words.
    """
    judged = ((unit, _change(collection, unit, sources)) for unit in np.flatnonzero(wanted).tolist())
    by_unit = {unit: change for unit, change in judged if change is not None}
    documents = len({int(collection.owner[unit]) for unit in by_unit})
    if documents > max(FEWEST, MAX_SHARE * len(collection.documents)):
        return Changes({}, documents)
    return Changes(by_unit)


def _change(collection: ScanCollection, unit: int, sources: Sources | None) -> Change | None:
    """The difference with the highest suspicion."""
    units, equal = collection.units, [unit]
    body = units[unit].body
    begin, texts = FoldedText(body[:BEGINNING]), ((n, units[n].body) for n in collection.near[unit].tolist() if n >= 0)
    near = [(n, text) for n, text in texts if not diverge(begin, FoldedText(text[:BEGINNING]))]
    folded = FoldedText(body if near else "")  # twenty times the memory of a text, so none is kept
    rivals = defaultdict[tuple[tuple[int, int], ...], list[tuple[int, list[_Words]]]](list)
    for other, text in near:
        words = _changed_words(folded, FoldedText(text))
        if words:
            rivals[tuple(one.place for one in words)].append((other, words))
        elif words is not None:
            equal.append(other)
    if len(rivals) > MAX_CHANGES:
        return None
    judged = list[Change]()
    for some in rivals.values():
        if len({tuple(one.theirs.casefold() for one in words) for _, words in some}) > 1:
            return None  # three versions: a field of a template
        mine, others = ([collection.documents[collection.owner[one]] for one in side] for side in (equal, dict(some)))
        change = _judge(mine, others, some[0][1], folded, sources)
        judged += [] if change is None else [change]
    return max(judged, key=lambda change: change.suspicion, default=None)


def _changed_words(left: FoldedText, right: FoldedText) -> list[_Words] | None:
    """The numbers and names in which a text differs from a near-copy.

    Returns:
        Empty for equivalent texts. None if they are not near-copies, belong to a series, or differ in anything else.
    """
    places = differences(left, right)
    if places is None:
        return None
    shared = len(left.words) - sum(b - a for (a, b), _ in places)
    if shared < max(MIN_SHARED, MIN_SHARE * max(len(left.words), len(right.words))):
        return None
    found = dict[tuple[str, str], _Words]()
    for place in places:
        ours, theirs = left.slice(*place.left), right.slice(*place.right)
        if not ours or not theirs:
            return None
        if not differ(ours, theirs):
            continue
        if _kind(ours) != _kind(theirs) or not _kind(ours) or place.left[0] < SUBJECT_WORDS:
            return None
        words = _Words(with_unit(left, place.left, ours), with_unit(right, place.right, theirs), place.left)
        found.setdefault((ours, theirs), words)
    return list(found.values()) if len(found) <= MAX_CHANGES else None


def _kind(words: str) -> str:
    """Whether some words are a number or a name; "" for neither."""
    if any(map(str.isdigit, words)) or read_answer(words, _COUNTED).values:
        return "number"
    return "name" if words[0].isupper() and len(words.split()) <= MAX_WORDS else ""


def _judge(
    mine: list[Document], others: list[Document], words: list[_Words], folded: FoldedText, sources: Sources | None
) -> Change | None:
    """The difference; None if the document is the better version, or the titles distinguish the documents."""
    titles = [FoldedText(side[0].passage.title or "").distinct for side in (mine, others)]
    if titles[0] - titles[1] and titles[1] - titles[0]:
        return None
    trust = _trust(others, sources) - _trust(mine, sources)
    age = 0.0 if _is_revision(mine, others) else _age(others, mine)
    # The policy of sources takes precedence: times are easier to forge.
    if trust <= -TRUST_GAP or (trust < TRUST_GAP and age <= -1):
        return None
    signs = (("is of a more trusted source", trust >= TRUST_GAP), ("is older", age >= 1))
    evidence = [text for text, holds in signs if holds]
    name = clip(others[0].id)
    verdict = f"{name} {' and '.join(evidence)}" if evidence else "nothing tells which of the two was changed"
    told = "; ".join(f"{clip(one.ours)} here, {clip(one.theirs)} there" for one in words)
    start, end = words[0].place
    return Change(
        f"it differs from {name}: {told}; {verdict}",
        folded.starts[start],
        folded.starts[end - 1] + len(folded.words[end - 1]),
        (OPEN, LIKELY, SURE)[len(evidence)],
    )


def _trust(documents: Sequence[Document], sources: Sources | None) -> float:
    """The highest trust of their sources."""
    if sources is None:
        return 1.0
    return max(standing.trust for standing in sources.standings("", [document.passage for document in documents]))


def _is_revision(mine: Sequence[Document], others: Sequence[Document]) -> bool:
    """Whether one author at one site wrote all of them: the newer ones are corrections."""
    sites = {one.passage.origin if "://" in (one.passage.source or "") else "" for one in (*mine, *others)}
    authors = {document.author for document in (*mine, *others)}
    return len(sites) == len(authors) == 1 and all(authors)


def _age(mine: Sequence[Document], others: Sequence[Document]) -> float:
    """How much older the first document of mine is, in units of `OLDER`; 0 unless all documents have a time."""
    times = [[document.added_at for document in side if document.added_at is not None] for side in (mine, others)]
    return 0.0 if sum(map(len, times)) < len(mine) + len(others) else (min(times[1]) - min(times[0])) / OLDER
