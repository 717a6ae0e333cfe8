"""The signs that a unit is planted, and how much each weighs.

A sign is what the defense says of a unit beside its neighbours, a question in front of its text, or how its sentences
are built. The weights (`CLAIM`) are fitted by `benchmarks/train_scan.py`. Their base takes planted documents to be
rare: on a clean collection fewer than one in 200 are flagged at 0.5. What a unit hides is judged by itself.

A lie among honest sentences is found by what the defense says of it. A text that was made as a whole shows another
sign: not even its most innocent sentence is built as people's are. So of every text the average and the least
suspicious sentence count, by the style that `guard.crafted` reads with.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard.crafted import Crafted
from unpoison.scan.neighbours import Positions, stem_codes
from unpoison.scan.units import Probe, Unit
from unpoison.text.analysis import each, words_of
from unpoison.text.canonical import Hidden

__all__ = [
    "CLAIM",
    "COLUMNS",
    "MIN_STYLE",
    "WEIGHED",
    "HidingShares",
    "ScreeningOdds",
    "UnitSigns",
    "claims",
    "concealment",
    "invention_odds",
    "likeness",
    "signs",
    "weigh",
]  # fmt: skip

Matrix = NDArray[np.float64]

COLUMNS = ("own", "others", "mates", "third", "echo", "style")
"""The evidence, in the order of the weights."""

SURE = 1e-3
"""Probabilities count as no nearer to 0 and 1 than this."""

MATE = 0.25
"""TF-IDF cosine from which units may be of one hand."""

MAX_QUESTION_SHARE = 0.1
"""Where this share of the units begins with a question, one in front says nothing."""


UNASKED, UNASKED_ODDS = 0.5, -1.0
"""Questions, and log-odds, that count beside those that were asked."""

BLOCK = 512
"""Units that are compared with their neighbours at once."""

MIN_UNITS = 30
"""Of fewer units than this the share counts as if there were so many."""


class ScreeningOdds:
    """What the defense said of units, asked by their own question and by those of others.

    Memory: some numbers for each unit, however often it is judged.
    """

    def __init__(self, count: int) -> None:
        self.own = np.full(count, np.nan)
        self._sum, self._times = np.zeros(count), np.zeros(count)

    def add(self, units: Sequence[int], probabilities: Sequence[float]) -> None:
        """Add one screening: the first unit is the one that the question was made from. An empty one says nothing."""
        if not len(probabilities):
            return
        odds = _odds(np.array(probabilities))
        self.own[units[0]] = odds[0]
        rest = np.array(units[1:], np.intp)
        self._sum[rest] += odds[1:]
        self._times[rest] += 1

    @property
    def times(self) -> Matrix:
        """How often each was found by the question of another."""
        return self._times

    @property
    def others(self) -> Matrix:
        """The mean of what was said of each by the questions of others.

        Half a question counts as having found it innocent, so that a unit that few questions found is not condemned by
        its own alone.
        """
        return np.asarray((self._sum + UNASKED * np.minimum(self.own, UNASKED_ODDS)) / (self._times + UNASKED))


@dataclass(frozen=True)
class UnitSigns:
    """The evidence on n units.

    Attributes:
        rows: By `COLUMNS`, shape (n, columns).
        cosine: TF-IDF cosine to each neighbour, shape (n, NEAREST), 0 where there is none.
    """

    rows: Matrix
    cosine: NDArray[np.float32]


def signs(
    units: Sequence[Unit],
    probes: Sequence[Probe],
    near: Positions,
    cosine: NDArray[Any],
    screening_odds: ScreeningOdds,
    reference: NDArray[np.bool_],
) -> UnitSigns:
    """All evidence on the units, O(n) time and memory.

    Args:
        units: n of them.
        probes: The question of each.
        near: The neighbours of each, -1 for none, shape (n, k).
        cosine: How alike they are, shape (n, k).
        screening_odds: What the defense said.
        reference: The units that say what is usual in the collection, shape (n,).
    """
    own_asked = np.flatnonzero(~np.isnan(screening_odds.own))  # nobody looks at the style of the others
    style = np.full(len(units), MIN_STYLE)
    style[own_asked] = invention_odds([units[i].text for i in own_asked.tolist()])
    own = np.nan_to_num(screening_odds.own, nan=-4.0)
    alike = np.where((near >= 0) & (cosine >= MATE), cosine, 0.0)
    mates = (alike * own[near]).sum(axis=1) / np.maximum(alike.sum(axis=1), 1e-9)
    ranked = -np.sort(-cosine, axis=1)
    columns = {
        "own": own,
        "others": np.nan_to_num(screening_odds.others, nan=-4.0),
        "mates": np.where(alike.sum(axis=1) > 0, mates, own.mean() if len(own) else 0.0),
        "third": ranked[:, 2],
        "echo": _echo(units, probes, reference),
        "style": style,
    }
    return UnitSigns(np.column_stack([columns[name] for name in COLUMNS]), cosine)


def likeness(near: Positions, rows: Any) -> NDArray[np.float32]:
    """TF-IDF cosine of every unit to each of its neighbours, shape of `near`. O(n) time, blocks in memory."""
    cosines = np.zeros(near.shape, np.float32)
    width = near.shape[1]
    for start in range(0, len(near), BLOCK):
        some = near[start : start + BLOCK]
        own = rows[np.repeat(np.arange(start, start + len(some)), width)]
        products = own.multiply(rows[np.maximum(some, 0).ravel()]).sum(axis=1)
        cosines[start : start + len(some)] = np.where(some >= 0, np.asarray(products).reshape(some.shape), 0)
    return cosines


def _odds(probability: Matrix) -> Matrix:
    bounded = np.clip(probability, SURE, 1 - SURE)
    return np.asarray(np.log(bounded / (1 - bounded)))


def _echo(units: Sequence[Unit], probes: Sequence[Probe], reference: NDArray[np.bool_]) -> Matrix:
    """How much of a question in front the text behind it answers, times how unusual a question in front is here."""
    asking = [i for i, probe in enumerate(probes) if probe.asks]
    usual = sum(bool(reference[i]) for i in asking)
    unusual = max(0.0, 1 - usual / max(int(reference.sum()), MIN_UNITS) / MAX_QUESTION_SHARE)
    echo = np.zeros(len(units))
    for i in asking:
        question_stems = set(stem_codes(units[i].body[slice(*probes[i].lead)]))
        behind = set(stem_codes(units[i].body[probes[i].lead[1] :][:400]))
        echo[i] = unusual * len(question_stems & behind) / max(len(question_stems), 1)
    return echo


MIN_STYLE, MAX_STYLE = -6.0, 4.0
"""What is farther from people's texts, or nearer to invented ones, counts as this."""

