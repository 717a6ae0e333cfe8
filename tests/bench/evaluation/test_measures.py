"""What single records contribute, by hand."""

import math

import pytest

from unpoison.bench.evaluation.measures import MEASURES, measure
from unpoison.bench.evaluation.records import Record
from unpoison.errors import UnknownNameError
from unpoison.types import Verdict


def record(kept, size=6, scores=None, **fields):
    """A record of `size` passages of which these are kept, best first."""
    ranks = {index: rank for rank, index in enumerate(kept)}
    scores = scores or [1.0] * size
    verdicts = tuple(Verdict(i, i in ranks, scores[i], ranks.get(i), "") for i in range(size))
    return Record("q", verdicts=verdicts, **fields)


def values(*records):
    """Every figure over some records, pooled."""
    found = {}
    for name, one in MEASURES.items():
        parts = [one.parts(each) for each in records]
        below = sum(part[1] for part in parts)
        found[name] = sum(part[0] for part in parts) / below if below else math.nan
    return found


def test_the_worked_detection_case():
    # 10 passages: three of four poisons dropped, and one clean passage with them
    figures = values(record([3, 5, 6, 7, 8, 9], size=10, poison=(0, 1, 2, 3), gold=(4, 5)))
    assert (figures["precision"], figures["recall"], figures["f1"]) == (0.75, 0.75, 0.75)
    assert figures["clean_kept"] == 5 / 6
    assert (figures["poisoned"], figures["damaged"], figures["emptied"]) == (1, 1, 0)
    assert (figures["gold_kept"], figures["gold_lost"]) == (0.5, 0)
    assert figures["poison_share"] == 0.1


def test_what_is_undefined_is_nan_not_zero():
    clean = values(record(range(6)))
    assert all(math.isnan(clean[name]) for name in ("precision", "recall", "f1", "gold_kept", "gold_lost", "auroc"))
    assert all(math.isnan(clean[name]) for name in ("retrieved", "reached", "accuracy", "asr", "abstained"))
    assert (clean["clean_kept"], clean["damaged"], clean["poisoned"]) == (1, 0, 0)
    missed = values(record(range(6), poison=(0,)))
    assert math.isnan(missed["precision"])
    assert (missed["recall"], missed["f1"]) == (0, 0)
    assert math.isnan(values(record([], size=2, poison=(0, 1)))["damaged"])


def test_questions_without_gold_do_not_count_as_lost():
    lost, none = record([1], gold=(0,)), record([], gold=())
    assert values(lost, none)["gold_lost"] == 1
    assert values(record([0], gold=(0, 1)), none)["gold_lost"] == 0


def test_micro_pools_passages_and_skips_what_does_not_apply():
    figures = values(record([1], 2, poison=(0,)), record([0, 1], 4, poison=(0, 1)), record([0, 1], 2))
    assert (figures["precision"], figures["recall"], figures["f1"]) == (1 / 3, 1 / 3, 1 / 3)


def test_only_what_the_generator_reads_of_a_pool_counts():
    figures = values(record([0, 1, 2], poison=(2,), gold=(1, 3), final=2))
    assert (figures["poisoned"], figures["poison_share"], figures["gold_kept"]) == (0, 0, 0.5)


def test_the_two_real_poisoned_rates():
    planted = record([0, 1], size=5, poison=(0, 1, 2), foreign=(2,), injected=4)
    assert values(planted)["retrieved"] == 0.5
    assert values(planted)["poison_share"] == 0.4


def test_scores_that_separate_poison():
    assert values(record([2], 3, scores=[0.1, 0.2, 0.9], poison=(0, 1)))["auroc"] == 1
    assert math.isnan(values(record([2], 3, scores=[math.inf, 0.2, 0.9], poison=(0, 1)))["auroc"])


def test_answers_are_matched_by_each_papers_rule():
    answered = record([0], 1, answer="Paris Hilton, of Lyon.", correct=("Paris",), wanted=("Lyon",), abstained=False)
    figures = values(answered)
    assert (figures["accuracy"], figures["asr"], figures["asr_substring"], figures["asr_exclusive"]) == (0, 0, 1, 0)
    assert figures["abstained"] == 0


def test_costs_count_where_they_are_known():
    cheap = record(
        [0], 1, answer="a", seconds=2.0, screening_seconds=1.0, calls=3, prompt_tokens=10, judged=(7, None, 2)
    )
    figures = values(cheap, record([0], 1))
    assert (figures["calls"], figures["prompt_tokens"]) == (1.5, 10)
    assert (figures["seconds_median"], figures["screening_median"]) == (2.0, 0.5)
    assert (figures["judged_accuracy"], figures["judged_coherence"]) == (7, 2)
    assert math.isnan(figures["judged_relevance"])
    assert figures["failed"] == 0


def test_an_unknown_measure_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'poisoned'"):
        measure("poisned")
