"""White-box encoders: word embeddings, tokens and gradients, for attacks that use them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import OptionError, clip
from unpoison.models.loading import load_encoder
from unpoison.utils.extras import require

__all__ = ["OpenEncoder", "WhiteBox", "as_white_box", "has_gradients", "question_vectors"]


class WhiteBox(Protocol):
    """An encoder with access to embeddings, tokens and gradients.

    Attributes:
        vocabulary: The word-embedding matrix, shape (v, h).
        forbidden: Ids that no position may take: special and unused tokens.
        mask: The id of a position without a token yet.
        window: The most tokens of one text, special ones not counted.
    """

    vocabulary: NDArray[np.float32]
    forbidden: NDArray[np.int64]
    mask: int
    window: int

    def tokens(self, text: str) -> list[int]:
        """Ids without special tokens."""

    def text(self, ids: list[int]) -> str:
        """The text of ids, special tokens left out."""

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """Vectors of texts as the retriever makes them, shape (n, d)."""

    def embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors of token sequences of one length, shape (n, l) to (n, d); special tokens are added inside."""

    def gradient(self, ids: NDArray[np.int64], direction: NDArray[np.float32]) -> NDArray[np.float32]:
        """d(embed(ids) . direction) / d(word embeddings), shape (l, h)."""


def question_vectors(box: WhiteBox, questions: list[str]) -> NDArray[np.float32]:
    """Vectors of questions, by the query tower if the encoder has one."""
    vectors: NDArray[np.float32] = getattr(box, "encode_queries", box.encode)(questions)
    return vectors


def has_gradients(encoder: Any) -> bool:
    """Whether an encoder has gradients, without loading it: not the lexical one or one behind a network."""
    if isinstance(encoder, str):
        return encoder == "minilm" or encoder.startswith("st:")
    return any(hasattr(encoder, name) for name in ("checkpoint", "gradient", "tokenizer"))


def as_white_box(encoder: Any, similarity: str, max_tokens: int) -> WhiteBox:
    """A `WhiteBox` unchanged; anything else through torch."""
    if hasattr(encoder, "gradient"):
        return encoder  # type: ignore[no-any-return]
    return OpenEncoder(encoder, similarity=similarity, max_tokens=max_tokens)


class OpenEncoder:
    """A `WhiteBox` around a sentence-transformers model; a plain Transformers checkpoint gets mean pooling.

    Args:
        encoder: "minilm", "st:NAME_OR_PATH", a `SentenceTransformerEncoder`, or a sentence-transformers model.
        similarity: `cosine` scales every vector to length 1; `dot` leaves them as the model makes them.
        max_tokens: The window, special tokens included; never more than the model's own.

    Raises:
        MissingExtraError: The extra `torch` is not installed.
        OptionError: Not an encoder with gradients.
    """

    def __init__(self, encoder: Any, *, similarity: str = "dot", max_tokens: int = 128) -> None:
        self._torch = require("torch", "an attack by gradient")
        opened: Any = load_encoder(encoder) if isinstance(encoder, str) else encoder
        model = getattr(opened, "checkpoint", opened)
        transformer = next((part for part in model if hasattr(part, "auto_model")), None) if _iterable(model) else None
        if transformer is None:
            raise OptionError(
                f"encoder must be a sentence-transformers encoder such as 'minilm' or 'st:NAME', got {clip(encoder)}; "
                "an attack by gradient cannot open any other"
            )
        self._model, self._tokenizer = model.eval(), model.tokenizer
        self._unit = similarity == "cosine"
        self._questions = getattr(opened, "query_checkpoint", None) or model
        self._words = transformer.auto_model.get_input_embeddings()
        self.vocabulary: NDArray[np.float32] = self._words.weight.detach().cpu().float().numpy()
        before, after = self._frame()
        self._before, self._after = before, after
        self.window = min(max_tokens, int(model.max_seq_length or max_tokens)) - len(before) - len(after)
        special = set(self._tokenizer.all_special_ids)
        names = self._tokenizer.convert_ids_to_tokens(list(range(len(self.vocabulary))))
        unused = {i for i, name in enumerate(names) if name is None or name.startswith("[unused")}
        self.forbidden = np.array(sorted(special | unused), dtype=np.int64)
        mask = self._tokenizer.mask_token_id
        self.mask = int(mask if mask is not None else self._tokenizer.unk_token_id)

    def tokens(self, text: str) -> list[int]:
        """Ids without special tokens."""
        return [int(i) for i in self._tokenizer(text, add_special_tokens=False, truncation=False)["input_ids"]]

    def text(self, ids: list[int]) -> str:
        """The text of ids, special tokens left out."""
        return str(self._tokenizer.decode(ids, skip_special_tokens=True)).strip()

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """Vectors of texts as the retriever makes them, shape (n, d)."""
        return self._vectors(self._model, texts)

    def encode_queries(self, texts: list[str]) -> NDArray[np.float32]:
        """Vectors of questions, by the query tower if there is one."""
        return self._vectors(self._questions, texts)

    def _vectors(self, model: Any, texts: list[str]) -> NDArray[np.float32]:
        vectors = np.asarray(model.encode(texts, show_progress_bar=False), dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12) if self._unit else vectors

    def embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors of token sequences of one length, shape (n, l) to (n, d)."""
        with self._torch.inference_mode():
            return np.asarray(self._forward(ids).float().cpu().numpy(), dtype=np.float32)

    def gradient(self, ids: NDArray[np.int64], direction: NDArray[np.float32]) -> NDArray[np.float32]:
        """d(embed(ids) . direction) / d(word embeddings), shape (l, h)."""
        caught: list[Any] = []

        def keep(_module: Any, _inputs: Any, output: Any) -> Any:
            caught.append(output.detach().requires_grad_(True))
            return caught[-1]

        hook = self._words.register_forward_hook(keep)
        try:
            vector = self._forward(ids[None, :])[0]
        finally:
            hook.remove()
        objective = vector @ self._torch.as_tensor(direction, dtype=vector.dtype, device=vector.device)
        (slope,) = self._torch.autograd.grad(objective, caught[-1])
        inner = slope[0, len(self._before) : slope.shape[1] - len(self._after)]
        return np.asarray(inner.float().cpu().numpy(), dtype=np.float32)

    def _forward(self, ids: NDArray[np.int64]) -> Any:
        rows = [[*self._before, *map(int, row), *self._after] for row in ids]
        tokens = self._torch.tensor(rows, device=self._words.weight.device)
        features = {"input_ids": tokens, "attention_mask": self._torch.ones_like(tokens)}
        if "token_type_ids" in self._tokenizer.model_input_names:
            features["token_type_ids"] = self._torch.zeros_like(tokens)
        vectors = self._model(features)["sentence_embedding"]
        return self._torch.nn.functional.normalize(vectors, dim=-1) if self._unit else vectors

    def _frame(self) -> tuple[list[int], list[int]]:
        """The special tokens that the tokenizer puts before and behind a text."""
        bare = self.tokens("a")
        framed = [int(i) for i in self._tokenizer("a")["input_ids"]]
        start = framed.index(bare[0])
        return framed[:start], framed[start + len(bare) :]


def _iterable(model: Any) -> bool:
    return hasattr(model, "__iter__") and hasattr(model, "tokenizer") and hasattr(model, "encode")
