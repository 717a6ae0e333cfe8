"""Counting votes: the theorems against every attack on small counts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.algorithms.votes import outvotes, plurality, support_vote, withstands

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


def test_what_seconded_answers_withstand_by_hand() -> None:
    """own >= seconds + m; support - m > rival's support + m, for rivals with at least seconds - m votes."""

    def apart(one: str, other: str) -> bool:
        return False

    assert [support_vote({"a": n}, apart, 3, str)[3] for n in (3, 4, 5, 6, 7)] == [0, 1, 2, 2, 3]
    assert support_vote({"a": 6, "b": 3}, apart, 3, str) == ("a", 6, 3, 1)
    assert support_vote({"a": 6, "b": 4}, apart, 3, str) == ("a", 6, 4, 0)
    assert support_vote({"a": 2, "b": 2}, apart, 3, str) == (None, 0, 0, 0)
    assert support_vote({"a": 3, "b": 3}, apart, 3, str) == (None, 3, 3, 0)


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


weight = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])


@settings(max_examples=150)
@given(
    lead=st.lists(st.tuples(weight, weight), min_size=1, max_size=5),
    others=st.lists(weight, max_size=3),
    share=st.sampled_from([1.0, 2 / 3, 0.5]),
)
def test_no_counterexample(lead: list[tuple[float, float]], others: list[float], share: float):
    """Whoever owns m sources, whatever they say, cannot bring any rival to the share."""
    trust = {f"s{i}": max(pair) for i, pair in enumerate(lead)}
    weights = {f"s{i}": min(pair) for i, pair in enumerate(lead)}
    rest = {f"o{i}": value for i, value in enumerate(others)}
    m = withstands(weights, rest, trust, share, most=len(lead) + len(others))
    for owned in combinations([*weights, *rest, "new", "newer"], m):
        kept = sum(value for name, value in weights.items() if name not in owned)
        against = sum(value for name, value in rest.items() if name not in owned)
        for moves in product((False, True), repeat=m):  # each owned source is silent, or says the rival's claim
            added = sum(trust.get(name, 1.0) for name, speaks in zip(owned, moves, strict=True) if speaks)
            if m:
                assert share * kept > against + added


@settings(max_examples=150)
@given(
    table=st.lists(st.tuples(weight, st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=5),
    least=st.integers(1, 2),
)
def test_no_sources_outvote_the_winner(table: list[tuple[float, bool, bool, bool]], least: int):
    """Whoever owns m sources, and lets each vote for any set of classes, cannot bring a rival level."""
    most = {f"s{i}": row[0] for i, row in enumerate(table)}
    votes = {
        name: {f"s{i}": row[0] for i, row in enumerate(table) if row[0] and row[place]}
        for place, name in enumerate("wrq", 1)
    }
    totals = {name: sum(row.values()) for name, row in votes.items()}
    if totals["w"] <= max(totals["r"], totals["q"]) or len(votes["w"]) < least:
        return
    m = outvotes(votes, "w", most, least)
    for owned in combinations([*most, "new", "newer"], m):
        own = {o: most.get(o, 1.0) for o in owned}
        after = {name: sum(v for o, v in row.items() if o not in own) for name, row in votes.items()}
        for rival in ("r", "q", "another"):
            assert not m or after["w"] > after.get(rival, 0.0) + sum(own.values())
        assert not m or len([o for o in votes["w"] if o not in own]) >= least
