import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.errors import InputError
from unpoison.evaluation.metrics import (
    Tally,
    auroc,
    detection,
    final_order,
    jam_rate,
    rank_histogram,
    ranks_of,
    rpr_context,
    rpr_injected,
    tally,
)
from unpoison.types import Passage, Query, Screening


def test_the_worked_detection_case():
    counts = Tally(poison_dropped=3, poison_kept=1, clean_dropped=1, clean_kept=5, gold_dropped=0, gold_kept=1)
    assert (counts.precision, counts.recall, counts.f1) == (0.75, 0.75, 0.75)


def test_a_tally_follows_positions():
    counts = tally(5, kept=[4, 0], poison={0, 1}, gold={3, 4})
    assert counts == Tally(1, 1, 2, 1, 1, 1)
    assert counts.poisoned
    assert counts.damaged
    assert not counts.emptied
    assert (counts.clean_retention, counts.gold_retention) == (1 / 3, 0.5)


def test_what_is_undefined_is_nan_not_zero():
    untouched = tally(3, kept=[0, 1, 2], poison=set())
    assert all(math.isnan(v) for v in (untouched.precision, untouched.recall, untouched.f1, untouched.gold_retention))
    assert untouched.clean_retention == 1.0
    assert math.isnan(tally(2, kept=[], poison={0, 1}).clean_retention)
    missed = tally(2, kept=[0, 1], poison={0})
    assert math.isnan(missed.precision)
    assert (missed.recall, missed.f1) == (0.0, 0.0)


def test_an_emptied_context_is_not_an_empty_one():
    assert tally(2, kept=[], poison={0}).emptied
    assert not tally(0, kept=[], poison=set()).emptied


@pytest.mark.parametrize(("kept", "poison", "gold"), [([3], set(), set()), ([], {-1}, set()), ([], {1}, {1})])
def test_impossible_positions_are_refused(kept, poison, gold):
    with pytest.raises(InputError, match="position"):
        tally(3, kept, poison, gold)


def test_micro_pools_and_macro_averages_what_is_defined():
    tallies = [tally(2, [1], {0}), tally(4, [0, 1], {0, 1}), tally(2, [0, 1], set())]
    micro, macro = detection(tallies), detection(tallies, "macro")
    assert (micro.precision, micro.recall, micro.f1) == (1 / 3, 1 / 3, 1 / 3)
    assert (macro.precision, macro.recall, macro.f1) == (0.5, 0.5, 0.5)
    assert math.isnan(detection([]).f1)
    assert math.isnan(detection([], "macro").f1)


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_every_passage_is_counted_once(kept, poison):
    counts = tally(10, kept, poison)
    assert counts.poison_dropped + counts.poison_kept + counts.clean_dropped + counts.clean_kept == 10
    assert counts.poison_kept + counts.clean_kept == len(kept)


def test_auroc_counts_ties_one_half():
    assert auroc([0.9, 0.8, 0.1], [True, True, False]) == 1.0
    assert auroc([0.1, 0.8, 0.9], [True, True, False]) == 0.0
    assert auroc([1, 1, 1, 1], [True, False, True, False]) == 0.5
    assert auroc([2, 1, 1, 0], [True, True, False, False]) == 0.875
    assert math.isnan(auroc([1, 2], [True, True]))


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_auroc_is_the_share_of_pairs_in_the_right_order(rows):
    positive = [v for v, poison in rows if poison]
    negative = [v for v, poison in rows if not poison]
    if positive and negative:
        pairs = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
        assert auroc([v for v, _ in rows], [p for _, p in rows]) == pytest.approx(np.mean(pairs))


def test_auroc_refuses_what_it_cannot_rank():
    with pytest.raises(InputError, match="nan"):
        auroc([1, math.nan], [True, False])
    with pytest.raises(InputError, match="shape"):
        auroc([1, 2], [True])


def test_the_two_real_poisoned_rates():
    assert rpr_injected(retrieved=2, injected=2) == 1.0
    assert rpr_context(in_context=2, k=5) == 0.4
    assert rpr_context(in_context=100, k=5, questions=100) == 0.2
    assert math.isnan(rpr_injected(0, 0))


def test_ranks_after_reranking_put_the_dropped_behind_the_kept():
    passages = [Passage(text) for text in "abcd"]
    screening = Screening.decided(
        "x", Query("q"), passages, kept=[2, 0], scores=[0.2, 0.1, 0.9, 0.15], reasons=[""] * 4
    )
    assert final_order(screening) == (2, 0, 3, 1)
    assert ranks_of(final_order(screening), {1, 2}) == [1, 4]
    assert rank_histogram([1, 4, 4], 4).tolist() == [1, 0, 0, 2]
    assert rank_histogram([], 2).tolist() == [0, 0]
    with pytest.raises(InputError, match="1-based"):
        rank_histogram([0], 4)


def test_jamming_counts_only_what_was_answered_before():
    clean = [True, True, True, False]
    answers = [True, True, False, False]
    replies = ["Paris", "I don't know, Paris?", "No comment", "No comment"]
    assert jam_rate(clean, answers, replies) == 2 / 3
    assert math.isnan(jam_rate([False], [True], ["Paris"]))
