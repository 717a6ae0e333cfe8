"""Classifiers of prompt injections: which label counts, long texts in windows, one answer from both formats."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from checkpoints import classifier, export, save_classifier, save_tokenizer
from needs import need
from unpoison import Grada, Guard
from unpoison.cli import app
from unpoison.defenses.loading import load_defense
from unpoison.errors import MissingExtraError, ModelError, OptionError
from unpoison.models.injection import (
    OnnxInjectionClassifier,
    TransformersInjectionClassifier,
    injection_columns,
    probability,
)
from unpoison.models.loading import load_injection_model
from unpoison.models.protocols import InjectionClassifier

pytestmark = pytest.mark.needs("transformers", "torch")

LABELS = ["SAFE", "INJECTION"]
TEXTS = ["Paris is the capital of France.", "Lyon is a large city.", "the old tower in the river", "", "?"]
LONG = "the old tower is in the city . " * 40 + "paris paris not not"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_classifier(tmp_path_factory.mktemp("classifier"), LABELS)


@pytest.fixture(scope="module")
def onnx_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("onnxruntime")
    home = save_tokenizer(tmp_path_factory.mktemp("onnx"))
    export(classifier(LABELS), "logits", home / "model.onnx")
    (home / "config.json").write_text((folder / "config.json").read_text())
    return home


@pytest.mark.parametrize(
    ("labels", "columns"),
    [
        (["SAFE", "INJECTION"], [1]),
        (["INJECTION", "LEGIT"], [0]),
        (["BENIGN", "INJECTION", "JAILBREAK"], [1, 2]),
        (["benign", "malicious"], [1]),
        (["SAFE", "INJECTION_RISK"], [1]),
        (["clean", "injection/jailbreak"], [1]),
        (["LABEL_0", "LABEL_1"], [1]),
        (["no_injection", "injection"], [1]),
        (["not unsafe", "unsafe"], [1]),
        (["prompt injection"], [0]),
    ],
)
def test_the_label_is_read_from_its_name(labels: list[str], columns: list[int]) -> None:
    assert injection_columns(dict(enumerate(labels)), "m") == columns


@pytest.mark.parametrize(
    "labels",
    [["positive", "negative"], ["LABEL_0", "LABEL_1", "LABEL_2"], ["INJECTION", "JAILBREAK"], ["LABEL_0"], ["A", "B"]],
)
def test_labels_that_do_not_say_it_are_named(labels: list[str]) -> None:
    with pytest.raises(ModelError, match="label=NAME") as caught:
        injection_columns(dict(enumerate(labels)), "m")
    assert ", ".join(labels) in str(caught.value)


def test_the_user_may_name_the_label() -> None:
    assert injection_columns({0: "A", 1: "B"}, "m", "b") == [1]
    with pytest.raises(ModelError, match="has no output 'C'; its outputs are 'A, B'"):
        injection_columns({0: "A", 1: "B"}, "m", "C")


def test_probabilities_are_those_of_the_chosen_outputs() -> None:
    logits = np.log([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]])
    np.testing.assert_allclose(probability(logits, [1, 2]), [0.8, 0.1])
    np.testing.assert_allclose(probability(np.array([[0.0], [np.log(3)]]), [0]), [0.5, 0.75])


def test_it_is_the_softmax_of_the_checkpoint(folder: Path) -> None:
    import torch
    from transformers import AutoTokenizer

    model = load_injection_model(str(folder))
    assert isinstance(model, TransformersInjectionClassifier)
    assert isinstance(model, InjectionClassifier)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    found = model.probabilities(TEXTS[:3])
    with torch.inference_mode():
        for text, value in zip(TEXTS, found):
            logits = classifier(LABELS)(**tokenizer(text, return_tensors="pt")).logits
            assert value == pytest.approx(float(logits.softmax(-1)[0, 1]), abs=1e-5)
    assert len(set(np.round(found, 3))) == 3
    assert model.probabilities([]).shape == (0,)
    assert model.probabilities([""]).tolist() == [0.0]


def test_the_other_label_is_the_rest(folder: Path) -> None:
    one, other = load_injection_model(f"hf:{folder}"), load_injection_model(f"hf:{folder},label=SAFE")
    np.testing.assert_allclose(one.probabilities(TEXTS[:3]) + other.probabilities(TEXTS[:3]), 1, atol=1e-6)


def test_the_worst_window_of_a_long_text_counts(folder: Path) -> None:
    """The checkpoint reads 64 tokens; what stands behind them is judged all the same."""
    model = TransformersInjectionClassifier(folder)
    windows = [LONG[start:end] for start, end in model._classifier.windows(LONG, 16)]
    assert len(windows) > 4
    assert windows[-1].endswith("not not")
    assert all(first[-9:] in LONG for first in windows)
    found = model.probabilities([LONG, TEXTS[0]])
    assert found[0] == pytest.approx(model.probabilities(windows).max(), abs=0.02)
    assert found[0] >= model.probabilities([LONG[:150]])[0] - 1e-6


def test_no_text_changes_how_another_is_judged(folder: Path) -> None:
    model = TransformersInjectionClassifier(folder, batch_size=2)
    alone = np.concatenate([model.probabilities([text]) for text in [*TEXTS, LONG]])
    np.testing.assert_allclose(model.probabilities([*TEXTS, LONG]), alone, atol=1e-5)


def test_both_formats_say_the_same(folder: Path, onnx_folder: Path) -> None:
    model = load_injection_model(str(onnx_folder))
    assert isinstance(model, OnnxInjectionClassifier)
    texts = [*TEXTS, LONG, "paris \ud800 lyon"]
    np.testing.assert_allclose(
        model.probabilities(texts), load_injection_model(str(folder)).probabilities(texts), atol=1e-4
    )
    assert model.probabilities([]).shape == (0,)


def test_a_graph_with_another_number_of_outputs_is_refused(onnx_folder: Path, tmp_path: Path) -> None:
    home = save_tokenizer(tmp_path / "other")
    (home / "model.onnx").write_bytes((onnx_folder / "model.onnx").read_bytes())
    (home / "config.json").write_text(json.dumps({"id2label": {"0": "SAFE", "1": "UNSAFE", "2": "OTHER"}}))
    with pytest.raises(ModelError, match=r"shape \(1, 2\) instead of \(texts, 3\)"):
        load_injection_model(f"onnx:{home}").probabilities(["paris"])


def test_a_classifier_of_something_else_is_refused(tmp_path: Path) -> None:
    save_classifier(tmp_path / "nli", ["entailment", "neutral", "contradiction"])
    with pytest.raises(ModelError, match=r"entailment, neutral, contradiction.*which one is a prompt injection"):
        load_injection_model(str(tmp_path / "nli"))


def test_what_cannot_be_loaded_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="cannot load the checkpoint"):
        load_injection_model(str(tmp_path / "empty"))
    with pytest.raises(ModelError, match=r"config\.json"):
        load_injection_model(f"onnx:{tmp_path}")
    with pytest.raises(OptionError, match="has no option 'colour'"):
        load_injection_model(f"onnx:{tmp_path},colour=red")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'unpoison\[torch\]'"):
        load_injection_model(str(tmp_path))


def test_a_defense_takes_its_string(folder: Path) -> None:
    """Everything is an injection to one with an inverted label, or to one without: random weights decide, both ways."""
    for label in LABELS:
        guard = load_defense(f"guard:prompt_injection=drop,injection_model={folder}")
        assert guard.models.injection is not None
        other = Grada(injection_model=f"hf:{folder},label={label}", prompt_injection="flag")
        screening = other.screen("where is paris", TEXTS[:3])
        expected = load_injection_model(f"hf:{folder},label={label}").probabilities(TEXTS[:3])
        np.testing.assert_allclose(screening.evidence["prompt_injection"], expected, atol=1e-5)
        flagged = [v.reason.code == "prompt_injection.flagged" for v in screening.verdicts]
        assert flagged == (expected > 0.5).tolist()


def test_its_calls_are_in_the_account(folder: Path) -> None:
    answer = Guard(generator="extractive", injection_model=str(folder)).answer("where is paris", TEXTS[:3])
    kinds = {(call.kind, call.purpose) for call in answer.calls}
    assert ("classify", "prompt injection") in kinds


def test_the_command_line(folder: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"query": "where is paris", "passages": TEXTS[:3]}) + "\n")
    expected = load_injection_model(str(folder)).probabilities(TEXTS[:3]) > 0.5
    for command in (["screen", "--json", str(rows)], ["ask", "-g", "extractive", "--json", str(rows)]):
        result = CliRunner().invoke(
            app, [*command, "-d", "vanilla:prompt_injection=flag", "--injection-model", str(folder)]
        )
        assert result.exit_code == 0, result.output
        row = json.loads(next(line for line in result.output.splitlines() if line.startswith("{")))
        codes = [verdict["code"] == "prompt_injection.flagged" for verdict in row["screening"]["verdicts"]]
        assert codes == expected.tolist()


def test_a_batch_takes_it(folder: Path) -> None:
    from unpoison.batch import Screener

    screener = Screener("vanilla:prompt_injection=flag", injection_model=str(folder))
    (row,) = screener([{"query": "where is paris", "passages": TEXTS[:3]}])
    codes = [verdict["code"] == "prompt_injection.flagged" for verdict in row["screening"]["verdicts"]]
    assert codes == (load_injection_model(str(folder)).probabilities(TEXTS[:3]) > 0.5).tolist()
