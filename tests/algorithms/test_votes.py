"""Counting votes: the theorems against every attack on small counts."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from unpoison.algorithms.votes import outvotes, withstands

weight = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])


@settings(max_examples=150)
@given(
    lead=st.lists(st.tuples(weight, weight), min_size=1, max_size=5),
    others=st.lists(weight, max_size=3),
    share=st.sampled_from([1.0, 2 / 3, 0.5]),
)
@example(lead=[(1.0, 1.0)] + [(0.5, 0.5)] * 4, others=[], share=1.0)  # the dearest is lost first
@example(lead=[(0.25, 0.25)] * 5, others=[], share=1.0)  # a new source weighs 1, more than any supporter loses
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
@example(table=[(0.25, True, False, False)] * 5, least=1)
@example(table=[(1.0, True, False, False)] + [(0.5, True, False, False)] * 4, least=1)  # the dearest is lost first
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


@pytest.mark.parametrize(("voters", "rivals"), list(product(range(1, 9), range(4))))
def test_of_equal_votes_so_many_are_lost_that_twice_as_many_are_fewer_than_the_lead(voters: int, rivals: int):
    """For n votes of weight 1 against at most r it is the largest m with 2 m < n - r."""
    votes = {"w": {f"s{i}": 1.0 for i in range(voters)}, "r": {f"r{i}": 1.0 for i in range(rivals)}}
    most = {name: 1.0 for row in votes.values() for name in row}
    if voters > rivals:
        assert outvotes(votes, "w", most) == max(m for m in range(voters) if 2 * m < voters - rivals)


@pytest.mark.parametrize(("least", "expected"), [(1, 2), (3, 2), (4, 1), (5, 0), (6, 0)])
def test_a_winner_keeps_the_least_number_of_voters(least: int, expected: int):
    votes = {"w": {f"s{i}": 1.0 for i in range(5)}}
    assert outvotes(votes, "w", dict.fromkeys(votes["w"], 1.0), least) == expected


def test_a_voter_who_votes_for_both_has_less_to_give_to_the_rival():
    both = {"w": {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 1.0}, "r": {"a": 1.0, "b": 1.0}}
    others = {"w": both["w"], "r": {"x": 1.0, "y": 1.0}}
    most = dict.fromkeys("abcdexy", 1.0)
    assert outvotes(both, "w", most) == outvotes(others, "w", most) == 1
    assert outvotes({"w": {"a": 0.5, "b": 0.5}, "r": {}}, "w", {"a": 0.0, "b": 0.0}) == 0, "a new voter weighs 1"


@pytest.mark.parametrize(("share", "expected"), [(1.0, 3), (0.5, 1), (0.25, 0)])
def test_the_lead_withstands_as_many_as_leave_its_share_above_the_others(share: float, expected: int):
    """Of eight sources of weight 1, each that changes sides takes share and gives 1; one stands against them."""
    lead = {f"s{i}": 1.0 for i in range(8)}
    exact = max(m for m in range(9) if not m or share * 8 - 1 > m * (share + 1))
    assert withstands(lead, {"o": 1.0}, dict.fromkeys(lead, 1.0), share, 9) == exact == expected
    assert withstands(lead, {}, dict.fromkeys(lead, 1.0), 1.0, 2) == 2, "never more than there are"
    assert withstands({}, {}, {}, 1.0, 3) == 0
