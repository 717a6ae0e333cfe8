"""Features of planted units, and their weights.

The features are the score of the defense beside the unit's neighbours, a question in front of the text, and the style
of its sentences. The weights (`CLAIM`) are fitted by `benchmarks/training/train_scan.py`. Their base assumes that
planted documents are rare: on a clean collection fewer than one in 200 are flagged at 0.5.

Imperatives address the model that reads. `unpoison.injections` detects instructions to a model. An instruction may use
other words, or ask for something harmless ("Explain the theory of relativity."), but in an article any sentence that
tells the reader to do something is rare and unrelated to the rest of its text. Both can be measured.

A lie among honest sentences is found by the defense. In a text that was generated as a whole, even the least suspicious
sentence has the style of generated text. So the average and the least suspicious sentence of each text count, by the
style model of `guard.crafted`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import log, log1p

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard.crafted import MIN_STYLE, MIN_STYLE_TOKENS, Matrix
from unpoison.injections import Injection
from unpoison.injections.imperatives import ORDERS, VOUCHES, Imperative, find_imperatives
from unpoison.scan.collection import ScanCollection
from unpoison.scan.documents import Probe, Unit
from unpoison.scan.neighbours import stem_codes

__all__ = [
    "CLAIM", "COLUMNS", "TOO_FEW", "WEIGHED", "Imperatives", "ScreeningOdds", "claims", "imperative_signs",
    "injection_suspicion", "signs", "strengths", "supported", "weigh", "within_reach",
]  # fmt: skip

Flags = NDArray[np.bool_]

COLUMNS = ("own", "others", "mates", "third", "echo", "style", "details")
"""The features, in the order of the weights."""

SURE = 1e-3
"""Probabilities are clipped to this distance from 0 and 1."""

MATE = 0.25
"""Minimum TF-IDF cosine of units that may have the same author."""

MAX_QUESTION_SHARE = 0.1
"""The share of units that begin with a question from which such a beginning is no evidence."""


UNASKED, UNASKED_ODDS = 0.5, -1.0
"""Prior: a number of questions made from other units, and their log-odds."""

_ROW = re.compile(r"(?m)^(?:[^|\n]{0,60}\|)+[^|\n]{0,60}$")
"""A row of a table with short cells."""

MIN_UNITS = 30
"""Minimum denominator of a share of units."""


class ScreeningOdds:
    """Scores of the defense for each unit, by its own question and by those of other units.

    Attributes:
        own: Log-odds by the unit's own question, nan if that was not asked, shape (n,).
        times: Number of other questions that retrieved the unit, shape (n,).
    """

    def __init__(self, count: int) -> None:
        self.own = np.full(count, np.nan)
        self._sum, self.times = np.zeros(count), np.zeros(count)

    def add_alone(self, units: NDArray[np.intp], probabilities: Matrix) -> None:
        """Add the scores of units with nothing beside them, by their own questions."""
        self.own[units] = _odds(probabilities)

    def add(self, units: Sequence[int], probabilities: Sequence[float]) -> None:
        """Add one screening, whose first unit is the one that the question was made from; empty ones are ignored."""
        if not len(probabilities):
            return
        odds = _odds(np.array(probabilities))
        self.own[units[0]] = odds[0]
        rest = np.array(units[1:], np.intp)
        self._sum[rest] += odds[1:]
        self.times[rest] += 1

    @property
    def others(self) -> Matrix:
        """Mean log-odds by the questions of other units.

        A prior of half a question with low odds keeps a unit that few questions retrieved from being flagged by its own
        question alone.
        """
        return np.asarray((self._sum + UNASKED * np.minimum(self.own, UNASKED_ODDS)) / (self.times + UNASKED))


def signs(
    collection: ScanCollection, screening_odds: ScreeningOdds, style: Matrix, counts: Matrix, reference: Flags
) -> Matrix:
    """The features of the units by `COLUMNS`, shape (n, columns); O(n) time and memory.

    Args:
        collection: n units, with their questions and neighbours.
        screening_odds: Scores of the defense.
        style: The `invention_odds` of the units, nan if they were not computed, shape (n,).
        counts: The `details` of the units, shape (n,).
        reference: The units that define what is usual in the collection, shape (n,).
    """
    units, near, cosine = collection.units, collection.near, collection.cosine
    style = np.nan_to_num(style, nan=MIN_STYLE)
    own = np.nan_to_num(screening_odds.own, nan=-4.0)
    # A few words, and the rows of a table, have little style: the weight of the style grows with the other words.
    measured = np.array([min(1.0, len(_ROW.sub("", unit.text).split()) / MIN_STYLE_TOKENS) for unit in units])
    own, style = (np.where(odds > 0, odds * measured, odds) for odds in (own, style))
    alike = np.where((near >= 0) & (cosine >= MATE), cosine, 0.0)
    mates = (alike * own[near]).sum(axis=1) / np.maximum(alike.sum(axis=1), 1e-9)
    ranked = -np.sort(-cosine, axis=1)
    columns = {
        "own": own,
        "others": np.nan_to_num(screening_odds.others, nan=-4.0),
        "mates": np.where(alike.sum(axis=1) > 0, mates, own.mean() if len(own) else 0.0),
        "third": ranked[:, 2],
        "echo": _echo(units, collection.probes, reference),
        "style": style,
        "details": counts,
    }
    return np.column_stack([columns[name] for name in COLUMNS])


_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[.!?\u3002\uff01\uff1f\n]")
_ENDS = frozenset(".!?\u3002\uff01\uff1f\n")

MAX_CHARACTERS = 2_000
"""Characters of a text that are read, about the length of a unit."""

USUAL_DETAILS = log1p(9)
"""Names and numbers of an ordinary passage, as a logarithm."""


def details(text: str) -> float:
    """log(1 + number of different names and numbers); the first word of a sentence is no name. O(n) time.

    Args:
        text: The canonical text.
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


