"""Demands that are strange in their collection: few texts around make any, and nothing else in their text is akin.

`text.prompt_injection` knows how injections are worded. One can be put in other words, or demand something harmless
("Explain the theory of relativity."), but in a collection of articles it is still a sentence that tells its reader to
do something, about things that the article does not speak of. How rare that is can be counted in a collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.units import Unit
from unpoison.text.imperatives import ORDERS, VOUCHES, Imperative, find_imperatives
from unpoison.text.prompt_injection import Injection

__all__ = ["TOO_FEW", "Imperatives", "Strengths", "imperative_signs", "injection_suspicion", "strengths"]

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
"""What so many of the documents do says nothing. Half of it is the most that can be flagged for their demands."""

SEEN, FEWEST = 2.0, 280
"""Demands that are taken to have been seen before, in so many documents: among few documents nothing is rare."""

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
