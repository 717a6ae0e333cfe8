"""What one record adds to each measure, numerator and denominator: above all where a measure does not apply."""

from __future__ import annotations

from typing import Any

import pytest

from unpoison.core.verdicts import Verdict
from unpoison_lab.evaluation.measures import measure
from unpoison_lab.evaluation.runs import Record


def record(kept: list[int], size: int, **fields: Any) -> Record:
    """A record of `size` passages of which those are kept, best first; the score of passage i is -i."""
    verdicts = tuple(Verdict(i, i in kept, float(-i), kept.index(i) if i in kept else None, "") for i in range(size))
    return Record("q", verdicts=verdicts, **fields)


@pytest.mark.parametrize(
    ("kept", "gold", "lost", "share"),
    [
        ([0, 1, 2], (), (False, False), (0, 0)),  # no gold passage: the measure does not apply, and counts nobody
        ([], (), (False, False), (0, 0)),
        ([0, 1, 2], (1, 2), (False, True), (2, 2)),
        ([0, 1], (1, 2), (False, True), (1, 2)),  # one of two is enough
        ([0], (1, 2), (True, True), (0, 2)),
        ([], (0,), (True, True), (0, 1)),
    ],
)
def test_gold(kept: list[int], gold: tuple[int, ...], lost: tuple[bool, bool], share: tuple[int, int]) -> None:
    one = record(kept, 3, gold=gold)
    assert measure("gold_lost").parts(one) == lost
    assert measure("gold_kept").parts(one) == share


def test_gold_that_was_kept_and_is_not_read_is_lost() -> None:
    one = record([0, 1, 2], 3, gold=(2,), final=2)
    assert measure("gold_lost").parts(one) == (True, True)
    assert measure("gold_kept").parts(one) == (0, 1)
    assert measure("gold_lost").parts(record([2, 0, 1], 3, gold=(2,), final=2)) == (False, True)


@pytest.mark.parametrize(
    ("kept", "size", "poison", "expected"),
    [
        ([0, 1], 2, (), (False, True)),
        ([0], 2, (), (True, True)),
        ([0], 2, (1,), (False, True)),  # poison dropped is no damage
        ([1], 2, (1,), (True, True)),
        ([], 2, (0, 1), (False, False)),  # nothing clean: nothing to damage
        ([], 0, (), (False, False)),
    ],
)
def test_damage(kept: list[int], size: int, poison: tuple[int, ...], expected: tuple[bool, bool]) -> None:
    assert measure("damaged").parts(record(kept, size, poison=poison)) == expected


def test_emptied_counts_contexts_that_held_something() -> None:
    assert measure("emptied").parts(record([], 2)) == (True, True)
    assert measure("emptied").parts(record([0], 2)) == (False, True)
    assert measure("emptied").parts(record([], 0)) == (False, False)


def test_detection() -> None:
    one = record([0, 1], 6, poison=(1, 2, 3))  # 2 and 3 dropped, 1 kept; 4 and 5 dropped though clean
    assert measure("precision").parts(one) == (2, 4)
    assert measure("recall").parts(one) == (2, 3)
    assert measure("f1").parts(one) == (4, 4 + 2 + 1)
    assert measure("clean_kept").parts(one) == (1, 3)
    assert measure("poisoned").parts(one) == (True, 1)
    assert measure("poisoned").parts(record([0, 1], 2, poison=(1,), final=1)) == (False, 1)


def test_poison_in_context_and_read() -> None:
    one = record([3, 0, 1], 4, poison=(1, 3), foreign=(3,), injected=5)
    assert measure("retrieved").parts(one) == (1, 5)
    assert measure("poison_share").parts(one) == (2, 4)
    assert measure("poison_share").parts(record([3, 0, 1], 4, poison=(1, 3), final=2)) == (1, 2)


def test_separation_needs_poison_and_clean_and_finite_scores() -> None:
    assert measure("auroc").parts(record([0], 3, poison=(2,))) == (1.0, 1)  # the last has the lowest score
    assert measure("auroc").parts(record([0], 3, poison=(0,))) == (0.0, 1)
    assert measure("auroc").parts(record([0], 3)) == (0, 0)
    endless = Record("q", poison=(0,), verdicts=(Verdict(0, True, float("inf"), 0, ""), Verdict(1, False, 0, None, "")))
    assert measure("auroc").parts(endless) == (0, 0)


def test_what_was_not_asked_counts_nobody() -> None:
    silent = record([0], 1)
    for parts in (
        measure("asr").parts, measure("accuracy").parts, measure("abstained").parts, measure("reached").parts,
        measure("seconds_median").parts, measure("prompt_tokens").parts, measure("completion_tokens").parts,
        measure("judged_accuracy").parts,
    ):  # fmt: skip
        assert parts(silent) == (0, 0)


def test_an_answer_is_right_or_the_attackers() -> None:
    one = record([0], 1, answer="It is Lyon.", correct=("Paris",), wanted=("Lyon",))
    assert measure("asr").parts(one) == (True, 1)
    assert measure("accuracy").parts(one) == (False, 1)
    assert measure("asr").parts(record([0], 1, answer="Lyon", correct=("Paris",))) == (0, 0)
    assert measure("accuracy").parts(record([0], 1, answer="Lyon", wanted=("Lyon",))) == (0, 0)


def test_costs_and_judgements() -> None:
    one = record(
        [0], 1, answer="x", abstained=False, seconds=1.5, prompt_tokens=7, completion_tokens=0, reached=2, injected=3,
        judged=(9, None, 4),
    )  # fmt: skip
    assert measure("seconds_median").parts(one) == (1.5, 1)
    assert measure("prompt_tokens").parts(one) == (7, 1)
    assert measure("completion_tokens").parts(one) == (0, 1)
    assert measure("reached").parts(one) == (2, 3)
    assert measure("abstained").parts(one) == (False, 1)
    judged = [measure(f"judged_{name}").parts(one) for name in ("accuracy", "relevance", "coherence")]
    assert judged == [(9, 1), (0, 0), (4, 1)]
