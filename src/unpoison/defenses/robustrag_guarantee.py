"""What RobustRAG's keyword aggregation is proved to withstand, for the passages at hand.

`RobustRag.certify` is the paper's certificate: of passages that are all benign the last m are replaced. Here nobody
knows which passages are planted, so any m of them may be, and may be gone, replaced, or more than there were.

**Theorem.** n answers are informative and keyword w has c(w) votes; theta(n) = min(beta, alpha n). m changed passages
take r <= m informative answers away and add a <= m. If for all such r and a every keyword with c(w) - min(r, c(w)) <
theta(n - r + a) has c(w) + a < theta(n - r + a), also one that nobody states yet (c = 0), and n - m >= least, then the
final prompt is the same, and so is the answer. Where some keywords are neither sure to stay nor sure to stay out, the
answer is the same if it is the same for every set of them beside the sure ones.

**Proof.** Each answer is a function of its passage alone (`defenses.isolation`), an answer votes once for a keyword,
so c'(w) lies between c(w) - min(r, c(w)) and c(w) + a, and the threshold is theta(n - r + a). The list of keywords is
thus the sure ones and some of the doubtful; the prompt is a function of that set, and equal prompts get equal replies.
It is not more than this because votes have no weights (`gamma` = 1) and no order.

**With sources** read "source" for "passage" and "source that answers" for "informative answer": a source votes once for
a keyword, whatever number of its passages state it. Sources that were never seen before have no vote as long as one
that counts answers, and as n - m >= least >= 1, one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, combinations, product
from typing import NamedTuple

__all__ = ["Doubt", "Rule", "doubts", "sets"]

DECIMALS = 12
"""Votes and threshold are compared after rounding: noise of the arithmetic must not decide."""


class Rule(NamedTuple):
    """When a keyword is in: with at least min(`beta`, `alpha` n) votes of n answers, which must be `least` or more."""

    alpha: float
    beta: float
    least: int

    def is_reached(self, votes: float, answers: int) -> bool:
        return round(votes - min(self.beta, self.alpha * answers), DECIMALS) >= 0


class Doubt(NamedTuple):
    """What m changes leave open: the keywords that stay, and those that may be in or out."""

    sure: frozenset[str]
    open: tuple[str, ...]


def doubts(votes: Mapping[str, float], answers: int, m: int, rule: Rule) -> Doubt | None:
    """What m changes leave open; None where a keyword that nobody states yet may come in, or too few answers be left.

    Args:
        votes: Of each keyword that can be in.
        answers: How many are informative.
        m: Changed passages, 1 or more.
        rule: The options.

    Complexity: O(m^2 v) for v distinct numbers of votes.
    """
    if answers - m < rule.least:
        return None
    moves = [(r, a) for r, a in product(range(min(m, answers) + 1), range(m + 1))]
    stays = {
        count: all(rule.is_reached(count - min(r, count), answers - r + a) for r, a in moves)
        for count in {*votes.values()}
    }
    comes = {
        count: any(rule.is_reached(count + a, answers - r + a) for r, a in moves) for count in {*votes.values(), 0.0}
    }
    if comes[0.0]:
        return None
    sure = frozenset(word for word, count in votes.items() if stays[count])
    return Doubt(sure, tuple(sorted(word for word, count in votes.items() if comes[count] and word not in sure)))


def sets(doubt: Doubt, ordered: Callable[[frozenset[str]], list[str]]) -> Iterator[list[str]]:
    """Every list of keywords that the changes can lead to, and perhaps some that they cannot."""
    choices = chain.from_iterable(combinations(doubt.open, size) for size in range(len(doubt.open) + 1))
    return (ordered(doubt.sure | frozenset(chosen)) for chosen in choices)
