"""The signs that a unit is planted, and how much each weighs.

A sign is what the defense says of a unit beside its neighbours, a question in front of its text, or how its sentences
are built. The weights (`CLAIM`) are fitted by `benchmarks/train_scan.py`. Their base takes planted documents to be
rare: on a clean collection fewer than one in 200 are flagged at 0.5.

Some are made for the model that reads: demands that are strange in their collection, where few texts around make any
and nothing else in their text is akin. `text.prompt_injection` knows how injections are worded; one can be put in other
words, or demand something harmless ("Explain the theory of relativity."), but in a collection of articles it is still
a sentence that tells its reader to do something. How rare that is can be counted.

A lie among honest sentences is found by what the defense says of it. A text that was made as a whole shows another
sign: not even its most innocent sentence is built as people's are. So of every text the average and the least
suspicious sentence count, by the style that `guard.crafted` reads with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard.crafted import Crafted
from unpoison.scan.documents import Probe, Unit
from unpoison.scan.neighbours import Positions, stem_codes
from unpoison.text.analysis import each, words_of
from unpoison.text.imperatives import ORDERS, VOUCHES, Imperative, find_imperatives
from unpoison.text.prompt_injection import Injection

__all__ = [
    "CLAIM", "COLUMNS", "MIN_STYLE", "TOO_FEW", "WEIGHED", "Imperatives", "ScreeningOdds", "Strengths", "claims",
    "imperative_signs", "injection_suspicion", "invention_odds", "signs", "strengths", "supported", "weigh",
]  # fmt: skip

Matrix = NDArray[np.float64]

COLUMNS = ("own", "others", "mates", "third", "echo", "style", "details")
"""The evidence, in the order of the weights."""

SURE = 1e-3
"""Probabilities count as no nearer to 0 and 1 than this."""

MATE = 0.25
"""TF-IDF cosine from which units may be of one hand."""

MAX_QUESTION_SHARE = 0.1
"""Where this share of the units begins with a question, one in front says nothing."""


UNASKED, UNASKED_ODDS = 0.5, -1.0
"""Questions, and log-odds, that count beside those that were asked."""

MIN_UNITS = 30
"""Of fewer units than this the share counts as if there were so many."""


class ScreeningOdds:
    """What the defense said of units, asked by their own question and by those of others.

    Attributes:
        own: Log-odds by each unit's own question, nan where that was not asked, shape (n,).
        times: How often each was found by the question of another, shape (n,).
    """

    def __init__(self, count: int) -> None:
        self.own = np.full(count, np.nan)
        self._sum, self.times = np.zeros(count), np.zeros(count)

    def add(self, units: Sequence[int], probabilities: Sequence[float]) -> None:
        """Add one screening: the first unit is the one that the question was made from. An empty one says nothing."""
        if not len(probabilities):
            return
        odds = _odds(np.array(probabilities))
        self.own[units[0]] = odds[0]
        rest = np.array(units[1:], np.intp)
        self._sum[rest] += odds[1:]
        self.times[rest] += 1

    @property
    def others(self) -> Matrix:
        """The mean of what was said of each by the questions of others.

        Half a question counts as having found it innocent, so that a unit that few questions found is not condemned by
        its own alone.
        """
        return np.asarray((self._sum + UNASKED * np.minimum(self.own, UNASKED_ODDS)) / (self.times + UNASKED))


def signs(
    units: Sequence[Unit],
    probes: Sequence[Probe],
    near: Positions,
    cosine: NDArray[Any],
    screening_odds: ScreeningOdds,
    reference: NDArray[np.bool_],
) -> Matrix:
    """All evidence on the units by `COLUMNS`, shape (n, columns); O(n) time and memory.

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
    # A few words are built as they must be, so what their form says counts by how many there are.
    measured = np.array([min(1.0, len(unit.text.split()) / MIN_STYLE_TOKENS) for unit in units])
    own, style = (np.where(odds > 0, odds * measured, odds) for odds in (own, style))
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
        "details": np.array([details(unit.body) for unit in units]),
    }
    return np.column_stack([columns[name] for name in COLUMNS])


_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[.!?\u3002\uff01\uff1f\n]")
_ENDS = frozenset(".!?\u3002\uff01\uff1f\n")

MAX_CHARACTERS = 2_000
"""Characters of a text that are looked at, about as many as a unit has."""

USUAL_DETAILS = log1p(9)
"""Of an ordinary passage."""


