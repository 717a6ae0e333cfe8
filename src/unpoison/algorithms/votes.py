"""Vote margins: how many voters or sources an attacker must control to change an outcome. Arithmetic on weights only.

A voter, or a source with several passages, has one vote in each class. An attacker who controls m of them may withdraw,
change and add votes of these m, in any class, known or new.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

__all__ = ["outvotes", "withstands"]

K = TypeVar("K", bound=Hashable)

HEAVIEST = 1.0
"""The maximum weight of a vote."""

ROUNDING = 1e-9
"""The maximum error of a sum of weights."""


def withstands(
    lead: Mapping[str, float], others: Mapping[str, float], trust: Mapping[str, float], share: float, most: int
) -> int:
    """The largest m such that the leading claim still leads, whatever any m sources say.

    The leading claim is one class of answers of equal form (`text.answer_forms`). It leads without a dispute as long as
    `share` times its weight exceeds the total weight of all other claims.

    Theorem. Let W be the sum of `lead`, O that of `others`. An attacker who controls a supporter o can remove its
    `lead[o]`, and add at most `trust[o]` to other claims. One who controls another source, retrieved or not, adds at
    most `HEAVIEST` and removes nothing. So with m sources, a of them supporters, share * W - O falls by at most the sum
    of share * lead[o] + trust[o] over the a supporters, plus (m - a) * HEAVIEST. If share * W - O exceeds the largest
    such sum, the leading class outweighs all others together: grouping starts with it, its group is the heaviest, and
    no other claim reaches `share` of it. The number of passages of a source does not matter, because a source weighs
    once in each claim, by its surest passage.

    Args:
        lead: The weight that each source adds to the leading class, 0 or more.
        others: The maximum weight that each source adds to any other claim.
        trust: The maximum weight that each supporter can add to a claim, in [0, 1].
        share: In (0, 1]: the share of the leading weight at which a rival disputes it.
        most: An upper bound of the result: the number of sources.

    Returns:
        0 if one source can change the outcome. Exact for the bound above, which is not tight for the rule.

    Complexity: O(n log n) for n sources.
    """
    left = share * sum(lead.values()) - sum(others.values()) - ROUNDING
    losses = sorted((share * weight + trust[source] for source, weight in lead.items()), reverse=True)
    return _affordable(left, losses, most)


def outvotes(votes: Mapping[K, Mapping[str, float]], winner: K, most: Mapping[str, float], least: int = 1) -> int:
    """The largest m such that the winner still outweighs every other class, whatever any m voters say.

    Theorem. Let W be the winner's weight, R that of another class, 0 for a new one. An attacker who controls a voter o
    of the winner can withdraw its vote, and raise its vote for the other class to `most[o]`; W - R falls by at most its
    weight in the winner + `most[o]` - its weight in the other class. With any other voter it falls by at most
    `HEAVIEST`. If for every other class W - R exceeds the sum of the m largest losses, the winner still outweighs every
    other class, known or new. It keeps `least` voters if m is at most their number minus `least`. The bound is exact if
    there are other voters of weight `HEAVIEST`. For n votes of weight 1 against at most r it is the largest m with
    2 m < n - r.

    Args:
        votes: For each class the weight of each of its voters, above 0 and up to `HEAVIEST`.
        winner: The single class of the highest weight.
        most: The maximum weight of each voter in a class, in [0, 1].
        least: The minimum number of voters of a winner, 1 or more.

    Returns:
        0 if one voter can change the winner.

    Complexity: O(c n log n) for c classes and n voters.
    """
    lead = votes[winner]
    bound = len(lead) - least
    for rival in (*(rival for name, rival in votes.items() if name != winner), {}):
        left = sum(lead.values()) - sum(rival.values()) - ROUNDING
        losses = sorted((weight + most[o] - rival.get(o, 0.0) for o, weight in lead.items()), reverse=True)
        bound = _affordable(left, losses, bound)
    return max(0, bound)


def _affordable(left: float, losses: Iterable[float], most: int) -> int:
    """The number of voters that can be lost, the largest losses first, before nothing is left."""
    dearest = iter(losses)
    loss = next(dearest, 0.0)
    for m in range(most):
        left -= max(loss, HEAVIEST)
        if left <= 0:
            return m
        if loss > HEAVIEST:
            loss = next(dearest, 0.0)
    return most
