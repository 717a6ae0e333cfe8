"""Counting votes: the theorems against every attack on small counts."""

from __future__ import annotations

from itertools import combinations, product

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