def details(text: str) -> float:
    """The logarithm of 1 and the different names and numbers of a text; a sentence's first word is no name. O(n) time.

    Args:
        text: Canonical.
    """
    found, begins = set[str](), True
    for word in _WORD.findall(text[:MAX_CHARACTERS]):
        if word in _ENDS:
            begins = True
            continue
        if word[0].isdigit() or (word[0].isupper() and not begins):
            found.add(word)
        begins = False
    return log1p(len(found))


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
    "own": 0.63, "others": 0.0, "mates": 0.90, "echo": 6.0, "style": 0.63, "common": -2.0, "details": -1.2,
    "base": -2.0,
}  # fmt: skip
"""Weights of what the defense said by the unit's own question and by those of others, of its copies times how alike
they are, of a question in front that is answered, of how much the whole of it is built as invented claims are, of
what the upper quarter of the collection gets by the questions of others beyond `DEFAULT_ODDS` (where all is written by
one template, suspicion means less), and of how many more names and numbers it has than is usual there."""

WEIGHED = ("own", "others", "mates", "echo", "style", "common", "details")
"""The evidence that has a weight, in this order."""

DEFAULT_ODDS = -4.0
"""Log-odds that the questions of others give to the upper quarter of a usual collection, or less."""

MIN_DETAILS, MAX_DETAILS = -0.35, 1.0
"""Names and numbers, as a logarithm, that count at most: who plants a text can put more of them in, and an honest text
that has none, such as the plot of a play, is no claim for that."""

MIN_USUAL = 30
"""Innocent units that are taken to have been seen before: a few planted ones do not say what is usual."""


def claims(rows: Matrix, reference: NDArray[np.bool_]) -> Matrix:
    """Log-odds that each unit was written to plant a claim, shape (n,).

    Args:
        rows: Of `signs`, for n units.
        reference: The units that say what is usual in the collection, shape (n,).
    """
    return np.asarray(weigh(rows, reference) @ np.array([CLAIM[name] for name in WEIGHED]) + CLAIM["base"])


