"""Classifiers of tiny real checkpoints with random weights: NLI judges, scorers, detectors of injections."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from checkpoints import encoder as tiny_encoder
from checkpoints import save_classifier, save_tokenizer
from unpoison.errors import MissingExtraError, ModelError, OptionError
from unpoison.models import CheckpointInjectionClassifier, CrossEncoderNLI, CrossEncoderScorer
from unpoison.models.classifiers import injection_columns, nli_columns, probability
from unpoison.models.loading import load_injection_model
from unpoison.models.protocols import CrossEncoder, InjectionClassifier, NLIModel

pytestmark = pytest.mark.needs("transformers", "torch")

NAMES = ["entailment", "neutral", "contradiction"]
LABELS = ["SAFE", "INJECTION"]
PAIRS = [
    ("paris is the capital of france .", "lyon is not a capital"),
    ("a river", "the old tower is in the large city of paris ?"),
    ("lyon", "lyon"),
    ("\ud800", ""),
    ("paris " * 500, "lyon " * 900),
]
TEXTS = ["Paris is the capital of France.", "Lyon is a large city.", "the old tower in the river", "", "?"]
LONG = "the old tower is in the city . " * 40 + "paris paris not not"


@pytest.fixture(scope="module")
def judge_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_classifier(tmp_path_factory.mktemp("nli"), NAMES)


@pytest.fixture(scope="module")
def injection_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_classifier(tmp_path_factory.mktemp("injection"), LABELS)


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


@pytest.mark.parametrize(
    ("labels", "columns"),
    [
        (["INJECTION", "LEGIT"], [0]),
        (["BENIGN", "INJECTION", "JAILBREAK"], [1, 2]),
        (["LABEL_0", "LABEL_1"], [1]),
        (["no_injection", "injection"], [1]),
        (["prompt injection"], [0]),
        (["positive", "negative"], None),
        (["LABEL_0", "LABEL_1", "LABEL_2"], None),
        (["INJECTION", "JAILBREAK"], None),
    ],
)
def test_labels_of_a_detector_are_read_by_name(labels: list[str], columns: list[int] | None) -> None:
    if columns is None:
        with pytest.raises(ModelError, match="label=NAME"):
            injection_columns(dict(enumerate(labels)), "m")
        assert injection_columns(dict(enumerate(labels)), "m", labels[1].lower()) == [1]
    else:
        assert injection_columns(dict(enumerate(labels)), "m") == columns


def test_probabilities_are_those_of_the_chosen_outputs() -> None:
    logits = np.log([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]])
    np.testing.assert_allclose(probability(logits, [1, 2]), [0.8, 0.1])
    np.testing.assert_allclose(probability(np.array([[0.0], [np.log(3)]]), [0]), [0.5, 0.75])


def test_a_detector_says_the_same_text_by_text(injection_folder: Path) -> None:
    model = CheckpointInjectionClassifier(injection_folder)
    assert isinstance(model, InjectionClassifier)
    assert isinstance(load_injection_model(str(injection_folder)), CheckpointInjectionClassifier)
    texts = [*TEXTS, LONG, "paris \ud800 lyon"]
    found = model.probabilities(texts)
    np.testing.assert_allclose(np.concatenate([model.probabilities([text]) for text in texts]), found, atol=1e-5)
    other = load_injection_model(f"hf:{injection_folder},label=SAFE").probabilities(TEXTS[:3])
    np.testing.assert_allclose(found[:3] + other, 1, atol=1e-6)
    assert model.probabilities([]).shape == (0,)
    assert model.probabilities([""]).tolist() == [0.0]


def test_the_worst_window_of_a_long_text_counts(injection_folder: Path) -> None:
    """The checkpoint reads 64 tokens; what stands behind them is judged all the same."""
    model = CheckpointInjectionClassifier(injection_folder)
    windows = [LONG[start:end] for start, end in model.windows(LONG)]
    assert len(windows) > 4
    assert windows[-1].endswith("not not")
    assert model.probabilities([LONG])[0] == pytest.approx(model.probabilities(windows).max(), abs=0.02)


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
        load_injection_model(str(tmp_path))
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
