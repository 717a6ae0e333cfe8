"""HLATR: a list-aware third stage of reranking (Zhang et al., 2022).

A small transformer over the whole list combines a cross-encoder's embedding of each (query, passage) with the passage's
retrieval rank.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError, clip
from unpoison.models.checkpoints import sigmoid
from unpoison.models.classifiers import CrossEncoderScorer
from unpoison.utils.extras import require

__all__ = ["HEAD_FORM", "HeadSettings", "HlatrScorer"]

HEAD_FORM = "unpoison hlatr head 1"
POSITIONS = 110
"""Number of rank embeddings; later ranks share the last one."""

MAX_SIZE = 65_536
"""Maximum of the sizes in a head's settings, which come from an untrusted file."""


class HeadSettings(NamedTuple):
    """The sizes of a head; the defaults are the paper's."""

    features: int
    hidden: int = 128
    layers: int = 4
    heads: int = 2
    dropout: float = 0.1


class HlatrScorer(CrossEncoderScorer):
    """A list-aware scorer of (query, passage) pairs, over any reranker's checkpoint.

    In one call of `score`, the pairs with the same first text are a list, in retrieval order. Without a head the scores
    are those of the checkpoint, independent of rank and other passages.

    Args:
        name_or_path: The reranker's checkpoint, with one output.
        head: A folder written by `python -m benchmarks train_hlatr` for this checkpoint; None for its own scores.
        device: "cpu", "cuda", ...; None for a GPU if there is one.
        batch_size: Pairs per forward pass.
        max_length: Maximum tokens of a pair.

    Raises:
        InputError: The folder has no head for this checkpoint.
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded, or has more than one output.
    """

    KIND = "hlatr"

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        head: str | Path | None = None,
        device: str | None = None,
        batch_size: int = 16,
        max_length: int = 512,
    ) -> None:
        super().__init__(name_or_path, device=device, batch_size=batch_size, max_length=max_length)
        self.name += "" if head is None else f",head={head}"
        self._head: Any = None
        if head is not None:
            settings, weights = _load_head(Path(head), str(name_or_path))
            with _head_errors(Path(head)):
                self._head = self.build_head(settings)
                self._head.load_state_dict(weights)
            self._head.eval()

    def score(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n,), in (0, 1).

        Raises:
            ModelError: The model returned a value that is not finite.
        """
        if self._head is None:
            return super().score(pairs)
        lists: dict[str, list[int]] = {}
        for position, (query, _) in enumerate(pairs):
            lists.setdefault(query, []).append(position)
        embeddings, scores = self.embeddings(pairs), np.zeros(len(pairs))
        with self._torch.inference_mode():
            for members in lists.values():
                scores[members] = self.head_scores(self._head, self._tensor(embeddings[members])).cpu().double().numpy()
        return sigmoid(scores)

    def build_head(self, settings: HeadSettings) -> Any:
        """Projection plus rank embedding, layer norm, dropout, a transformer over the list, one score per passage."""
        nn, (features, hidden, layers, heads, dropout) = self._torch.nn, settings
        layer = nn.TransformerEncoderLayer(hidden, heads, 4 * hidden, dropout, batch_first=True)
        parts = {
            "projection": nn.Linear(features, hidden),
            "rank": nn.Embedding(POSITIONS, hidden),
            "norm": nn.LayerNorm(hidden),
            "dropout": nn.Dropout(dropout),
            "transformer": nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
            "score": nn.Linear(hidden, 1),
        }
        return nn.ModuleDict(parts).to(self.device)

    def head_scores(self, head: Any, embeddings: Any) -> Any:
        """The scores of one list, shape (n,), from its embeddings, (n, features)."""
        ranks = self._torch.arange(len(embeddings), device=embeddings.device).clamp(max=POSITIONS - 1)
        items = head["dropout"](head["norm"](head["projection"](embeddings) + head["rank"](ranks)))
        return head["score"](head["transformer"](items[None]))[0, :, 0]

    def _tensor(self, embeddings: NDArray[np.float64]) -> Any:
        return self._torch.tensor(embeddings, dtype=self._torch.float32, device=self.device)


@contextmanager
def _head_errors(folder: Path) -> Iterator[None]:
    """Raise any error of a damaged folder as an `InputError`."""
    try:
        yield
    except Exception as error:  # OSError, ValueError, KeyError, SafetensorError, RuntimeError for shapes, ...
        raise InputError(
            f"{clip(str(folder), 200)} has no head of HLATR for this checkpoint ({type(error).__name__}: "
            f"{clip(str(error), 120)}); train one with benchmarks/training/train_hlatr.py"
        ) from error


def _load_head(folder: Path, checkpoint: str) -> tuple[HeadSettings, dict[str, Any]]:
    with _head_errors(folder):
        with (folder / "head.json").open("rb") as file:
            header = json.loads(file.read(10_000))
        if header["form"] != HEAD_FORM or header["checkpoint"] != checkpoint:
            raise ValueError(f"it was trained on {clip(header['checkpoint'])}")
        settings = HeadSettings(**{name: header[name] for name in HeadSettings._fields})
        if any(not isinstance(size, int) or not 0 < size <= MAX_SIZE for size in settings[:4]):
            raise ValueError("its settings are not sizes")
        return settings, require("safetensors.torch", "loading a head").load_file(folder / "head.safetensors")
