import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison import Vanilla
from unpoison.errors import InputError
from unpoison_lab.evaluation.runs import Cell, CellTally, Record, auroc, open_run, tally
from unpoison_lab.evaluation.scenarios import Scenario


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


@pytest.mark.parametrize(
    ("kept", "poison", "poisoned", "damaged", "emptied"),
    [
        ([0, 1], {0}, True, False, False),
        ([1], {0}, False, False, False),
        ([0], {0}, True, True, False),
        ([], {0}, False, True, True),
        ([], {0, 1}, False, False, True),
        ([0, 1], set(), False, False, False),
        ([], set(), False, True, True),
    ],
)
def test_what_is_left_of_two_passages(kept, poison, poisoned, damaged, emptied):
    counts = tally(2, kept, poison)
    assert (counts.poisoned, counts.damaged, counts.emptied) == (poisoned, damaged, emptied)


def test_nothing_of_nothing_is_no_loss():
    counts = tally(0, [], set())
    assert (counts.poisoned, counts.damaged, counts.emptied) == (False, False, False)


def record(**fields):
    screening = Vanilla().screen("q", ["a", "b", "c"])
    first, second, third = screening.verdicts
    verdicts = (
        replace(first, rank=1, kept=True),
        replace(second, rank=None, kept=False, score=-1),
        replace(third, rank=0),
    )
    return Record("x", verdicts=verdicts, **fields)


def test_a_record_reads_the_best_first_and_what_was_dropped_stands_last():
    assert (record().kept, record().order, record().size) == ((2, 0), (2, 0, 1), 3)
    assert [record(final=final).read for final in (None, 0, 1, 2)] == [(2, 0), (), (2,), (2, 0)]
    assert record(poison=(1,), gold=(0,)).tally == CellTally(1, 0, 0, 2, 0, 1)
    assert (record().asked, record(answer="").asked, record(unanswered=True).asked) == (False, True, True)
    assert (record().settled, record(status="agreed").settled, record(status="disputed").settled) == (True, True, False)
    assert (record().failed, record(error="x").failed) == (False, True)


def test_a_cell_is_complete_with_every_record_and_no_error():
    fine, failed = Record("a"), Record("b", error="x")
    cell = Cell("id", Scenario("sample"), expected=2, records=(fine, failed))
    assert (cell.complete, cell.usable, cell.failures) == (True, (fine,), (failed,))
    assert not replace(cell, expected=3).complete
    assert not replace(cell, error="it cannot begin").complete


@pytest.mark.parametrize("text", ["[1]", "{}", '{"cells": [{"id": "a"}]}', '{"cells": {}}', "no json"])
def test_what_is_no_manifest_is_refused_with_its_path(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match=r"manifest\.json"):
            open_run(folder)
