"""Classifiers of pairs of texts: NLI judges and scorers.

Each is a checkpoint of the transformers library. Outputs are identified by the names in `id2label`, never by position.
A folder is read from disk only; a name may be downloaded from the model hub, unless `HF_HUB_OFFLINE` is set. Code in a
checkpoint is never run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import ModelError, clip
from unpoison.models.checkpoints import NamedModel, in_batches, load_pretrained, sigmoid, softmax
from unpoison.utils.checks import at_least
from unpoison.utils.extras import require

__all__ = ["CrossEncoderNLI", "CrossEncoderScorer", "nli_columns"]


class TorchClassifier(NamedModel):
    """Base of the models: pairs of texts to logits.

    Args:
        path: The checkpoint.
        device: "cpu", "cuda", "mps", ...; None for a GPU if there is one.
        batch_size: Pairs per forward pass.
        max_length: Maximum tokens of a pair, at most the model's own limit; the longer text is truncated first.
    """

    def __init__(self, path: str, device: str | None, batch_size: int, max_length: int) -> None:
        self.name = f"cross:{path}"
        for option, value in (("batch_size", batch_size), ("max_length", max_length)):
            at_least(option, value, 1)
        self._torch, self._batch_size = require("torch", "a cross-encoder"), batch_size
        kind = "SequenceClassification"
        self._tokenizer, self._model, missing = load_pretrained(kind, path, "a cross-encoder", device)
        if missing:
            raise ModelError(
                f"{self.name} has no trained classification head ({', '.join(missing[:3])} missing); "
                "use a checkpoint that was trained on pairs of texts"
            )
        self.device, model = self._model.device, self._model
        positions = getattr(model.config, "max_position_embeddings", None) or max_length
        self._max_length = min(max_length, self._tokenizer.model_max_length, positions)
        self._lock = Lock()  # fast tokenizers refuse to be used by two threads at once
        self.labels: dict[int, str] = dict(model.config.id2label)

    def logits(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Shape (n, labels)."""
        if not pairs:
            return np.zeros((0, len(self.labels)))
        with self._lock:
            return in_batches(pairs, self._batch_size, self._logits, self.name)

    def _logits(self, pairs: list[Any]) -> NDArray[np.floating]:
        features = self._tokenizer(
            *map(list, zip(*pairs)), truncation=True, max_length=self._max_length, padding=True, return_tensors="pt"
        )
        with self._torch.inference_mode():
            return self._model(**features.to(self.device)).logits.float().cpu().numpy()  # type: ignore[no-any-return]


class CrossEncoderNLI(TorchClassifier):
    """An NLI judge: any three-way sequence classifier.

    Args:
        name_or_path: The default is the model of RADAR (Section 5.1).
        device: "cpu", "cuda", "mps", ...; None for a GPU if there is one.
        batch_size: Pairs per forward pass.
        max_length: Maximum tokens of a pair; the longer text is truncated first.

    Raises:
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded, or its labels do not name the three classes.
    """

    def __init__(
        self,
        name_or_path: str | Path = "MoritzLaurer/DeBERTa-v3-large-mnli-fever-anli-ling-wanli",
        *,
        device: str | None = None,
        batch_size: int = 16,
        max_length: int = 512,
    ) -> None:
        super().__init__(str(name_or_path), device, batch_size, max_length)
        self._columns = nli_columns(self.labels, self.name)

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n, 3): P(entailment), P(neutral), P(contradiction) of each (premise, hypothesis).

        Raises:
            ModelError: The model made a value that is not finite.
        """
        return softmax(self.logits(pairs))[:, self._columns] if pairs else np.zeros((0, 3))


class CrossEncoderScorer(TorchClassifier):
    """A similarity or relevance scorer: any sequence classifier with one output.

    Arguments and errors are those of `CrossEncoderNLI`.
    """

    def __init__(
        self, name_or_path: str | Path, *, device: str | None = None, batch_size: int = 16, max_length: int = 512
    ) -> None:
        super().__init__(str(name_or_path), device, batch_size, max_length)
        if len(self.labels) != 1:
            raise ModelError(
                f"{self.name} has {len(self.labels)} outputs and a scorer has one; "
                "use a reranker or similarity cross-encoder"
            )

    def score(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n,), in (0, 1): the sigmoid of the model's output for each (text, text), which keeps its order.

        Raises:
            ModelError: The model made a value that is not finite.
        """
        return sigmoid(self.logits(pairs)[:, 0])


def nli_columns(labels: Mapping[int, str], name: str) -> list[int]:
    """The outputs of an NLI model for entailment, neutral and contradiction, by their labels.

    Raises:
        ModelError: The labels are ambiguous, or there are not three.
    """
    labelled = ", ".join(str(labels[i]) for i in sorted(labels))
    if len(labels) != 3:
        raise ModelError(
            f"{name} has {len(labels)} labels ({clip(labelled, 120)}); a judge needs entailment, neutral and "
            "contradiction, and a model of two labels cannot say what contradicts; use a three-way one"
        )
    columns = []
    for wanted in ("entail", "neutral", "contradict"):
        matching = [i for i, label in labels.items() if str(label).strip().lower().startswith(wanted)]
        if len(matching) != 1:
            raise ModelError(
                f"{name} calls its outputs {clip(labelled, 120)}, which does not say which is entailment, neutral and "
                "contradiction, and their order differs between models; name them in id2label of its config.json"
            )
        columns += matching
    return columns