MIN_STYLE_TOKENS = 10
"""Words and marks of a sentence that has a style; a shorter one is built as its few words must be."""


def invention_odds(texts: Sequence[str]) -> Matrix:
    """The log-odds, roughly, that each text as a whole is an invented claim, by how it is built, shape (n,).

    Args:
        texts: n canonical texts. One without words looks as innocent as any.

    Complexity: O(words) time but for sorting.
    """
    odds = np.full(len(texts), MIN_STYLE)
    for i, (known, style) in enumerate(zip(words_of(texts), each(texts, Crafted.load().styles))):
        if len(style):
            length = known.last - known.first
            # the last window is the whole
            odds[i] = (style[-1] + style[length >= min(MIN_STYLE_TOKENS, length.max())].min()) / 2
    return np.asarray(np.clip(odds, MIN_STYLE, MAX_STYLE))


CLAIM = {
    "own": 0.63, "others": 0.0, "mates": 0.90, "echo": 6.0, "style": 0.63, "common": -2.0, "base": -1.66,
}  # fmt: skip
"""Weights of what the defense said by the unit's own question and by those of others, of its copies times how alike
they are, of a question in front that is answered, of how much the whole of it is built as invented claims are, and of
what the upper quarter of the collection gets by the questions of others beyond `DEFAULT_ODDS`: where all is written by
one template, suspicion means less."""

