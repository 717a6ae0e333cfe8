"""Models that read two texts together, from checkpoints of the transformers library: NLI judges and scorers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import ModelError
from unpoison.models.checkpoints import (
    NamedModel,
    in_batches,
    load_pretrained,
    nli_columns,
    sigmoid,
    softmax,
    token_windows,
)
from unpoison.text.alignment import Region
from unpoison.utils.checks import at_least
from unpoison.utils.extras import require

__all__ = ["CrossEncoderNLI", "CrossEncoderScorer", "PairClassifier"]


class CrossEncoderNLI(NamedModel):
    """An NLI judge: any three-way sequence-classification checkpoint.

    The outputs are read by the names in the checkpoint's `id2label`, never by position, for their order differs
    between models. A folder is read from disk and nothing else; a name may be downloaded from the model hub, unless
    `HF_HUB_OFFLINE` is set. Code that comes with a checkpoint is never run.

    Args:
        name_or_path: The default is the model of RADAR (Section 5.1).
        device: "cpu", "cuda", "mps", ...; None takes a GPU where there is one.
        batch_size: Pairs per forward pass.
        max_length: Tokens of a pair; the longer text is cut first.

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
        self.name = f"cross:{name_or_path}"
        self._classifier = PairClassifier(self.name, str(name_or_path), device, batch_size, max_length)
        self._columns = nli_columns(self._classifier.labels, self.name)

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n, 3): P(entailment), P(neutral), P(contradiction) of each (premise, hypothesis).

        Raises:
            ModelError: The model made a value that is not finite.
        """
        return softmax(self._classifier.logits(pairs))[:, self._columns]


class CrossEncoderScorer(NamedModel):
    """A similarity or relevance scorer: any sequence-classification checkpoint with one output.

    Loading, arguments and errors are those of `CrossEncoderNLI`.
    """

    def __init__(
        self, name_or_path: str | Path, *, device: str | None = None, batch_size: int = 16, max_length: int = 512
    ) -> None:
        self.name = f"cross:{name_or_path}"
        self._classifier = PairClassifier(self.name, str(name_or_path), device, batch_size, max_length)
        if len(self._classifier.labels) != 1:
            raise ModelError(
                f"{self.name} has {len(self._classifier.labels)} outputs and a scorer has one; "
                "use a reranker or similarity cross-encoder"
            )

    def score(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n,), in (0, 1): the sigmoid of the model's output for each (text, text), which keeps its order.

        Raises:
            ModelError: The model made a value that is not finite.
        """
        return sigmoid(self._classifier.logits(pairs)[:, 0])


class PairClassifier:
    """Pairs of texts, or texts, to logits."""

    def __init__(self, name: str, path: str, device: str | None, batch_size: int, max_length: int) -> None:
        for option, value in (("batch_size", batch_size), ("max_length", max_length)):
            at_least(option, value, 1)
        self._torch, self._name, self._batch_size = require("torch", "a cross-encoder"), name, batch_size
        kind = "SequenceClassification"
        self._tokenizer, self._model, missing = load_pretrained(kind, path, "a cross-encoder", device)
        if missing:
            raise ModelError(
                f"{name} has no trained classification head ({', '.join(missing[:3])} missing); "
                "use a checkpoint that was trained on pairs of texts"
            )
        self.device, model = self._model.device, self._model
        positions = getattr(model.config, "max_position_embeddings", None) or max_length
        self._max_length = min(max_length, self._tokenizer.model_max_length, positions)
        self._lock = Lock()  # fast tokenizers refuse to be used by two threads at once
        self.labels: dict[int, str] = dict(model.config.id2label)

    def logits(self, pairs: Sequence[tuple[str, str]] | Sequence[str]) -> NDArray[np.float64]:
        """Shape (n, labels)."""
        if not pairs:
            return np.zeros((0, len(self.labels)))
        with self._lock:
            return in_batches(pairs, self._batch_size, self._logits, self._name)

    def windows(self, text: str, overlap: int) -> list[Region]:
        """Where the windows stand in which the model can read a whole text; `overlap` tokens are in two of them."""
        if not self._tokenizer.is_fast:
            raise ModelError(f"{self._name} has no fast tokenizer, which says where tokens stand; save it with one")
        with self._lock:
            features = self._tokenizer(
                text,
                truncation=True,
                max_length=self._max_length,
                stride=min(overlap, self._max_length // 4),
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
                return_special_tokens_mask=True,
            )
        return token_windows(
            [offset for offset, special in zip(part, mask) if not special]
            for part, mask in zip(features["offset_mapping"], features["special_tokens_mask"])
        )

    def embeddings(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """What the last layer makes of the first token, shape (n, width)."""
        if not pairs:
            return np.zeros((0, self._model.config.hidden_size))
        with self._lock:
            return in_batches(pairs, self._batch_size, self._first_tokens, self._name)

    def _logits(self, pairs: list[Any]) -> NDArray[np.floating]:
        return self._run(pairs).logits.float().cpu().numpy()  # type: ignore[no-any-return]

    def _first_tokens(self, pairs: list[Any]) -> NDArray[np.floating]:
        states = self._run(pairs, output_hidden_states=True).hidden_states
        return states[-1][:, 0].float().cpu().numpy()  # type: ignore[no-any-return]

    def _run(self, pairs: list[Any], **options: bool) -> Any:
        texts = [pairs] if isinstance(pairs[0], str) else map(list, zip(*pairs))
        features = self._tokenizer(
            *texts, truncation=True, max_length=self._max_length, padding=True, return_tensors="pt"
        )
        with self._torch.inference_mode():
            return self._model(**features.to(self.device), **options)
