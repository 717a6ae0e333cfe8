"""Sequence classifiers that say how likely a text holds a prompt injection, in place of the built-in detector."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import ModelError, clip
from unpoison.models.checkpoints import NamedModel, encodable, sigmoid, softmax
from unpoison.models.cross_encoders import PairClassifier
from unpoison.models.onnx import Graph, labels_of
from unpoison.text.alignment import Region

__all__ = ["OnnxInjectionClassifier", "TransformersInjectionClassifier", "injection_columns"]

INJECTED = frozenset(
    ("attack", "hijack", "injected", "injection", "jailbreak", "jailbreaking", "malicious", "poisoned", "unsafe")
)
"""Words in the names of the outputs that mean an injection, unless a negation stands beside them."""

NEGATED = frozenset(["benign", "legit", "no", "non", "none", "not", "safe"])

_WORD = re.compile(r"[a-z]{1,40}")
_NUMBERED = re.compile(r"label_([0-9]{1,3})")

OVERLAP = 32
"""Tokens that a window repeats of the one before."""


class WindowClassifier(NamedModel, ABC):
    """A classifier that judges a text with more tokens than it reads in windows, of which the worst counts."""

    _columns: Sequence[int]

    def probabilities(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """P(injection) of each text, by its worst window, shape (n,); 0 for a text without a token.

        Raises:
            ModelError: The model made a value that is not finite, or not one for each label.
        """
        clean = [encodable(text) for text in texts]
        owned = [(i, text[start:end]) for i, text in enumerate(clean) for start, end in self._windows(text)]
        highest = np.zeros(len(texts))
        if owned:
            likely = probability(self._logits([window for _, window in owned]), self._columns)
            np.maximum.at(highest, [i for i, _ in owned], likely)
        return highest

    @abstractmethod
    def _windows(self, text: str) -> list[Region]:
        """Where the windows of a text stand."""

    @abstractmethod
    def _logits(self, windows: list[str]) -> NDArray[np.float64]:
        """Shape (n, labels)."""


class TransformersInjectionClassifier(WindowClassifier):
    """Any sequence-classification checkpoint of the transformers library whose labels say which one is an injection.

    A folder is read from disk and nothing else; a name may be downloaded from the model hub, unless `HF_HUB_OFFLINE`
    is set. Code that comes with a checkpoint is never run. A text with more tokens than the model reads is judged in
    windows, of which the worst counts.

    Args:
        name_or_path: The checkpoint.
        label: The output that means an injection, where the names in the checkpoint's `id2label` do not say it.
        device: "cpu", "cuda", "mps", ...; None takes a GPU where there is one.
        batch_size: Windows per forward pass.
        max_length: Tokens of a window, at most what the model has positions for.

    Raises:
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded, or its labels do not say which output is an injection.
    """

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        label: str | None = None,
        device: str | None = None,
        batch_size: int = 16,
        max_length: int = 512,
    ) -> None:
        self.name = f"hf:{name_or_path}"
        self._classifier = PairClassifier(self.name, str(name_or_path), device, batch_size, max_length)
        self._columns = injection_columns(self._classifier.labels, self.name, label)

    def _windows(self, text: str) -> list[Region]:
        return self._classifier.windows(text, OVERLAP)

    def _logits(self, windows: list[str]) -> NDArray[np.float64]:
        return self._classifier.logits(windows)


class OnnxInjectionClassifier(WindowClassifier):
    """Such a classifier in a folder with `model.onnx` (or `onnx/model.onnx`), `tokenizer.json` and `config.json`.

    Args:
        folder: Where the files are.
        label: The output that means an injection, where the names in the config's `id2label` do not say it.
        batch_size: Windows per run.
        max_length: Tokens of a window, at most what the model's files allow.
        providers: onnxruntime's execution providers, the preferred first.

    Raises:
        MissingExtraError: The extra `onnx` is not installed.
        ModelError: A file is missing or unusable, or the labels do not say which output is an injection.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        label: str | None = None,
        batch_size: int = 16,
        max_length: int = 512,
        providers: Sequence[str] = ("CPUExecutionProvider",),
    ) -> None:
        self.name = f"onnx:{folder}"
        labels = labels_of(self.name, Path(folder))
        self._columns, self._outputs = injection_columns(labels, self.name, label), len(labels)
        self._graph = Graph(self.name, Path(folder), batch_size, max_length, providers, overlap=OVERLAP)

    def _windows(self, text: str) -> list[Region]:
        return self._graph.windows(text)

    def _logits(self, windows: list[str]) -> NDArray[np.float64]:
        return self._graph.logits(windows, self._outputs)


def injection_columns(labels: Mapping[int, str], name: str, label: str | None = None) -> list[int]:
    """Which outputs of a classifier mean an injection, by what its config calls them.

    A model of one output is taken for what says so; of two that are called LABEL_0 and LABEL_1 the second is.

    Args:
        labels: Its `id2label`.
        name: What messages call it.
        label: The one that means an injection, where the user knows.

    Raises:
        ModelError: The names do not say, or there is no such label.
    """
    known = {index: str(text).strip().lower() for index, text in labels.items()}
    listed = ", ".join(str(labels[index]) for index in sorted(labels))
    if label is not None:
        chosen = [index for index, text in known.items() if text == label.strip().lower()]
        if len(chosen) != 1:
            raise ModelError(f"{name} has no output {clip(label)}; its outputs are {clip(listed, 200)}")
        return chosen
    numbers = [_NUMBERED.fullmatch(text) for text in known.values()]
    if len(known) == 2 and all(numbers):
        return [index for index, text in known.items() if text == "label_1"]
    words = {index: frozenset(_WORD.findall(text)) for index, text in known.items()}
    columns = sorted(index for index, own in words.items() if own & INJECTED and not own & NEGATED)
    if columns and (len(columns) < len(known) or len(known) == 1):
        return columns
    raise ModelError(
        f"{name} calls its outputs {clip(listed, 200)}, which does not say which one is a prompt injection; "
        "name it: label=NAME"
    )


def probability(logits: NDArray[np.float64], columns: Sequence[int]) -> NDArray[np.float64]:
    """Logits of shape (n, labels) to the probability of the chosen outputs, shape (n,); of one output its sigmoid."""
    if logits.shape[1] == 1:
        return sigmoid(logits[:, 0])
    summed: NDArray[np.float64] = softmax(logits)[:, list(columns)].sum(axis=1)
    return np.minimum(summed, 1.0)
