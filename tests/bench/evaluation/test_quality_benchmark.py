import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def embeddings(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.quality import embeddings

    return embeddings


class Counting:
    """Counts the texts that it encodes."""

    name = "counting/encoder"

    def __init__(self):
        self.texts = []

    def encode(self, texts, /):
        self.texts += texts
        return np.array([[len(text), 1] for text in texts], np.float32)


def test_embeddings_are_made_once(embeddings, tmp_path):
    encoder = Counting()
    first = embeddings.Embeddings(encoder, tmp_path)
    first.add(["bb", "a", "bb"], lambda done, total: None)
    again = embeddings.Embeddings(encoder, tmp_path)
    again.add(["a", "ccc"], lambda done, total: None)
    assert sorted(encoder.texts) == ["a", "bb", "ccc"]
    assert [again[text][0] for text in ("a", "bb", "ccc")] == [1, 2, 3]


def test_a_run_killed_between_the_two_files_does_the_rest(embeddings, tmp_path):
    encoder = Counting()
    embeddings.Embeddings(encoder, tmp_path).add(["a"], lambda done, total: None)
    keys = (tmp_path / "counting-encoder.json").read_text()
    embeddings.Embeddings(encoder, tmp_path).add(["bb"], lambda done, total: None)
    (tmp_path / "counting-encoder.json").write_text(keys)
    resumed = embeddings.Embeddings(encoder, tmp_path)
    resumed.add(["a", "bb"], lambda done, total: None)
    assert encoder.texts == ["a", "bb", "bb"]
    assert resumed["bb"][0] == 2


@pytest.mark.shared_data
def test_the_quality_benchmark_prints_its_tables(shared_data, tmp_path):
    sets = "nq,realtimeqa,ramdocs,nq_retrieved"
    command = [sys.executable, "-m", "benchmarks", "quality", str(shared_data), "--encoder", "lexical"]
    done = subprocess.run(
        [*command, "--limit", "1", "--sets", sets],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert "% of questions with poison left" in done.stdout
    assert "radar-incorrect-context at position 25 of 50" in done.stdout
    assert "## No attack: nq_retrieved" in done.stdout
    assert "0 s left" in done.stderr