def _echo(units: Sequence[Unit], probes: Sequence[Probe], reference: Flags) -> Matrix:
    """Overlap of a leading question with the text after it, times how unusual leading questions are here."""
    asking = [i for i, probe in enumerate(probes) if probe.asks and not _ROW.match(units[i].body)]
    usual = sum(bool(reference[i]) for i in asking)
    unusual = max(0.0, 1 - usual / max(int(reference.sum()), MIN_UNITS) / MAX_QUESTION_SHARE)
    echo = np.zeros(len(units))
    for i in asking:
        question_stems = set(stem_codes(units[i].body[slice(*probes[i].lead)]))
        behind = set(stem_codes(units[i].body[probes[i].lead[1] :][:400]))
        echo[i] = unusual * len(question_stems & behind) / max(len(question_stems), 1)
    return echo


CLAIM = {
    "own": 0.63, "others": 0.0, "mates": 0.90, "echo": 6.0, "style": 0.63, "common": -2.0, "details": -1.2,
    "base": -2.0,
}  # fmt: skip
"""Weights of the defense's log-odds by the unit's own question and by other questions, of its copies' log-odds times
their similarity, of a leading question that is answered, of the style, of the upper quartile of the collection's odds
beyond `DEFAULT_ODDS` (if one template wrote all, suspicion means less), and of names and numbers beyond the usual."""

WEIGHED = ("own", "others", "mates", "echo", "style", "common", "details")
"""The features with a weight, in this order."""

_WEIGHTS = np.array([CLAIM[name] for name in WEIGHED])

REACH = -4.0
"""Log-odds of a claim, with nothing beside it, from which neighbours are looked at. Neighbours raised ordinary passages
by at most 1.6, and no poison of NQ, HotpotQA and MS MARCO that is flagged was below -2."""

DEFAULT_ODDS = -4.0
"""Upper quartile of the log-odds by other questions in a usual collection."""

MIN_DETAILS, MAX_DETAILS = -0.35, 1.0
"""Bounds of names and numbers beyond the usual, as a logarithm: an attacker can add more, and an honest text may have
none, such as the plot of a play."""

MIN_USUAL = 30
"""Prior number of usual units, so that a few planted ones do not define what is usual."""


def claims(rows: Matrix, reference: Flags) -> Matrix:
    """Log-odds that each unit was written to plant a claim, shape (n,).

    Args:
        rows: The `signs` of n units.
        reference: The units that define what is usual in the collection, shape (n,).
    """
    return np.asarray(weigh(rows, reference) @ _WEIGHTS + CLAIM["base"])


def within_reach(rows: Matrix, reference: Flags) -> Flags:
    """The units whose claims may count beside their neighbours, by their scores with nothing beside them.

    Args:
        rows: The `signs` of n units.
        reference: As for `claims`.
    """
    weighed = weigh(rows, reference)
    weighed[:, WEIGHED.index("common")] = 0.0  # it is known only once units were screened for other questions
    return np.asarray(weighed @ _WEIGHTS + CLAIM["base"] > REACH)


def weigh(rows: Matrix, reference: Flags) -> Matrix:
    """The features that the weights of `CLAIM` apply to, in the order of `WEIGHED`, shape (n, 7); see `claims`."""
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
"""For each form, the strength of a unit's strongest imperative, and the imperative."""

AKIN, RELATED = 0.35, 0.15
"""Share of an imperative's topic words in the rest of its text: on topic from `AKIN`, related from `RELATED`."""

INJECTION_LOG_ODDS = (-3.0, -1.5)
"""Log-odds of an injection that each add one to the strength."""

MAX_SPEECH_WORDS = 2
"""Maximum number of words about answers, models and users that add to the strength."""

MAX_IMPERATIVE_SHARE = 0.008
"""A form used by this share of the documents is no evidence; at most half of this share is flagged for imperatives."""

SEEN, FEWEST = 2.0, 280
"""Prior number of imperatives, and of documents: among few documents nothing is rare."""

SUPPORT = 0.1
"""Probability of an injection or planted claim from which a strange imperative is as suspicious as it is rare."""

TOO_FEW = 220
"""With fewer documents no imperative reaches a probability of 0.5, so they are not counted."""

CERTAIN = 0.8
"""Probability from which an injection counts, however common such texts are in the collection."""

