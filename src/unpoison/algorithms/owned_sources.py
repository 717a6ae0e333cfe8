"""How many sources an attacker may own without changing which claim leads: arithmetic on weights, no texts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

__all__ = ["outvotes", "withstands"]

K = TypeVar("K", bound=Hashable)

HEAVIEST = 1.0
"""The most that any source can weigh."""

ROUNDING = 1e-9
"""What sums of floating-point weights may be off by."""


def withstands(
    lead: Mapping[str, float], others: Mapping[str, float], trust: Mapping[str, float], share: float, most: int
) -> int:
    """The largest m such that the leading claim still leads whatever any m sources say.

    The leading claim is an atom: all answers of one form (`text.answer_forms`). It leads, and nobody disputes it, as
    long as `share` times its weight is more than everything else that sources say together.

    Theorem. Let W be the sum of `lead`, O that of `others`. Whoever owns a supporter o may take its `lead[o]` away, and
    add at most `trust[o]` to the rest. Whoever owns another source, retrieved or not, adds at most `HEAVIEST`, and
    takes nothing. So with m sources, a of them supporters, share * W - O falls by at most the sum of
    share * lead[o] + trust[o] over the a supporters, plus (m - a) * HEAVIEST. If share * W - O is more than the largest
    such sum, the atom keeps more weight than all else together: it is heavier than every other atom, so grouping begins
    with it, its group is the heaviest, and nothing outside reaches `share` of it. Sources may add, change and
    withdraw as many passages as they like, for a source weighs once in each claim, by its surest passage.

    Args:
        lead: What each source adds to the leading atom, 0 or more.
        others: For each source the most that it adds to anything else.
        trust: The most that each supporter can add to a claim, in [0, 1].
        share: In (0, 1]: the part of the leading weight from which on a rival disputes it.
        most: The bound on the result: how many sources there are.

    Returns:
        0 where one source may change the outcome; exact for the bound above, which is not exact for the rule.

    Complexity: O(n log n) for n sources.
    """
    left = share * sum(lead.values()) - sum(others.values()) - ROUNDING
    losses = sorted((share * weight + trust[source] for source, weight in lead.items()), reverse=True)
    return _affordable(left, losses, most)


def outvotes(votes: Mapping[K, Mapping[str, float]], winner: K, most: Mapping[str, float], least: int = 1) -> int:
    """The largest m such that the winner still weighs more than every other class, whatever any m sources say.

    A source votes once in each class in which it says anything, so that it may vote in several.

    Theorem. Let W be the winner's weight, R that of another class, 0 for one that nobody votes for yet. Whoever owns
    a source o of those that vote may take its vote for the winner away, and raise its vote for the other class to
    `most[o]`, so that W - R falls by at most its weight in the winner + `most[o]` - its weight in the other class; of
    any other source by at most `HEAVIEST`, for it has no vote to take away. If for every other class W - R is more than
    the m largest of these losses together, the winner still weighs more than every other class, known or new. It keeps
    `least` sources if m is at most their number less `least`. Sources may add, change and withdraw as many passages as
    they like, for a source votes once in each class. The bound is exact where there are other sources that weigh
    `HEAVIEST`.

    Args:
        votes: For each class the weight of each source that votes for it, above 0 and up to `HEAVIEST`.
        winner: The class that weighs most, by itself.
        most: The most that each source can weigh in a class, in [0, 1].
        least: Sources that a winner needs, 1 or more.

    Returns:
        0 where one source may change the winner.

    Complexity: O(c n log n) for c classes and n sources.
    """
    lead = votes[winner]
    bound = len(lead) - least
    for rival in (*(rival for name, rival in votes.items() if name != winner), {}):
        left = sum(lead.values()) - sum(rival.values()) - ROUNDING
        losses = sorted((weight + most[o] - rival.get(o, 0.0) for o, weight in lead.items()), reverse=True)
        bound = _affordable(left, losses, bound)
    return max(0, bound)


def _affordable(left: float, losses: Iterable[float], most: int) -> int:
    """How many sources can be owned, the dearest first, before nothing is left."""
    dearest = iter(losses)
    loss = next(dearest, 0.0)
    for m in range(most):
        left -= max(loss, HEAVIEST)
        if left <= 0:
            return m
        if loss > HEAVIEST:
            loss = next(dearest, 0.0)
    return most
