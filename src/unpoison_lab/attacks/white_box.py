"""Models opened for attacks: encoders with word embeddings and gradients, language models with probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import OptionError, clip
from unpoison.models.checkpoints import checkpoint_errors, from_disk
from unpoison.models.loading import load_encoder
from unpoison.models.prompts import Prompt, answer_prompt
from unpoison.utils.checks import at_least
from unpoison.utils.extras import require
from unpoison.utils.plain_text import encodable

__all__ = ["CausalModel", "OpenEncoder", "WhiteBox", "as_white_box", "has_gradients", "question_vectors"]


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


READABILITY = "Is the text unintelligible? Reply Yes or No."
"""Adversarial Decoding's second score."""


class CausalModel:
    """Any causal language model of the transformers library; code that comes with a checkpoint is never run.

    Args:
        name_or_path: A name on the model hub, or a folder.
        window: The most tokens of one prompt; longer ones lose their start.
        max_new_tokens: The longest reply that `read` generates.

    Raises:
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded.
    """

    def __init__(self, name_or_path: str | Path, *, window: int = 2048, max_new_tokens: int = 32) -> None:
        library = require("transformers", "a local language model")
        self._torch = require("torch", "a local language model")
        path = str(name_or_path)
        with checkpoint_errors(path):
            local = from_disk(path)
            self._tokenizer = library.AutoTokenizer.from_pretrained(path, local_files_only=local)
            self._model = library.AutoModelForCausalLM.from_pretrained(path, local_files_only=local).eval()
        self.name = f"hf:{path}"
        self._max_new_tokens = at_least("max_new_tokens", max_new_tokens, 1)
        positions = getattr(self._model.config, "max_position_embeddings", None) or window
        # Room behind the prompt for a reply, or for an answer to be scored.
        self._window = max(1, min(at_least("window", window, 8), positions - 2 * self._max_new_tokens))

    def propose(self, instruction: str, texts: Sequence[str], /, *, count: int, mass: float) -> list[list[str]]:
        """For each text the `count` likeliest continuations by one token inside the top `mass`, the end left out."""
        proposed = []
        for text in texts:
            prompt = Prompt("free", instruction, closing=text)
            logits = self._logits(self._prompt_ids(prompt, keep_closing=True))
            logits[self._tokenizer.all_special_ids] = -np.inf
            odds = np.exp(logits - logits.max())
            odds /= odds.sum()
            order = np.argsort(-odds, kind="stable")[:count]
            inside = order[np.concatenate([[0.0], np.cumsum(odds[order])[:-1]]) < mass]
            ids = self._ids(text)
            longer = [str(self._tokenizer.decode([*ids, int(i)], skip_special_tokens=True)) for i in inside]
            proposed.append([candidate for candidate in longer if candidate.strip() and candidate != text])
        return proposed

    def naturalness(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """(l_No - l_Yes) / (l_No + l_Yes) on raw logits after asking whether the text is unintelligible, shape (n,)."""
        yes, no = (self._ids(word)[0] for word in ("Yes", "No"))
        odds = []
        for text in texts:
            prompt = Prompt("free", READABILITY, notes={"Text": text}, closing="Yes or No:", max_tokens=1)
            logits = self._logits(self._prompt_ids(prompt))
            total = logits[no] + logits[yes]
            odds.append((logits[no] - logits[yes]) / total if total else 0.0)
        return np.array(odds, dtype=float)

    def read(self, question: str, passages: Sequence[str], answer: str, /) -> list[tuple[str, float]]:
        """For each passage alone: the greedy reply, and p(answer | question, passage) over the answer's tokens."""
        readings = []
        for passage in passages:
            prompt_ids = self._prompt_ids(answer_prompt(question, [passage], abstain=False))
            readings.append((self._reply(prompt_ids), self._likelihood(prompt_ids, answer)))
        return readings

    def _likelihood(self, prompt_ids: list[int], answer: str) -> float:
        wanted = self._ids(answer)
        with self._torch.inference_mode():
            tokens = self._torch.tensor([[*prompt_ids, *wanted]])
            logits = self._model(tokens).logits[0, len(prompt_ids) - 1 : -1].float().log_softmax(dim=-1)
        chosen = logits[range(len(wanted)), wanted]
        return float(chosen.sum().exp())

    def _reply(self, prompt_ids: list[int]) -> str:
        tokens = self._torch.tensor([prompt_ids])
        with self._torch.inference_mode():
            generated = self._model.generate(
                tokens,
                attention_mask=self._torch.ones_like(tokens),
                max_new_tokens=self._max_new_tokens,
                do_sample=False,
                pad_token_id=self._tokenizer.pad_token_id or self._tokenizer.eos_token_id or 0,
            )
        return str(self._tokenizer.decode(generated[0, len(prompt_ids) :], skip_special_tokens=True)).strip()

    def _logits(self, ids: list[int]) -> NDArray[np.float64]:
        with self._torch.inference_mode():
            return np.asarray(self._model(self._torch.tensor([ids])).logits[0, -1].double().numpy())

    def _ids(self, text: str) -> list[int]:
        return [int(i) for i in self._tokenizer(encodable(text), add_special_tokens=False)["input_ids"]]

    def _prompt_ids(self, prompt: Prompt, *, keep_closing: bool = False) -> list[int]:
        """The prompt's ids, by the chat template if there is one; `keep_closing` continues the closing line."""
        if self._tokenizer.chat_template is None:
            return self._ids(prompt.text() + ("" if keep_closing else "\n"))[-self._window :]
        messages: list[Any] = list(prompt.messages())
        if keep_closing:
            messages = [{"role": "user", "content": prompt.system}]
        text = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return self._ids(str(text) + (prompt.closing if keep_closing else ""))[-self._window :]