OFTEN = {"orders": 1.0, "signs": 1.0, "obliges": 0.35, "asks": 0.5, "vouches": 0.35}
"""Relative frequency of each form among planted imperatives."""

CUSTOM = 0.005
"""Part of the share of documents with a form that is added to the share of equally strong ones: if a form is common, as
in manuals, its strongest example is no surprise."""


@dataclass(frozen=True)
class Imperatives:
    """Unusual imperatives of n units.

    Attributes:
        probability: Probability that they were planted for a model, in [0, 1), shape (n,).
        strangest: The most unusual imperative; None without one.
    """

    probability: NDArray[np.float64]
    strangest: list[Imperative | None]


def imperative_signs(owner: NDArray[np.int32], unit_strengths: Sequence[Strengths], reference: Flags) -> Imperatives:
    """How unusual the imperatives of each unit are among the documents.

    Each form is counted separately, and so are signs of an injection. The rarest form of a unit decides, and units are
    then ranked by it, so in any collection at most half of `MAX_IMPERATIVE_SHARE` of the documents get a probability of
    0.5 or more.

    Args:
        owner: The document of each of n units.
        unit_strengths: The `strengths` of each unit.
        reference: The documents that define what is usual, shape (documents,).

    Complexity: O(n log n) time, O(n) memory.
    """
    rarest, custom = np.ones(len(owner)), np.zeros(len(owner))
    strangest = list[Imperative | None]([None] * len(owner))
    for form in sorted({form for own in unit_strengths for form in own}):
        strength = np.array([own[form][0] if form in own else -np.inf for own in unit_strengths])
        holders = len(np.unique(owner[reference[owner] & (strength > -np.inf)]))
        usual = CUSTOM * holders / max(int(reference.sum()), FEWEST)
        share = (_share_above(strength, owner, reference, 1.0) + usual) / OFTEN[form]
        for i in np.flatnonzero((strength > -np.inf) & (share < rarest)).tolist():
            rarest[i], custom[i], strangest[i] = share[i], usual, unit_strengths[i][form][1]
    share = custom + _share_above(np.where(rarest < 1, -rarest, -np.inf), owner, reference, SEEN, FEWEST)
    return Imperatives(np.where(rarest < 1, np.maximum(0.0, 1 - share / MAX_IMPERATIVE_SHARE), 0.0), strangest)


def supported(strange: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The suspicion of unusual imperatives, limited by supporting evidence, shape of `strange`.

    A collection without poison has unusual imperatives too. Without support they are flagged, and rank below documents
    with more evidence.

    Args:
        strange: Probabilities of `imperative_signs`.
        others: The highest probability of the other features.
    """
    support = np.minimum(others / SUPPORT, 1.0)
    return np.where(strange >= 0.5, 0.5 + (strange - 0.5) * support, strange * support)


def injection_suspicion(probability: NDArray[np.float64], documents: int) -> NDArray[np.float64]:
    """The suspicion of injections by themselves, shape of `probability`.

    An uncertain injection counts if it is rare, which `imperative_signs` decides; with too few documents for that, it
    counts from 0.5.

    Args:
        probability: Probability that a unit contains an injection (`injections.detect`).
        documents: Number of documents that define what is usual.
    """
    least = CERTAIN if documents >= TOO_FEW else 0.5
    return np.where(probability >= least, probability, 0.5 * np.minimum(probability, least))


def strengths(unit: Unit, injection: Injection) -> Strengths:
    """The strongest off-topic imperative of each form and, under `signs`, the log-odds of an injection.

    Args:
        unit: The unit.
        injection: The likeliest one in its text.
    """
    bounded = min(max(injection.probability, 1e-6), 1 - 1e-6)
    odds = log(bounded / (1 - bounded))
    strongest: Strengths = {"signs": (odds, None)} if odds > INJECTION_LOG_ODDS[0] else {}
    offset = len(unit.text) - len(unit.body)
    for one in find_imperatives(unit.body, unit.title):
        foreign = (one.kinship < AKIN) + (one.kinship < RELATED)
        inside = injection.start < one.end + offset and injection.end > one.start + offset
        like = sum(odds > bound for bound in INJECTION_LOG_ODDS) if inside else 0
        strength = float(foreign + min(one.speech, MAX_SPEECH_WORDS + 2 * (one.form == VOUCHES)) + like)
        strange = one.form == VOUCHES or foreign + min(one.speech, 1) > (one.form != ORDERS)
        if strange and (one.form not in strongest or strength > strongest[one.form][0]):
            strongest[one.form] = strength, one
    return strongest


def _share_above(
    strength: Matrix, owner: NDArray[np.int32], reference: Flags, prior: float = 0, documents: float = 0
) -> NDArray[np.float64]:
    """The share of the other reference documents that hold a unit at least as strong, shape of `strength`."""
    most = np.full(len(reference), -np.inf)
    np.maximum.at(most, owner, strength)
    ranked = np.sort(most[reference])
    least = np.round(strength, 9)
    own = reference[owner] & (most[owner] >= least)
    above = len(ranked) - np.searchsorted(ranked, least - 1e-9) - own
    return np.asarray((above + prior) / np.maximum(len(ranked) - reference[owner] + documents, 1))
