import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.errors import InputError
from unpoison_lab.evaluation.runs import CellTally, auroc, tally


def test_a_tally_follows_positions():
    counts = tally(5, kept=[4, 0], poison={0, 1}, gold={3, 4})
    assert counts == CellTally(1, 1, 2, 1, 1, 1)
    assert counts.poisoned
    assert counts.damaged
    assert not counts.emptied


@pytest.mark.parametrize(("kept", "poison", "gold"), [([3], set(), set()), ([], {-1}, set()), ([], {1}, {1})])
def test_impossible_positions_are_refused(kept, poison, gold):
    with pytest.raises(InputError, match="position"):
        tally(3, kept, poison, gold)


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_every_passage_is_counted_once(kept, poison):
    counts = tally(10, kept, poison)
    assert counts.poison_dropped + counts.poison_kept + counts.clean_dropped + counts.clean_kept == 10
    assert counts.poison_kept + counts.clean_kept == len(kept)


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
