"""Counting votes, and how many voters or sources an outcome withstands: arithmetic on counts and weights, no texts.

A *change* takes a vote away, adds one, or does both. Whoever changes m of the voters can take at most m votes from any
class and give at most m to any class, known or new. A *source* may own several votes; it weighs once in each class.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

__all__ = ["VoteResult", "outvotes", "plurality", "support_vote", "withstands"]

K = TypeVar("K", bound=Hashable)


class VoteResult(NamedTuple):
    """Who wins, and what the outcome withstands.

    Attributes:
        winner: The winning class, None where nobody wins.
        votes: Its votes.
        rival: The most votes of another class.
        margin: The largest m such that no m changes alter the outcome.
    """

    winner: object | None
    votes: int
    rival: int
    margin: int


def plurality(counts: Mapping[K, int], least: int = 1) -> VoteResult:
    """The class with the most votes; nobody where two share the lead, or it has fewer than `least` votes.

    Theorem. Let the winner have n votes and every other class at most r. If 2m < n - r and m <= n - least, the winner
    is the same after m changes. Proof: it has at least n - m votes, which is at least `least`; every other class,
    known or new, has at most r + m; and n - m > r + m. The bound is exact: m = ceil((n - r) / 2) changes that move
    votes from the winner to the second make them equal.

    If nobody wins, m changes make a winner only if some class can reach `least` votes and lead. The class with the
    most votes, n, is the easiest to help: with m votes more it leads if the others, above n + m - 1, can be cut by m
    votes in all. Where it cannot, the outcome withstands m changes, and any fewer.

    Args:
        counts: Votes of each class, 0 or more.
        least: Votes that a winner needs, 1 or more.

    Complexity: O(c log c) in the classes.
    """
    ranked = sorted(counts.values(), reverse=True)
    first, second = (*ranked, 0, 0)[:2]
    if first >= least and first > second:
        winner = next(name for name, count in counts.items() if count == first)
        return VoteResult(winner, first, second, min((first - second - 1) // 2, first - least))
    margin = 0
    while not _wins_with(margin + 1, ranked or [0], least):
        margin += 1
    return VoteResult(None, first, second, margin)


def _wins_with(m: int, ranked: list[int], least: int) -> bool:
    lead = ranked[0] + m
    return lead >= least and sum(max(0, count - lead + 1) for count in ranked[1:]) <= m


def support_vote(
    counts: Mapping[K, int], same: Callable[[K, K], bool], seconds: int, order: Callable[[K], str]
) -> tuple[K | None, int, int, int]:
    """The class that most votes support, where classes may say the same as others: `same` need not be transitive.

    Candidates are the classes with at least `seconds` votes of their own. A candidate's support is its votes and those
    of every class that says the same as it does. The leaders are the candidates with the most support; of these the
    one with most votes of its own wins, then the first by `order`, if some candidate says the same as all of them.
    Otherwise, and where there is no candidate, nobody wins.

    Theorem. Let the winner w have n votes of its own and support S, of N votes in all, and let V be the classes with
    at least `seconds` - m votes. If n >= `seconds` + m, if S - m > S(v) + m for every v in V that does not say the same
    as w, and if m < `seconds` or S - m > N - n + m, then after m changes the winner is w or says the same as w.

    Proof. w stays a candidate, with support S - m or more. Let v be a candidate that does not say the same as w. If v
    has votes now, it is in V, as m changes give it m votes at most; its support is S(v) + m at most, and so less than
    w's. If v has none now, it needs m >= `seconds`; of the votes that are there now those for w are not for it, so
    its support is N - n + m at most, and less than w's again. So every leader says the same as w. w is a candidate
    that says the same as all leaders, so that one of them wins.

    Args:
        counts: Votes of each class, 0 or more.
        same: Symmetric; a class says the same as itself. It may depend on the two classes only.
        seconds: 1 or more.
        order: Distinct for distinct classes.

    Returns:
        The winner or None, its support, the most support of a candidate that does not say the same, and the largest m
        that is proved.

    Complexity: O(c^2) calls of `same` for c classes, each pair several times.
    """
    support = {
        name: sum(count for other, count in counts.items() if name == other or same(name, other)) for name in counts
    }
    candidates = [name for name, count in counts.items() if count >= seconds]
    most = max((support[candidate] for candidate in candidates), default=0)
    leaders = [candidate for candidate in candidates if support[candidate] == most]
    if not any(all(candidate == leader or same(candidate, leader) for leader in leaders) for candidate in candidates):
        return None, most, most if len(leaders) > 1 else 0, 0
    winner = min(leaders, key=lambda candidate: (-counts[candidate], order(candidate)))
    others = {name: count for name, count in counts.items() if name != winner and not same(name, winner)}
    m = 0
    while _stands(m + 1, counts, support, winner, others, seconds):
        m += 1
    return winner, most, max((support[name] for name in others if name in candidates), default=0), m


def _stands(
    m: int, counts: Mapping[K, int], support: Mapping[K, int], winner: K, others: Mapping[K, int], seconds: int
) -> bool:
    """The conditions of the theorem."""
    own, left = counts[winner], support[winner] - m
    new = m < seconds or left > sum(counts.values()) - own + m
    return own >= seconds + m and new and all(left > support[v] + m for v, n in others.items() if n >= seconds - m)


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
