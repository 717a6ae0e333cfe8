"""Classifiers of tiny real checkpoints with random weights: NLI judges and scorers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from checkpoints import encoder as tiny_encoder
from checkpoints import save_classifier, save_tokenizer
from unpoison.errors import MissingExtraError, ModelError, OptionError
from unpoison.models import CrossEncoderNLI, CrossEncoderScorer
from unpoison.models.classifiers import nli_columns
from unpoison.models.protocols import CrossEncoder, NLIModel

pytestmark = pytest.mark.needs("transformers", "torch")

NAMES = ["entailment", "neutral", "contradiction"]
PAIRS = [
    ("paris is the capital of france .", "lyon is not a capital"),
    ("a river", "the old tower is in the large city of paris ?"),
    ("lyon", "lyon"),
    ("\ud800", ""),
    ("paris " * 500, "lyon " * 900),
]


@pytest.fixture(scope="module")
def judge_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_classifier(tmp_path_factory.mktemp("nli"), NAMES)


def test_a_judge_agrees_with_the_library(judge_folder: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    judge = CrossEncoderNLI(judge_folder, batch_size=2)
    judged = judge.judge(PAIRS)
    assert np.ptp(judged, axis=0).max() > 0.01  # the checkpoint tells the pairs apart
    tokenizer = AutoTokenizer.from_pretrained(judge_folder)
    model = AutoModelForSequenceClassification.from_pretrained(judge_folder)
    with torch.inference_mode():
        logits = model(**tokenizer(*PAIRS[0], return_tensors="pt")).logits
    assert np.allclose(torch.softmax(logits, -1).numpy()[0], judged[0], atol=1e-6)
    assert np.allclose(judge.judge(PAIRS[::-1]), judged[::-1], atol=1e-5)
    assert judge.judge([]).shape == (0, 3)
    assert isinstance(judge, NLIModel)
    assert judge.name == f"cross:{judge_folder}"


@pytest.mark.parametrize(
    ("labels", "columns"),
    [
        (["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], [2, 1, 0]),
        (["neutral", "entailed", "contradictory"], [1, 0, 2]),
        (["LABEL_0", "LABEL_1", "LABEL_2"], "which does not say which is entailment"),
        (["entailment", "entails", "neutral"], "which does not say which is entailment"),
        (["entailment", "not_entailment"], "has 2 labels .*use a three-way one"),
    ],
)
def test_labels_of_a_judge_are_read_by_name(labels: list[str], columns: list[int] | str) -> None:
    if isinstance(columns, str):
        with pytest.raises(ModelError, match=columns):
            nli_columns(dict(enumerate(labels)), "m")
    else:
        assert nli_columns(dict(enumerate(labels)), "m") == columns


def test_a_scorer_gives_one_number_between_0_and_1(tmp_path: Path, judge_folder: Path) -> None:
    scorer = CrossEncoderScorer(save_classifier(tmp_path, ["relevance"]))
    scores = scorer.score(PAIRS)
    assert np.all((scores > 0) & (scores < 1))
    assert len(set(scores.tolist())) > 1
    assert scorer.score([]).shape == (0,)
    assert isinstance(scorer, CrossEncoder)
    with pytest.raises(ModelError, match="has 3 outputs and a scorer has one"):
        CrossEncoderScorer(judge_folder)


def test_what_cannot_be_used_is_said(tmp_path: Path, judge_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    headless = save_tokenizer(tmp_path / "headless")
    tiny_encoder().save_pretrained(headless)
    config = json.loads((headless / "config.json").read_text())
    (headless / "config.json").write_text(json.dumps({**config, "id2label": dict(enumerate(NAMES))}))
    with pytest.raises(ModelError, match="no trained classification head"):
        CrossEncoderNLI(headless)
    with pytest.raises(ModelError, match="cannot load the checkpoint"):
        CrossEncoderNLI(tmp_path)
    with pytest.raises(OptionError, match="batch_size must be a whole number of at least 1, got 0"):
        CrossEncoderNLI(judge_folder, batch_size=0)
    judge = CrossEncoderNLI(judge_folder)
    with torch.no_grad():
        judge._model.classifier.weight.fill_(float("nan"))
    with pytest.raises(ModelError, match="not finite"):
        judge.judge(PAIRS)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"\[torch\]"):
        CrossEncoderNLI(judge_folder)
