"""NLI judges and scorers from real checkpoints, tiny ones with random weights that the tests write."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from checkpoints import encoder as tiny_encoder
from checkpoints import save_classifier, save_tokenizer
from unpoison.errors import MissingExtraError, ModelError, OptionError
from unpoison.models import CrossEncoderNLI, load_nli
from unpoison.models.cross_encoders import CrossEncoderScorer
from unpoison.models.protocols import CrossEncoder, NLIModel

pytestmark = pytest.mark.needs("torch")

NAMES = ["entailment", "neutral", "contradiction"]
PAIRS = [
    ("paris is the capital of france .", "lyon is not a capital"),
    ("a river", "the old tower is in the large city of paris ?"),
    ("lyon", "lyon"),
    ("\ud800", ""),
    ("paris " * 500, "lyon " * 900),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_classifier(tmp_path_factory.mktemp("nli"), NAMES)


@pytest.fixture(scope="module")
def judged(folder):
    return CrossEncoderNLI(folder).judge(PAIRS)


def test_probabilities_of_every_pair_in_order(folder, judged):
    assert judged.shape == (5, 3)
    assert judged.dtype == np.float64
    assert np.allclose(judged.sum(axis=1), 1)
    assert np.ptp(judged, axis=0).max() > 0.01  # the checkpoint tells the pairs apart, or the tests below prove nothing
    judge = CrossEncoderNLI(folder, batch_size=2)
    assert np.allclose(judge.judge(PAIRS), judged, atol=1e-5)
    assert np.allclose(judge.judge(PAIRS[::-1]), judged[::-1], atol=1e-5)
    assert judge.judge([]).shape == (0, 3)


def test_it_agrees_with_the_library(folder, judged):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.inference_mode():
        logits = model(**tokenizer(*PAIRS[0], return_tensors="pt")).logits
    assert np.allclose(torch.softmax(logits, -1).numpy()[0], judged[0], atol=1e-6)


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], [2, 1, 0]),
        (["neutral", "entailed", "contradictory"], [1, 0, 2]),
    ],
)
def test_labels_are_read_by_name_and_not_by_position(tmp_path, judged, labels, order):
    permuted = CrossEncoderNLI(save_classifier(tmp_path, labels, order=order))
    assert np.allclose(permuted.judge(PAIRS), judged, atol=1e-6)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["LABEL_0", "LABEL_1", "LABEL_2"], "which does not say which is entailment"),
        (["entailment", "neutral", "other"], "which does not say which is entailment"),
        (["entailment", "entails", "neutral"], "which does not say which is entailment"),
        (["entailment", "not_entailment"], "has 2 labels .*use a three-way one"),
        (["only"], "has 1 labels"),
    ],
)
def test_labels_that_do_not_say_are_refused(tmp_path, labels, message):
    with pytest.raises(ModelError, match=message):
        CrossEncoderNLI(save_classifier(tmp_path, labels))


def test_a_checkpoint_without_a_trained_head_is_refused(tmp_path):
    folder = save_tokenizer(tmp_path)
    tiny_encoder().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = dict(enumerate(NAMES))
    config["label2id"] = {name: i for i, name in enumerate(NAMES)}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="no trained classification head"):
        CrossEncoderNLI(folder)


def test_bad_folders_and_options_are_refused_in_a_sentence(tmp_path, folder):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="cannot load the checkpoint"):
        CrossEncoderNLI(tmp_path)
    with pytest.raises(OptionError, match="batch_size must be a whole number of at least 1, got 0"):
        CrossEncoderNLI(folder, batch_size=0)
    with pytest.raises(OptionError, match="max_length must be a whole number of at least 1, got -1"):
        CrossEncoderNLI(folder, max_length=-1)


def test_a_value_that_is_not_finite_is_an_error(folder):
    import torch

    judge = CrossEncoderNLI(folder)
    with torch.no_grad():
        judge._classifier._model.classifier.weight.fill_(float("nan"))
    with pytest.raises(ModelError, match="not finite"):
        judge.judge(PAIRS)


def test_threads_share_a_judge(folder, judged):
    judge = CrossEncoderNLI(folder)
    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(lambda _: judge.judge(PAIRS), range(12)):
            assert np.allclose(found, judged, atol=1e-5)


def test_a_scorer_gives_one_number_between_0_and_1(tmp_path):
    scorer = CrossEncoderScorer(save_classifier(tmp_path, ["relevance"]))
    scores = scorer.score(PAIRS)
    assert scores.shape == (5,)
    assert np.all((scores > 0) & (scores < 1))
    assert len(set(scores.tolist())) > 1
    assert np.allclose(scorer.score(PAIRS[::-1]), scores[::-1], atol=1e-6)
    assert scorer.score([]).shape == (0,)
    assert isinstance(scorer, CrossEncoder)
    assert repr(scorer) == f"CrossEncoderScorer({str(tmp_path)!r})"


def test_a_scorer_with_three_outputs_is_refused(folder):
    with pytest.raises(ModelError, match="has 3 outputs and a scorer has one"):
        CrossEncoderScorer(folder)


def test_it_is_a_judge_by_name(folder):
    judge = load_nli(f"cross:{folder}")
    assert isinstance(judge, NLIModel)
    assert judge.name == f"cross:{folder}"
    assert repr(judge) == f"CrossEncoderNLI({str(folder)!r})"


def test_a_missing_extra_names_its_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'unpoison\[torch\]'"):
        CrossEncoderNLI("anything")
