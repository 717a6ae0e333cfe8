"""A number or name that differs from a near-copy's: which document was changed, by source, age and support.

A lie is often a true page with one number in it changed. Nobody need say which is true: the suspect is the one of the
less trusted source, the newer one, the one that fewer say. Where nothing tells, neither is, and both are shown.
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

__all__ = ["OPEN", "Change", "Changes", "Side", "changes", "copy_candidates"]

SURE, LIKELY, OPEN = 0.95, 0.85, 0.45
"""Suspicion of a document against which two things speak, or one, and of both where nothing tells."""

MAX_PLACES = 2
"""Places in which the near-copies of a text differ from it; with more of them a template leaves them open."""

MAX_SHARE = 0.04
"""Where more of the documents differ so from a near-copy, the collection is made by templates."""

FEWEST = 10
"""Number of such documents that are reported in a collection of any size."""

OLDER = timedelta(hours=1)
"""Documents closer together in time than this count as simultaneous, like copied files."""

TRUST_GAP = 0.1
"""Sources whose trust differs by less are as good as each other."""

Side = Literal["ours", "theirs"]


@dataclass(frozen=True, slots=True)
class Change:
    """Where a document differs from a near-copy, and what tells which of the two was changed.

    Attributes:
        near_copy: The id of the near-copy.
        words: What each has, one or two.
        start, end: Where ours stands in the unit's body.
        suspicion: Of the document, in [0, 1].
        better_source, older, more_company: Which of the two is; None where nobody knows, or neither.
        company: How many independent documents say ours and theirs.
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
        """Whether something tells that this document was changed, rather than the near-copy."""
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
        """What `scan --json` says of it in `changed`."""
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
    """What differs from a near-copy.

    Attributes:
        by_unit: The change of each unit that has one and is not the better of the two.
        withheld: How many documents have one that is not told, because a template made them.
    """

    by_unit: dict[int, Change]
    withheld: int = 0


def changes(collection: ScanCollection, wanted: NDArray[np.bool_], sources: Sources | None = None) -> Changes:
    """The change of each wanted unit that differs from a near-copy in one or two numbers or names.

    Args:
        collection: The documents.
        wanted: Which units, shape (units,).
        sources: Whom to believe more than others; None for nobody.

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
    """The change that speaks most against a unit."""
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
            return None  # three say three things: a place that a template leaves open
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
    """None where the unit is the better one of the two, or the titles tell them apart."""
    mine, others = ([collection.documents[collection.owner[unit]] for unit in units] for units in (ours, theirs))
    if _is_series(mine[0], others[0]):
        return None
    company = _company(mine, others)
    better = _larger(_trust(mine, sources) - _trust(others, sources), TRUST_GAP)
    older = None if _is_revision(mine, others) else _older(mine, others)
    more = _larger(company[0] - company[1], 1)
    # What the operator says of the sources decides; times and copies are easier to forge.
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
    """Of the best of their sources."""
    if sources is None:
        return 1.0
    return max(standing.trust for standing in sources.standings("", [document.passage for document in documents]))


def _site(document: Document) -> str:
    """The party behind its address on the web; "" for a file or a collection, which say nothing of who wrote it."""
    return document.passage.origin if "://" in (document.passage.source or "") else ""


def _company(mine: Sequence[Document], others: Sequence[Document]) -> tuple[int, int]:
    """Independent sources on each side: an author at a site, else a site; a site that says both counts for neither."""
    shared = set(map(_site, mine)) & set(map(_site, others))

    def voice(document: Document) -> tuple[str, str]:
        site = _site(document)
        return (site, document.author or "") if document.author or (site and site not in shared) else ("", document.id)

    return len(set(map(voice, mine))), len(set(map(voice, others)))


def _is_revision(mine: Sequence[Document], others: Sequence[Document]) -> bool:
    """Whether one author wrote all of them, at one site: the newer ones correct the older ones."""
    authors = {(_site(document), document.author) for document in (*mine, *others)}
    return len(authors) == 1 and all(author for _, author in authors)


def _older(mine: Sequence[Document], others: Sequence[Document]) -> Side | None:
    """Whose first document came first; None unless all say when."""
    times = [[document.added_at for document in side if document.added_at is not None] for side in (mine, others)]
    if sum(map(len, times)) < len(mine) + len(others):
        return None
    return _larger((min(times[1]) - min(times[0])) / OLDER, 1)


def _is_series(one: Document, other: Document) -> bool:
    """Whether the titles tell them apart: each has a word that the other has not."""
    left, right = (FoldedText(document.passage.title or "").distinct for document in (one, other))
    return bool(left - right and right - left)


SKETCH = 8
"""Hashes that are kept of a text."""

MIN_SHARED = 2
"""Hashes that near-copies share at least: texts of which one sentence is equal often share one."""

MIN_LENGTH = 0.7
"""The share of the longer one's characters that the shorter of two near-copies has."""

REMEMBERED_WORDS = 2**18
"""Words whose hashes are remembered while sketches are made."""

_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
"""Odd ones, one for each place in a run; the upper bits of the sum are mixed."""


def copy_candidates(texts: Iterable[str]) -> dict[int, list[int]]:
    """The other texts that share most of a text's sketch, for each text that has any.

    A sketch is the smallest hashes of a text's runs of three words (Broder, 1997, "On the resemblance and containment
    of documents"). One changed word touches three runs, so near-copies share most of their sketch.

    Args:
        texts: n of them, of any language.

    Complexity: O(n) time for n words, O(texts) memory. In a crowd of copies each text has some of the others only.
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
    """The smallest hashes of a text's runs of three words, each once, shape (at most SKETCH,)."""
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
    if count > 4 * SKETCH:  # the text may repeat a run; few texts do so often
        runs = np.partition(runs, 4 * SKETCH)[: 4 * SKETCH]
    return np.unique(runs)[:SKETCH]
