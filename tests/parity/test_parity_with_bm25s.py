from __future__ import annotations

import numpy as np
import pytest

from unpoison.kernels.bm25 import bm25
from unpoison.kernels.stopwords import ENGLISH_33
from unpoison.kernels.tokens import words

bm25s = pytest.importorskip("bm25s")
pytestmark = pytest.mark.parity

TEXTS = [
    "Rome is the capital of Italy, and the capital of Lazio.",
    "The capital of Italy is Milan; Milan, Milan, Milan!",
    "A page on the mountain railways of Switzerland, with 42 photographs.",
    "Italy's national railways run between Rome and Milan in three hours, every hour of the day, and at night too.",
    "capital",
]
QUESTIONS = [
    "What is the capital of Italy?",
    "capital capital capital",
    "Swiss cheese",
    "railways of Italy in the night",
]


def scores(queries: list[str], documents: list[str]) -> np.ndarray:
    """bm25s as GRADA's published code calls it: its own tokenizer and defaults."""
    index = bm25s.BM25()
    index.index(bm25s.tokenize(documents, show_progress=False), show_progress=False)
    tokens = bm25s.tokenize(queries, show_progress=False, return_ids=False)
    return np.array([index.get_scores(query) if query else np.zeros(len(documents)) for query in tokens])


def test_stop_words() -> None:
    from bm25s.stopwords import STOPWORDS_EN

    assert frozenset(STOPWORDS_EN) == ENGLISH_33


def test_tokens() -> None:
    expected = bm25s.tokenize(TEXTS + QUESTIONS, show_progress=False, return_ids=False)
    assert [words(text, ENGLISH_33) for text in TEXTS + QUESTIONS] == expected


@pytest.mark.parametrize("queries", [TEXTS, QUESTIONS], ids=["passages", "questions"])
def test_candidate_statistics(queries) -> None:
    ours = bm25(
        [words(text, ENGLISH_33) for text in queries],
        [words(text, ENGLISH_33) for text in TEXTS],
        statistics="candidates",
    )
    np.testing.assert_allclose(ours, scores(queries, TEXTS), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("queries", [TEXTS, QUESTIONS], ids=["passages", "questions"])
def test_single_statistics_are_an_index_per_passage(queries) -> None:
    ours = bm25([words(text, ENGLISH_33) for text in queries], [words(text, ENGLISH_33) for text in TEXTS])
    expected = np.concatenate([scores(queries, [text]) for text in TEXTS], axis=1)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-7)
