from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
from nltk.stem.porter import PorterStemmer
from rouge_score.rouge_scorer import RougeScorer

from unpoison.text.tokens import rouge_l, stems

pytestmark = [pytest.mark.needs("rouge_score"), pytest.mark.parity]


def expected(texts: list[str]) -> np.ndarray:
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    scores = np.zeros((len(texts), len(texts)))
    for i, j in combinations(range(len(texts)), 2):
        scores[i, j] = scores[j, i] = scorer.score(texts[i], texts[j])["rougeL"].fmeasure
    return scores


@pytest.mark.shared_data
def test_real_passages(shared_data) -> None:
    """The two Porter stemmers differ in a few words, so a pair in a thousand changes sides of TrustRAG's 0.25."""
    with (shared_data / "nq_poisoned.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(next(lines)) for _ in range(8)]
    changed = total = 0
    for row in rows:
        texts = [passage["text"].encode("ascii", "ignore").decode() for passage in row["passages"]][:20]
        ours, theirs = rouge_l(texts), expected(texts)
        np.fill_diagonal(ours, 0)
        np.testing.assert_allclose(ours, theirs, atol=0.06)
        changed += int(((ours > 0.25) != (theirs > 0.25 + 1e-12)).sum())
        total += len(texts) * (len(texts) - 1)
    assert changed <= total / 250


@pytest.mark.parametrize(
    ("word", "ours", "theirs"), [("uses", "us", "use"), ("days", "dai", "day"), ("news", "new", "news")]
)
def test_stems_that_are_known_to_differ(word, ours, theirs) -> None:
    assert stems(word) == [ours]
    assert PorterStemmer().stem(word) == theirs
