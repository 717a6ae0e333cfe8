"""Counting votes: the theorems against every attack on small counts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import pytest

from unpoison.algorithms.plurality import plurality, support_vote

NEW = ("x", "y")
"""Classes that nobody votes for before an attack."""


def attacks(counts: dict[str, int], m: int) -> Iterator[dict[str, int]]:
    """Everything that m changes can make of the counts: up to m votes fewer, up to m more, for known or new classes."""
    voters = [name for name, count in counts.items() for _ in range(count)]
    taken = {c for r in range(min(m, len(voters)) + 1) for c in combinations_with_replacement(sorted(counts), r)}
    added = [c for a in range(m + 1) for c in combinations_with_replacement([*sorted(counts), *NEW], a)]
    for less, more in product(taken, added):
        changed = dict(counts)
        for name in less:
            changed[name] -= 1
        if min(changed.values(), default=0) < 0:
            continue
        for name in more:
            changed[name] = changed.get(name, 0) + 1
        yield changed


@pytest.mark.parametrize("least", [1, 2, 4])
def test_the_margin_of_a_plurality_is_exact(least: int) -> None:
    """No attack within the margin succeeds, and one beyond it does, on all counts of three classes up to 5 votes."""
    for votes in product(range(6), repeat=3):
        counts = dict(zip("abc", votes, strict=True))
        outcome = plurality(counts, least)
        for m in range(1, min(outcome.margin, 2) + 1):
            assert all(plurality(changed, least).winner == outcome.winner for changed in attacks(counts, m)), counts
        if outcome.margin < 2:
            beyond = attacks(counts, outcome.margin + 1)
            assert any(plurality(changed, least).winner != outcome.winner for changed in beyond), counts


def test_the_margin_by_hand() -> None:
    """n - r of 1 and 2 withstand nothing, of 3 and 4 one change; and `least` votes must be left."""
    assert [plurality({"a": n, "b": 2}).margin for n in (3, 4, 5, 6, 7)] == [0, 0, 1, 1, 2]
    assert [plurality({"a": 6, "b": 1}, least).margin for least in (1, 4, 5, 6)] == [2, 2, 1, 0]
    assert plurality({"a": 6, "b": 1}, 7).winner is None
    assert plurality({"a": 3, "b": 1}) == ("a", 3, 1, 0)


def test_what_seconded_answers_withstand_by_hand() -> None:
    """own >= seconds + m; support - m > rival's support + m, for rivals with at least seconds - m votes."""

    def apart(one: str, other: str) -> bool:
        return False

    assert [support_vote({"a": n}, apart, 3, str)[3] for n in (3, 4, 5, 6, 7)] == [0, 1, 2, 2, 3]
    assert support_vote({"a": 6, "b": 3}, apart, 3, str) == ("a", 6, 3, 1)
    assert support_vote({"a": 6, "b": 4}, apart, 3, str) == ("a", 6, 4, 0)
    assert support_vote({"a": 2, "b": 2}, apart, 3, str) == (None, 0, 0, 0)
    assert support_vote({"a": 3, "b": 3}, apart, 3, str) == (None, 3, 3, 0)


def test_ties_and_nothing() -> None:
    assert plurality({}).winner is None
    assert plurality({"a": 2, "b": 2}) == (None, 2, 2, 0)
    assert plurality({"a": 7, "b": 2, "c": 1}) == ("a", 7, 2, 2)
    assert plurality({"a": 1}, least=2).winner is None


def test_answers_that_support_each_other_withstand_what_is_proved() -> None:
    """Random relations, also of classes that only the attacker brings, and none of them transitive."""
    rng = random.Random(1)
    proved = 0
    for _ in range(400):
        names = "abcd"
        related = {frozenset(p) for p in product([*names, *NEW], repeat=2) if p[0] < p[1] and rng.random() < 0.4}
        counts = {name: rng.choice((0, 1, 1, 2, 3, 6, 9)) for name in names}
        same = lambda a, b, related=related: frozenset((a, b)) in related  # noqa: E731
        seconds = rng.choice((1, 2, 3))
        winner, _, _, margin = support_vote(counts, same, seconds, str)
        for m in range(1, min(margin, 2) + 1):
            proved += 1
            for changed in attacks(counts, m):
                other = support_vote({n: c for n, c in changed.items() if c}, same, seconds, str)[0]
                assert other is not None
                assert other == winner or same(other, winner), (counts, changed, related)
    assert proved > 50, "the theorem must say something"


def test_support_counts_what_says_the_same() -> None:
    near = {frozenset(("biden", "joe biden"))}
    counts = {"joe biden": 5, "biden": 2, "trump": 4}
    assert support_vote(counts, lambda a, b: frozenset((a, b)) in near, 2, str) == ("joe biden", 7, 4, 1)


def test_leaders_without_a_common_meaning_do_not_win() -> None:
    assert support_vote({"a": 3, "b": 3}, lambda a, b: False, 2, str)[0] is None
    assert support_vote({"a": 1, "b": 1}, lambda a, b: False, 2, str) == (None, 0, 0, 0)
