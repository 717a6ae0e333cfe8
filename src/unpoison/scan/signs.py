"""What is seen of every unit: what the defense thinks of it in the company of its neighbours, and how it is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.neighbours import Positions
from unpoison.scan.probes import Probe
from unpoison.scan.style import LEAST, invention_odds
from unpoison.scan.terms import stem_codes
from unpoison.scan.units import Unit

__all__ = ["COLUMNS", "ScreeningOdds", "UnitSigns", "likeness", "signs"]

Matrix = NDArray[np.float64]

COLUMNS = ("own", "others", "mates", "third", "echo", "style")
"""The evidence, in the order of the weights."""

SURE = 1e-3
"""Probabilities count as no nearer to 0 and 1 than this."""

MATE = 0.25
"""TF-IDF cosine from which units may be of one hand."""

MAX_QUESTION_SHARE = 0.1
"""Where this share of the units begins with a question, one in front says nothing."""


PRIOR, INNOCENT = 0.5, -1.0
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
        return np.asarray((self._sum + PRIOR * np.minimum(self.own, INNOCENT)) / (self._times + PRIOR))


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
    style = np.full(len(units), LEAST)
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