WEIGHED = ("own", "others", "mates", "echo", "style", "common")
"""The evidence that has a weight, in this order."""

DEFAULT_ODDS = -4.0
"""Log-odds that the questions of others give to the upper quarter of a usual collection, or less."""

MIN_USUAL = 30
"""Innocent units that are taken to have been seen before: a few planted ones do not say what is usual."""

MAX_HIDING_SHARE = 0.04
"""Where this share of the documents hides something of a kind, that kind says nothing."""

MIN_DOCUMENTS = 100
"""Of fewer documents than this the share counts as if there were so many."""

HIDING_STRENGTH = {"invisible": 6.0, "look_alikes": 6.0, "styled": 10.0, "marks": 12.0, "tags": 8.0, "entities": 20.0}
"""How many of a kind there must be to be taken seriously."""

MESSAGE = 0.85
"""A message where no reader looks."""

UNSEEN = 0.97
"""Text that the page's own markup keeps from the eye."""


def claims(rows: Matrix, reference: NDArray[np.bool_]) -> Matrix:
    """Log-odds that each unit was written to plant a claim, shape (n,).

    Args:
        rows: Of `signs`, for n units.
        reference: The units that say what is usual in the collection, shape (n,).
    """
    return np.asarray(weigh(rows, reference) @ np.array([CLAIM[name] for name in WEIGHED]) + CLAIM["base"])


def weigh(rows: Matrix, reference: NDArray[np.bool_]) -> Matrix:
    """What the weights of `CLAIM` are multiplied with, in the order of `WEIGHED`, shape (n, 6); see `claims`."""
    signs = dict(zip(COLUMNS, rows.T))
    usual = np.sort(np.concatenate([signs["others"][reference], np.full(MIN_USUAL, DEFAULT_ODDS)]))
    upper = float(usual[3 * (len(usual) - 1) // 4])
    columns = {
        **signs,
        "mates": signs["mates"] * np.clip(signs["third"], 0, 0.5) * 2,
        "common": np.full(len(rows), max(0.0, upper - DEFAULT_ODDS)),
    }
    return np.column_stack([columns[name] for name in WEIGHED])


@dataclass(frozen=True, slots=True)
class HidingShares:
    """How much each kind of hiding says in this collection.

    Attributes:
        shares: The share of the documents that hide something of a kind.
    """

    shares: dict[str, float]

    @classmethod
    def among(cls, units: Sequence[Unit], unseen: Collection[int], reference: NDArray[np.bool_]) -> HidingShares:
        """Count the kinds.

        Args:
            units: All units.
            unseen: Numbers of the documents that hold text which their markup hides.
            reference: The documents that say what is usual, shape (documents,).
        """
        kinds = (*HIDING_STRENGTH, "messages")
        hiding = {kind: {unit.document for unit in units if getattr(unit.hidden, kind)} for kind in kinds}
        hiding["unseen"] = set(unseen)
        size = max(int(reference.sum()), MIN_DOCUMENTS)
        return cls({kind: max(sum(reference[i] for i in those) - 1, 0) / size for kind, those in hiding.items()})

    def weight(self, kind: str) -> float:
        """1 where no other document hides anything of this kind, 0 where the share `MAX_HIDING_SHARE` of them do."""
        return max(0.0, 1 - self.shares[kind] / MAX_HIDING_SHARE)


def concealment(hidden: Hidden, unseen: int, shares: HidingShares) -> float:
    """The probability that what a unit hides was hidden on purpose, in [0, 1]."""
    probabilities = [UNSEEN * shares.weight("unseen")] if unseen else []
    if hidden.messages:
        probabilities.append(MESSAGE * shares.weight("messages"))
    for kind, strength in HIDING_STRENGTH.items():
        count = getattr(hidden, kind)
        if count:
            probabilities.append((1 - float(np.exp(-count / strength))) * shares.weight(kind))
    return max(probabilities, default=0.0)
