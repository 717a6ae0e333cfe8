"""Whole screenings of real questions against the published rules, as `python -m benchmarks fidelity` compares them."""

from __future__ import annotations

from itertools import islice

import pytest

from benchmarks.quality import fidelity
from unpoison.models import LexicalEncoder

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
PACKAGES = {"grada": ("networkx", "bm25s"), "ragdefender": ("ragdefender", "torch"), "radar": ("networkx",)}
RELEASED = ("sklearn", "nltk", "rouge_score")


@pytest.mark.shared_data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param(
            ours, theirs, marks=pytest.mark.needs(*PACKAGES.get(method.partition(":")[0], RELEASED)), id=method
        )
        for method, _, ours, theirs in fidelity.comparisons()
    ],
)
def test_real_questions(shared_data, ours, theirs) -> None:
    for case in islice(fidelity.cases(shared_data, LexicalEncoder()), 3, 9):
        assert ours(case) == theirs(case), case.name


@pytest.mark.needs("networkx")
def test_radar_over_time() -> None:
    """Where nothing is selected theirs answers from the passages and remembers it: in one stream of three."""
    assert [line for seed in range(25) for line in fidelity.differing_steps(seed)[1]] == []
