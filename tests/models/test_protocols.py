"""Encoders as the papers used them: CLS pooling, dot products, two towers; with tiny checkpoints made here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from checkpoints import encoder as tiny_encoder
from checkpoints import save_tokenizer
from unpoison.errors import OptionError
from unpoison.models import load_encoder
from unpoison.models.protocols import TwoTowers
from unpoison.retrieval import DenseRetriever

pytestmark = pytest.mark.needs("torch")

TEXTS = ["paris is the capital of france .", "lyon is a large city", "the river", "the tower is old ?"]


@pytest.fixture(scope="module")
def towers(tmp_path_factory) -> tuple[Path, Path]:
    """A passages' tower and a questions' tower, each a checkpoint."""
    retrieved = []
    for seed in (0, 1):
        folder = save_tokenizer(tmp_path_factory.mktemp(f"tower{seed}"))
        tiny_encoder(seed).save_pretrained(folder)
        retrieved.append(folder)
    return retrieved[0], retrieved[1]


def hidden(folder: Path, text: str) -> np.ndarray:
    """The last layer's vectors of one text, by the transformers library itself, shape (tokens, d)."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    with torch.inference_mode():
        given = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
        return AutoModel.from_pretrained(folder)(**given).last_hidden_state[0].numpy()


@pytest.mark.parametrize(("pooling", "pool"), [("mean", lambda rows: rows.mean(axis=0)), ("cls", lambda rows: rows[0])])
def test_pooling_is_the_papers_and_dot_keeps_the_length(towers, pooling, pool) -> None:
    wanted = np.stack([pool(hidden(towers[0], text)) for text in TEXTS])
    raw = load_encoder(f"st:{towers[0]},pooling={pooling},similarity=dot").encode(TEXTS)
    assert np.allclose(raw, wanted, atol=1e-4)
    assert not np.allclose(np.linalg.norm(raw, axis=1), 1, atol=1e-2)
    unit = load_encoder(f"st:{towers[0]},pooling={pooling}").encode(TEXTS)
    assert np.allclose(unit, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-4)


def test_questions_go_to_their_own_tower(towers) -> None:
    both = load_encoder(f"st:{towers[0]},pooling=cls,similarity=dot,query_encoder={towers[1]}")
    assert isinstance(both, TwoTowers)
    assert both.similarity == "dot"
    assert np.allclose(both.encode_queries(TEXTS[:1])[0], hidden(towers[1], TEXTS[0])[0], atol=1e-4)
    assert np.allclose(both.encode(TEXTS[:1])[0], hidden(towers[0], TEXTS[0])[0], atol=1e-4)
    assert both.encode_queries([]).shape[0] == 0


@pytest.mark.parametrize("options", ["pooling=max", "similarity=l2"])
def test_other_poolings_and_similarities_are_refused(towers, options) -> None:
    with pytest.raises(OptionError):
        load_encoder(f"st:{towers[0]},{options}")


class Towers:
    """Two towers with known vectors: questions look at the first letter, passages have lengths."""

    name = "towers"
    similarity = "dot"

    def __init__(self) -> None:
        self.passages: list[str] = []

    def encode(self, texts):
        self.passages += texts
        return np.array([[len(text), 0.5] for text in texts], np.float32)

    def encode_queries(self, texts):
        return np.array([[1.0 if text.startswith("long") else -1.0, 0.0] for text in texts], np.float32)


def test_retrieval_ranks_by_the_dot_product_of_both_towers() -> None:
    retriever = DenseRetriever(Towers(), ["a", "aaaa", "aa"])
    assert [p.text for p in retriever.retrieve("long?", 2)] == ["aaaa", "aa"]
    assert [p.text for p in retriever.retrieve("short?", 3)] == ["a", "aa", "aaaa"]
    assert [p.score for p in retriever.retrieve("long?", 3)] == [4.0, 2.0, 1.0]
    assert retriever.retrieve("long?", 1)[0].embedding.tolist() == [4.0, 0.5]