def weigh(rows: Matrix, reference: NDArray[np.bool_]) -> Matrix:
    """What the weights of `CLAIM` are multiplied with, in the order of `WEIGHED`, shape (n, 7); see `claims`."""
    signs = dict(zip(COLUMNS, rows.T))
    usual = np.sort(np.concatenate([signs["others"][reference], np.full(MIN_USUAL, DEFAULT_ODDS)]))
    upper = float(usual[3 * (len(usual) - 1) // 4])
    among = np.median(np.concatenate([signs["details"][reference], np.full(MIN_USUAL, USUAL_DETAILS)]))
    columns = {
        **signs,
        "mates": signs["mates"] * np.clip(signs["third"], 0, 0.5) * 2,
        "common": np.full(len(rows), max(0.0, upper - DEFAULT_ODDS)),
        "details": np.clip(signs["details"] - among, MIN_DETAILS, MAX_DETAILS),
    }
    return np.column_stack([columns[name] for name in WEIGHED])


Strengths = dict[str, tuple[float, Imperative | None]]
"""By form, how strong a unit's strongest demand is, and which it is."""

AKIN, RELATED = 0.35, 0.15
"""The share of a demand's topic words that stand elsewhere in its text: at home there from the one on, near it from the
other."""

INJECTION_LOG_ODDS = (-3.0, -1.5)
"""Log-odds of an order that add to a demand's strength."""

MAX_SPEECH_WORDS = 2
"""Words on answers, models and users that add to it."""

MAX_IMPERATIVE_SHARE = 0.008
"""A form used by this share of the documents is no evidence. At most half of this share can be flagged for demands."""

SEEN, FEWEST = 2.0, 280
"""Demands that are taken to have been seen before, in so many documents: among few documents nothing is rare."""

SUPPORT = 0.1
"""From this probability of an order, or of a planted claim, on a strange demand is as suspicious as it is rare."""

TOO_FEW = 220
"""Beside fewer documents nothing reaches a probability of 0.5, so their demands need not be counted."""

CERTAIN = 0.8
"""The probability of an order that is believed however many documents give such ones."""

OFTEN = {"orders": 1.0, "signs": 1.0, "obliges": 0.35, "asks": 0.5, "vouches": 0.35}
"""How often what is planted for a model takes each form, the first being the measure."""

CUSTOM = 0.005
"""Of the share of documents that make demands of a form, what is added to the share of those that make them so
strongly: where a form is the custom, as in manuals, its strongest example is no wonder."""


@dataclass(frozen=True)
class Imperatives:
    """What is strange in the demands of n units.

    Attributes:
        probability: That they were planted for the model that reads them, in [0, 1), shape (n,).
        strangest: The demand that says so; None where there is none.
    """

    probability: NDArray[np.float64]
    strangest: list[Imperative | None]


def imperative_signs(
    units: Sequence[Unit], unit_strengths: Sequence[Strengths], reference: NDArray[np.bool_]
) -> Imperatives:
    """How unusual the demands of each unit are among the documents.

    Each form of demand is counted by itself, and so are the signs of an order; a unit is as strange as its rarest, and
    then those are counted that are at least so strange. So whatever the collection is made of, at most half of
    `MAX_IMPERATIVE_SHARE` of its documents get a probability of 0.5 and more.

    Args:
        units: n of them.
        unit_strengths: The `strengths` of each.
        reference: The documents that say what is usual, shape (documents,).

    Complexity: O(n log n) time, O(n) memory.
    """
    owner = np.array([unit.document for unit in units], np.intp)
    rarest, custom = np.ones(len(units)), np.zeros(len(units))
    strangest = list[Imperative | None]([None] * len(units))
    for form in sorted({form for own in unit_strengths for form in own}):
        strength = np.array([own[form][0] if form in own else -np.inf for own in unit_strengths])
        usual = (
            CUSTOM * len(np.unique(owner[reference[owner] & (strength > -np.inf)])) / max(int(reference.sum()), FEWEST)
        )
        share = (_share_above(strength, owner, reference, 1.0) + usual) / OFTEN[form]
        for i in np.flatnonzero((strength > -np.inf) & (share < rarest)).tolist():
            rarest[i], custom[i], strangest[i] = share[i], usual, unit_strengths[i][form][1]
    share = custom + _share_above(np.where(rarest < 1, -rarest, -np.inf), owner, reference, SEEN, FEWEST)
    return Imperatives(np.where(rarest < 1, np.maximum(0.0, 1 - share / MAX_IMPERATIVE_SHARE), 0.0), strangest)


def supported(strange: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The suspicion of strange demands, limited by their supporting evidence, shape of `strange`.

    The strangest demands of a collection without poison are strange too. What nothing supports is flagged, and stands
    behind what has more to be said of it.

    Args:
        strange: Probabilities of `imperative_signs`.
        others: The highest probability that another sign gives.
    """
    support = np.minimum(others / SUPPORT, 1.0)
    return np.where(strange >= 0.5, 0.5 + (strange - 0.5) * support, strange * support)


def injection_suspicion(probability: NDArray[np.float64], documents: int) -> NDArray[np.float64]:
    """How suspicious orders are by themselves, shape of `probability`.

    An uncertain one is believed where it is rare, which `imperative_signs` says; where documents are too few to say
    so, it is believed from 0.5 on.

    Args:
        probability: That a unit holds an injection (`text.prompt_injection`).
        documents: How many say what is usual.
    """
    least = CERTAIN if documents >= TOO_FEW else 0.5
    return np.where(probability >= least, probability, 0.5 * np.minimum(probability, least))


def strengths(unit: Unit, order: Injection) -> Strengths:
    """The strongest demand of each form that is not at home in its text, and under `signs` how like an order it is.

    Args:
        unit: The unit.
        order: The most order-like stretch of its text.
    """
    bounded = min(max(order.probability, 1e-6), 1 - 1e-6)
    odds = log(bounded / (1 - bounded))
    strongest: Strengths = {"signs": (odds, None)} if odds > INJECTION_LOG_ODDS[0] else {}
    before = len(unit.text) - len(unit.body)
    for demand in find_imperatives(unit.body, unit.title):
        foreign = (demand.kinship < AKIN) + (demand.kinship < RELATED)
        inside = order.start < demand.end + before and order.end > demand.start + before
        like = sum(odds > bound for bound in INJECTION_LOG_ODDS) if inside else 0
        strength = float(foreign + min(demand.speech, MAX_SPEECH_WORDS + 2 * (demand.form == VOUCHES)) + like)
        strange = demand.form == VOUCHES or foreign + min(demand.speech, 1) > (demand.form != ORDERS)
        if strange and (demand.form not in strongest or strength > strongest[demand.form][0]):
            strongest[demand.form] = strength, demand
    return strongest


def _share_above(
    strength: NDArray[np.float64],
    owner: NDArray[np.intp],
    reference: NDArray[np.bool_],
    prior: float = 0.0,
    documents: float = 0.0,
) -> NDArray[np.float64]:
    """The share of the other reference documents that hold a unit at least as strong, shape of `strength`."""
    most = np.full(len(reference), -np.inf)
    np.maximum.at(most, owner, strength)
    ranked = np.sort(most[reference])
    least = np.round(strength, 9)
    own = reference[owner] & (most[owner] >= least)
    above = len(ranked) - np.searchsorted(ranked, least - 1e-9) - own
    return np.asarray((above + prior) / np.maximum(len(ranked) - reference[owner] + documents, 1))
