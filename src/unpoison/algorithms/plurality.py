"""Counting votes, and how many voters an outcome withstands: arithmetic on counts, no texts.

A *change* takes a vote away, adds one, or does both. Whoever changes m of the voters can take at most m votes from any
class and give at most m to any class, known or new.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple, TypeVar

__all__ = ["VoteResult", "plurality", "support_vote"]

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
