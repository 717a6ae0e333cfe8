"""The same decisions as the published procedures, written a second time for reading (`benchmarks/speed/naive.py`)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from numpy import array

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.speed import naive

pytestmark = [pytest.mark.needs("bm25s", "networkx", "rouge_score", "sklearn"), pytest.mark.parity]


def test_naive_cut_keeps_the_larger_source_side() -> None:
    agreement = [[1.0, 0.9, 0.8, 0.05], [0.9, 1.0, 0.85, 0.05], [0.8, 0.85, 1.0, 0.05], [0.05, 0.05, 0.05, 1.0]]
    conflict = [[0.0, 0.02, 0.02, 0.7], [0.02, 0.0, 0.02, 0.7], [0.02, 0.02, 0.0, 0.7], [0.7, 0.7, 0.7, 0.0]]
    assert naive.radar_cut(array(agreement), array(conflict)) == [0, 1, 2]
