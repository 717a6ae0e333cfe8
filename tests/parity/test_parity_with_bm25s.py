from __future__ import annotations

import bm25s
import numpy as np
import pytest

from unpoison.algorithms.bm25 import bm25
from unpoison.retrieval import BM25Retriever
from unpoison.text.tokens import ENGLISH_33, words

pytestmark = [pytest.mark.needs("bm25s"), pytest.mark.parity]

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


@pytest.mark.parametrize("queries", [TEXTS, QUESTIONS], ids=["passages", "questions"])
def test_single_statistics_are_an_index_per_passage(queries) -> None:
    ours = bm25([words(text, ENGLISH_33) for text in queries], [words(text, ENGLISH_33) for text in TEXTS])
    expected = np.concatenate([scores(queries, [text]) for text in TEXTS], axis=1)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("questions", [TEXTS, QUESTIONS], ids=["passages", "questions"])
def test_the_retriever_finds_what_an_index_finds(questions) -> None:
    retriever = BM25Retriever(TEXTS)
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    index.index(bm25s.tokenize(TEXTS, show_progress=False), show_progress=False)
    for question in questions:
        tokens = bm25s.tokenize(question, show_progress=False, return_ids=False)
        if not set(tokens[0]) & {token for text in TEXTS for token in words(text, ENGLISH_33)}:
            assert retriever.retrieve(question, 3) == ()
            continue
        places, values = index.retrieve(tokens, k=3, show_progress=False)
        expected = [(str(i), value) for i, value in zip(places[0], values[0]) if value > 0]
        passages = retriever.retrieve(question, 3)
        assert [p.id for p in passages] == [name for name, _ in expected]
        np.testing.assert_allclose([p.score for p in passages], [value for _, value in expected], rtol=1e-5)
