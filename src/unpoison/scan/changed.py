"""Numbers and names that differ between near-copies: which document was changed, by source, age and support.

A lie is often a true page with one number changed. The suspect is the document of the less trusted source, the newer
one, or the one with less support. Without such evidence neither is flagged, and both are reported.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import inf
from typing import Any, Literal, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import clip
from unpoison.scan.collection import ScanCollection
from unpoison.scan.documents import Document
from unpoison.sources.sources import Sources
from unpoison.text.analysis import analysis
from unpoison.text.changed_words import ChangedWords, changed_words
from unpoison.text.near_duplicates import FoldedText, most_shared, split_words

__all__ = ["OPEN", "Change", "Changes", "changes", "copy_candidates"]

SURE, LIKELY, OPEN = 0.95, 0.85, 0.45
"""Suspicion with two pieces of evidence, with one, and of both documents without any."""

MAX_PLACES = 2
"""Maximum number of places that differ from near-copies; more are the blanks of a template."""

MAX_SHARE = 0.04
"""Maximum share of documents with a difference; more come from templates."""

FEWEST = 10
"""Number of such documents that are reported in any case."""

OLDER = timedelta(hours=1)
"""Documents closer in time are simultaneous, such as copied files."""

TRUST_GAP = 0.1
"""Minimum difference of trust between two sources."""

Side = Literal["ours", "theirs"]


@dataclass(frozen=True, slots=True)
class Change:
    """A difference from a near-copy, and the evidence which of the two documents was changed.

    Attributes:
        near_copy: The id of the near-copy.
        words: The one or two differences, with the words of both documents.
        start, end: The region of the first difference in the unit's body.
        suspicion: The suspicion of the document, in [0, 1].
        better_source, older, more_company: The side with the better source, the older one, and the one with more
            support; None if unknown or equal.
        company: Number of independent documents that support each side.
    """

    near_copy: str
    words: tuple[ChangedWords, ...]
    start: int
    end: int
    suspicion: float
    better_source: Side | None
    older: Side | None
    more_company: Side | None
    company: tuple[int, int]

    @property
    def suspect(self) -> bool:
        """Whether evidence says that this document was changed, rather than the near-copy."""
        return self.suspicion > OPEN

    def __str__(self) -> str:
        """The finding as a sentence."""
        name = clip(self.near_copy)
        what = f"one {self.words[0].kind}" if len(self.words) == 1 else "two numbers or names"
        words = "; ".join(f"{clip(change.ours)} here, {clip(change.theirs)} there" for change in self.words)
        return f"it differs from {name} in {what}: {words}; {self._verdict(name)}"

    def _verdict(self, name: str) -> str:
        ours, theirs = self.company
        told = (
            (self.better_source, "is of a more trusted source", "is of a less trusted source"),
            (self.older, "is older", "is newer"),
            (self.more_company, f"has more company ({theirs} to {ours})", f"has less company ({theirs} to {ours})"),
        )
        good = [words for side, words, _ in told if side == "theirs"]
        bad = [words for side, _, words in told if side == "ours"]
        if not good and not bad:
            return "nothing tells which of the two was changed"
        return ", but ".join(" and ".join(words) for words in (good, bad) if words).join((f"{name} ", ""))

    def to_dict(self) -> dict[str, Any]:
        """The field `changed` of `scan --json`."""
        return {
            "near_copy": self.near_copy,
            "words": [{"kind": one.kind, "ours": one.ours, "theirs": one.theirs} for one in self.words],
            "suspect": self.suspect,
            "better_source": self.better_source,
            "older": self.older,
            "more_company": self.more_company,
            "company": {"ours": self.company[0], "theirs": self.company[1]},
        }


class Changes(NamedTuple):
    """Differences from near-copies.

    Attributes:
        by_unit: The difference of each unit that is not the better version.
        withheld: Number of documents whose differences come from a template and are not reported.
    """

    by_unit: dict[int, Change]
    withheld: int = 0


def changes(collection: ScanCollection, wanted: NDArray[np.bool_], sources: Sources | None = None) -> Changes:
    """Find the units that differ from a near-copy in one or two numbers or names.

    Args:
        collection: The documents.
        wanted: The units to check, shape (units,).
        sources: The policy or history that says which sources to trust; None without one.

    Complexity: O(n log n) time for n words: a unit is compared with the few that share most of its sketch.
    """
    by_unit, owner = dict[int, Change](), collection.owner
    for unit, alike in sorted(copy_candidates(unit.body for unit in collection.units).items()):
        others = [other for other in alike if owner[other] != owner[unit]]
        change = _change(collection, unit, others, sources) if wanted[unit] else None
        if change is not None:
            by_unit[unit] = change
    documents = len({int(collection.owner[unit]) for unit in by_unit})
    if documents > max(FEWEST, MAX_SHARE * len(collection.documents)):
        return Changes({}, documents)
    return Changes(by_unit)


def _change(collection: ScanCollection, unit: int, others: Sequence[int], sources: Sources | None) -> Change | None:
    """The difference with the highest suspicion."""
    folded = analysis(collection.units[unit].body).part(FoldedText)
    equal = [unit]
    rivals = defaultdict[tuple[tuple[int, int], ...], list[tuple[int, tuple[ChangedWords, ...]]]](list)
    for other in others:
        words = changed_words(folded, analysis(collection.units[other].body).part(FoldedText))
        if words:
            rivals[tuple(one.place for one in words)].append((other, words))
        elif words is not None:
            equal.append(other)
    if len(rivals) > MAX_PLACES:
        return None
    judged = list[Change]()
    for some in rivals.values():
        fillings = Counter(tuple(one.theirs.casefold() for one in words) for _, words in some)
        if len(fillings) > 1:
            return None  # three versions: the blank of a template
        change = _judge(collection, equal, [other for other, _ in some], some[0][1], folded, sources)
        judged += [] if change is None else [change]
    return max(judged, key=lambda change: change.suspicion, default=None)


def _judge(
    collection: ScanCollection,
    ours: Sequence[int],
    theirs: Sequence[int],
    words: tuple[ChangedWords, ...],
    folded: FoldedText,
    sources: Sources | None,
) -> Change | None:
    """The difference; None if the unit is the better version, or the titles distinguish the documents."""
    mine, others = ([collection.documents[collection.owner[unit]] for unit in units] for units in (ours, theirs))
    if _is_series(mine[0], others[0]):
        return None
    company = _company(mine, others)
    better = _larger(_trust(mine, sources) - _trust(others, sources), TRUST_GAP)
    older = None if _is_revision(mine, others) else _older(mine, others)
    more = _larger(company[0] - company[1], 1)
    # The policy of sources takes precedence: times and copies are easier to forge.
    for_us = better == "ours" or (better is None and "ours" in (older, more))
    against = (better == "theirs") + (older, more).count("theirs")
    if better == "ours" or (for_us and not against):
        return None
    first = min(others, key=lambda document: (_seconds(document), document.id))
    start, end = words[0].place
    return Change(
        first.id,
        words,
        folded.starts[start],
        folded.starts[end - 1] + len(folded.words[end - 1]),
        OPEN if for_us or not against else SURE if against > 1 else LIKELY,
        better,
        older,
        more,
        company,
    )


def _seconds(document: Document) -> float:
    return inf if document.added_at is None else document.added_at.timestamp()


def _larger(difference: float, least: float) -> Side | None:
    return None if abs(difference) < least else "ours" if difference > 0 else "theirs"


def _trust(documents: Sequence[Document], sources: Sources | None) -> float:
    """Trust of their best source."""
    if sources is None:
        return 1.0
    return max(standing.trust for standing in sources.standings("", [document.passage for document in documents]))


def _site(document: Document) -> str:
    """The origin of its web address; "" for a file or a collection, which do not tell the author."""
    return document.passage.origin if "://" in (document.passage.source or "") else ""


def _company(mine: Sequence[Document], others: Sequence[Document]) -> tuple[int, int]:
    """Number of independent sources on each side: authors or sites; a site on both sides is ignored."""
    shared = set(map(_site, mine)) & set(map(_site, others))

    def voice(document: Document) -> tuple[str, str]:
        site = _site(document)
        return (site, document.author or "") if document.author or (site and site not in shared) else ("", document.id)

    return len(set(map(voice, mine))), len(set(map(voice, others)))


def _is_revision(mine: Sequence[Document], others: Sequence[Document]) -> bool:
    """Whether one author at one site wrote all of them: the newer ones are corrections."""
    authors = {(_site(document), document.author) for document in (*mine, *others)}
    return len(authors) == 1 and all(author for _, author in authors)


def _older(mine: Sequence[Document], others: Sequence[Document]) -> Side | None:
    """The side with the first document; None unless all documents have a time."""
    times = [[document.added_at for document in side if document.added_at is not None] for side in (mine, others)]
    if sum(map(len, times)) < len(mine) + len(others):
        return None
    return _larger((min(times[1]) - min(times[0])) / OLDER, 1)


def _is_series(one: Document, other: Document) -> bool:
    """Whether the titles distinguish them: each has a word that the other lacks."""
    left, right = (FoldedText(document.passage.title or "").distinct for document in (one, other))
    return bool(left - right and right - left)


SKETCH = 8
"""Number of hashes in a sketch."""

MIN_SHARED = 2
"""Minimum number of shared hashes of near-copies: texts with one equal sentence often share one."""

MIN_LENGTH = 0.7
"""Minimum ratio of the lengths of two near-copies."""

REMEMBERED_WORDS = 2**18
"""Maximum number of cached word hashes."""

_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
"""Odd factors, one for each position in a run; the upper bits of the sum are mixed."""


def copy_candidates(texts: Iterable[str]) -> dict[int, list[int]]:
    """For each text, the other texts that share most of its sketch.

    A sketch is the smallest hashes of a text's runs of three words (Broder, 1997, "On the resemblance and containment
    of documents"). One changed word touches three runs, so near-copies share most of their sketch.

    Args:
        texts: n texts of any language.

    Complexity: O(n) time for n words, O(texts) memory. In a large group of copies each text gets some of the others.
    """
    cache = dict[str, int]()
    sketches, lengths = list[NDArray[np.uint64]](), list[int]()
    for text in texts:
        sketches.append(_sketch(text, cache))
        lengths.append(len(text))
    number = np.repeat(np.arange(len(sketches)), [len(sketch) for sketch in sketches])
    value = np.concatenate([np.zeros(0, np.uint64), *sketches])
    order = np.lexsort((number, value))
    number, value = number[order], value[order]
    same, several = value[1:] == value[:-1], np.zeros(len(value), bool)
    several[1:] |= same
    several[:-1] |= same
    candidates = dict[int, list[int]]()
    for left, others in most_shared(number[several], value[several], len(sketches), MIN_SHARED).items():
        for right in others:
            if min(lengths[left], lengths[right]) < MIN_LENGTH * max(lengths[left], lengths[right]):
                continue
            candidates.setdefault(left, []).append(right)
            candidates.setdefault(right, []).append(left)
    return candidates


def _sketch(text: str, cache: dict[str, int]) -> NDArray[np.uint64]:
    """The smallest distinct hashes of a text's runs of three words, shape (at most SKETCH,)."""
    codes = list[int]()
    for word in split_words(text):
        code = cache.get(word)
        if code is None:
            code = cache[word] = crc32(word.encode("utf-8", "surrogatepass"))
        codes.append(code)
    if len(cache) > REMEMBERED_WORDS:
        cache.clear()
    if len(codes) < len(_FACTORS):
        return np.zeros(0, np.uint64)
    word_hashes = np.array(codes, np.uint64)
    count = len(codes) - len(_FACTORS) + 1
    runs = sum((word_hashes[i : i + count] + np.uint64(1)) * factor for i, factor in enumerate(_FACTORS))
    runs = np.asarray(runs ^ (runs >> np.uint64(29))) * _FACTORS[1]
    runs ^= runs >> np.uint64(32)
    if count > 4 * SKETCH:  # some spare for repeated runs
        runs = np.partition(runs, 4 * SKETCH)[: 4 * SKETCH]
    return np.unique(runs)[:SKETCH]
