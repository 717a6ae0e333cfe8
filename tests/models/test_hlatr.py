"""HLATR's scorer: ranks count with a head and not without, and it learns what it is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from checkpoints import save_classifier
from unpoison.models import CrossEncoderScorer, HlatrScorer, load_cross_encoder
from unpoison.models.protocols import CrossEncoder

pytestmark = pytest.mark.needs("torch")

TEXTS = ["paris is the capital of france", "lyon", "a river", "the old tower", "a large city"]
PAIRS = [("paris", text) for text in TEXTS]
EXAMPLES = [
    ("the capital", TEXTS[:4], 0),
    ("old", TEXTS, 3),
    ("lyon", TEXTS[1:], 0),
    ("a city", TEXTS[2:], 2),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_classifier(tmp_path_factory.mktemp("reranker"), ["relevance"])


@pytest.fixture(scope="module")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> CrossEncoder:
    from benchmarks.training.train_hlatr import RankedList, train

    head = tmp_path_factory.mktemp("head")
    examples = [RankedList(*example) for example in EXAMPLES]
    train(folder, examples, head, hidden=16, layers=2, epochs=60, batch=4, rate=1e-2)
    return load_cross_encoder(f"hlatr:{folder},head={head}")


def test_without_a_head_the_scores_are_the_checkpoints(folder: Path) -> None:
    scorer = HlatrScorer(folder)
    assert isinstance(scorer, CrossEncoder)
    assert np.array_equal(scorer.score(PAIRS), CrossEncoderScorer(folder).score(PAIRS))
    assert scorer.score([]).shape == (0,)


def test_ranks_count_with_a_head_and_not_without(folder: Path, trained: CrossEncoder) -> None:
    turned = [4, 3, 2, 1, 0]
    plain = HlatrScorer(folder)
    assert np.allclose(plain.score([PAIRS[i] for i in turned]), plain.score(PAIRS)[turned], atol=1e-6)
    assert not np.allclose(trained.score([PAIRS[i] for i in turned]), trained.score(PAIRS)[turned], atol=1e-3)


def test_pairs_of_one_query_are_one_list_wherever_they_stand(trained: CrossEncoder) -> None:
    others = [("lyon", text) for text in TEXTS]
    mixed = [pair for both in zip(PAIRS, others, strict=True) for pair in both]
    assert np.allclose(trained.score(mixed)[::2], trained.score(PAIRS), atol=1e-5)
    assert np.allclose(trained.score(mixed)[1::2], trained.score(others), atol=1e-5)


def test_it_learns_what_it_is_shown(trained: CrossEncoder) -> None:
    for query, passages, relevant in EXAMPLES:
        scores = trained.score([(query, text) for text in passages])
        assert scores.argmax() == relevant
        assert ((scores > 0) & (scores < 1)).all()
