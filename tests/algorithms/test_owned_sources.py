"""How many sources may be owned: worked examples, and a search for counterexamples."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.algorithms.owned_sources import outvotes, withstands


def test_three_against_nobody_withstand_one_owned_supporter():
    lead = {"a": 1.0, "b": 1.0, "c": 1.0}
    trust = dict.fromkeys(lead, 1.0)
    assert withstands(lead, {}, trust, share=1.0, most=3) == 1  # of 3 : 0 one taken leaves 2 : 1, two 1 : 2


def test_a_tie_withstands_nothing():
    assert withstands({"a": 1.0}, {"b": 1.0}, {"a": 1.0}, share=1.0, most=2) == 0


def test_a_share_asks_for_more_than_the_lead():
    lead, trust = dict.fromkeys("abcde", 1.0), dict.fromkeys("abcde", 1.0)
    assert withstands(lead, {}, trust, share=1.0, most=5) == 2
    assert withstands(lead, {}, trust, share=2 / 3, most=5) == 1  # 5 * 2/3 = 3.33; two supporters cost 1.67 each


def test_a_source_that_was_not_retrieved_adds_as_much_as_any_may():
    lead, trust = {"a": 0.2, "b": 0.2, "c": 0.2}, dict.fromkeys("abc", 0.2)
    assert withstands(lead, {}, trust, share=1.0, most=3) == 0  # .6 against one that weighs 1


def test_no_more_than_there_are():
    lead = dict.fromkeys("abcdefghij", 1.0)
    assert withstands(lead, {}, lead, share=1.0, most=2) == 2


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


def test_six_against_one_withstand_two_as_a_plurality_does():
    votes = {"w": dict.fromkeys("abcdef", 1.0), "r": {"g": 1.0}}
    assert outvotes(votes, "w", dict.fromkeys("abcdefg", 1.0)) == 2
    assert outvotes(votes, "w", dict.fromkeys("abcdefg", 1.0), least=5) == 1


def test_rivals_that_differ_do_not_add_up():
    votes = {"w": dict.fromkeys("abcd", 1.0), **{name: {name: 1.0} for name in "xyz"}}
    assert outvotes(votes, "w", dict.fromkeys("abcdxyz", 1.0)) == 1


def test_who_votes_for_both_already_can_only_take_away():
    votes = {"w": dict.fromkeys("abc", 1.0), "r": {"a": 1.0}}
    assert outvotes(votes, "w", dict.fromkeys("abc", 1.0)) == 0  # b goes over: 2 to 2
    assert outvotes({"w": dict.fromkeys("abcd", 1.0), "r": {"a": 1.0}}, "w", dict.fromkeys("abcd", 1.0)) == 1


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
