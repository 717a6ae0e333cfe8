"""Extractive question answering: the words of a passage that answer a question, from logits of tokens.

A passage is cut into overlapping windows; a model scores each token of a window as the start or end of an answer, and
the best valid pair is the window's answer. Models run with onnxruntime or torch.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import ModelError, clip
from unpoison.models.checkpoints import load_pretrained
from unpoison.utils.assets import check_published, open_graph
from unpoison.utils.extras import require
from unpoison.utils.plain_text import encodable
from unpoison.utils.threads import Workers

__all__ = [
    "Marks", "OnnxSpans", "SpanModel", "SpanSettings", "TokenWindow", "TorchSpans", "WindowCutter", "best_span",
    "load_answerer",
]  # fmt: skip

MAX_ANSWER_TOKENS = 30
"""Maximum tokens of an answer."""

OVERLAP = 64
"""Overlap of two windows of a passage in tokens: twice an answer, or less for small windows."""

ANSWER = 32
"""Maximum tokens of an answer that is compared with another."""

MAX_SPAN_CHARS = 400
"""Maximum characters of an answer, because a token may represent any number of blanks or letters."""

SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese."""

Logits = NDArray[np.float32]


class Marks(NamedTuple):
    """The output of a model for one window.

    Attributes:
        start, end: Logits per token, shape (length,).
        relation: Logits of same, rival and compatible, shape (3,), if the model has this output.
    """

    start: Logits
    end: Logits
    relation: Logits | None = None


@dataclass(frozen=True, slots=True)
class TokenWindow:
    """One input of the model.

    Attributes:
        ids, types: Token ids and segment numbers, shape (length,).
        first, last: The range of the passage's tokens, `last` exclusive.
        offsets: Start and end of every token in the passage.
        words: For every token of the passage, a number that the tokens of one word share.
    """

    ids: NDArray[np.int64]
    types: NDArray[np.int64]
    first: int
    last: int
    offsets: Sequence[tuple[int, int]]
    words: Sequence[int | None]

    def of(self, passage: str) -> str:
        """Its part of the passage."""
        return passage[self.offsets[self.first][0] : self.offsets[self.last - 1][1]] if self.first < self.last else ""


class BestSpan(NamedTuple):
    """Characters `start` to `end` of the passage, and the log-odds of these words against no answer."""

    start: int
    end: int
    odds: float


class SpanModel(Protocol):
    """Runs windows independently of each other."""

    name: str

    def run(self, windows: Sequence[TokenWindow]) -> list[Marks]: ...


@dataclass(frozen=True, slots=True)
class SpanSettings:
    """The settings in a folder's `reader.json`; defaults for other checkpoints.

    Attributes:
        window: Maximum tokens of question and passage together.
        question: Maximum tokens of the question.
        slope, intercept: log-odds of an answer = slope * (span's logit - none's logit) + intercept, fitted on held-out
            questions.
        temperature: Divides the logits of a relation, fitted in the same way.
        hashes: SHA-256 of the other files.
        languages: Tags of the training languages, such as "en"; empty for any. Texts in other languages, as detected by
            `text.languages`, are not read.
    """

    window: int = 384
    question: int = 64
    slope: float = 1.0
    intercept: float = 0.0
    temperature: float = 1.0
    hashes: tuple[tuple[str, str], ...] = ()
    languages: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path, name: str) -> SpanSettings:
        """Read the settings if there are any, and verify the hashes of the files.

        Raises:
            ModelError: The settings are malformed, or a file has another hash.
        """
        file = folder / "reader.json"
        if not file.is_file():
            return cls()
        try:
            content = json.loads(file.read_text("utf-8"))
            hashes = tuple(sorted((str(part), str(value)) for part, value in content.pop("sha256").items()))
            settings = cls(**{**content, "languages": tuple(content.get("languages", ()))}, hashes=hashes)
            settings._check()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ModelError(
                f"{name} has an unusable reader.json ({type(error).__name__}: {clip(str(error), 100)}); "
                "install the package again"
            ) from error
        check_published(folder, dict(settings.hashes), name)
        return settings

    def _check(self) -> None:
        """Validate types and ranges."""
        whole = all(type(value) is int for value in (self.window, self.question))
        finite = all(map(math.isfinite, (self.slope, self.intercept, self.temperature)))
        bounds = whole and 16 <= self.window <= 8192 and 4 <= self.question <= self.window // 2
        tags = all(isinstance(tag, str) and len(tag) > 1 for tag in self.languages)
        if not (bounds and finite and tags and self.slope > 0 and self.temperature > 0):
            raise ValueError("a figure is out of its range")


class WindowCutter:
    """Converts questions and passages to windows, with a tokenizer of the tokenizers library.

    Special tokens spelled in a passage ("[SEP]", "</s>") are tokenised as text.
    """

    def __init__(self, source: str, settings: SpanSettings, name: str) -> None:
        tokenizers = require("tokenizers", "the reader", "reader")
        try:
            self._pairs, self._single = (tokenizers.Tokenizer.from_str(source) for _ in range(2))
            for tokenizer in (self._pairs, self._single):
                tokenizer.encode_special_tokens = True
                tokenizer.no_padding()
            self._single.no_truncation()
            overlap = min(OVERLAP, (settings.window - settings.question) // 4)
            self._pairs.enable_truncation(settings.window, stride=overlap, strategy="only_second")
            marked = self._pairs.encode("a", "a").sequence_ids[:1] == [None]
        except Exception as error:  # the library raises bare exceptions
            raise ModelError(
                f"{name} has an unusable tokenizer.json ({clip(str(error), 200)}); save the model again"
            ) from error
        if not marked:
            raise ModelError(f"{name} has a tokenizer.json without a special token at the start; save the model again")
        self._longest, self._name = settings.question, name
        self._lock = Lock()  # tokenizers refuse to be used by two threads at once

    def windows(self, pairs: Sequence[tuple[str, str]]) -> list[list[TokenWindow]]:
        """The windows of each (question, passage), in order; at least one. Offsets refer to the passage."""
        clean = [(self._first(encodable(question), self._longest), encodable(passage)) for question, passage in pairs]
        return [
            [_window(part, passage) for part in (whole, *whole.overflowing)]
            for whole, (_, passage) in zip(self._encode_pairs(clean), clean, strict=True)
        ]

    def answers(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[TokenWindow]:
        """One window for each pair of answers, with the question, to predict their relation."""
        question_part = self._first(encodable(question), self._longest)
        rows = [[self._first(encodable(answer), ANSWER) for answer in pair] for pair in pairs]
        joined = [(f"{question_part} {first}", second) for first, second in rows]
        return [_window(whole, text) for whole, (_, text) in zip(self._encode_pairs(joined), joined, strict=True)]

    def _encode_pairs(self, pairs: list[tuple[str, str]]) -> list[Any]:
        try:
            with self._lock:
                encodings: list[Any] = self._pairs.encode_batch(pairs)
        except Exception as error:  # the library raises bare exceptions
            raise ModelError(
                f"{self._name} cannot cut a text into tokens ({clip(str(error), 120)}); leave the text out"
            ) from error
        return encodings

    def _first(self, text: str, most: int) -> str:
        """The first tokens of a text, as text; only the first 40 characters per token are tokenised."""
        text = text[: 40 * most]
        with self._lock:
            encoded = self._single.encode(text, add_special_tokens=False)
        return text if len(encoded.ids) <= most else text[: encoded.offsets[most - 1][1]]


def _window(encoded: Any, passage: str) -> TokenWindow:
    inside = [i for i, sequence in enumerate(encoded.sequence_ids) if sequence == 1]
    first, last = (inside[0], inside[-1] + 1) if inside else (len(encoded.ids), len(encoded.ids))
    offsets = encoded.offsets
    words: list[int | None] = [None] * first
    for i in range(first, last):
        words.append(words[i - 1] if i > first and _continues(passage, offsets[i - 1], offsets[i]) else i)
    ids, types = np.array(encoded.ids, np.int64), np.array(encoded.type_ids, np.int64)
    return TokenWindow(ids, types, first, last, offsets, words)


def _continues(passage: str, token: tuple[int, int], following: tuple[int, int]) -> bool:
    """Whether a token goes on within a word, in a script that has spaces between words."""
    if token[1] != following[0] or not 0 < following[0] < len(passage):
        return False
    both = passage[following[0] - 1 : following[0] + 1]
    return all(sign.isalnum() or category(sign)[0] == "M" for sign in both) and not SPACELESS.search(both)


def best_span(window: TokenWindow, marks: Marks) -> BestSpan | None:
    """The likeliest span of at most `MAX_ANSWER_TOKENS` tokens, extended to whole words.

    None for an empty passage, or a span of more than `MAX_SPAN_CHARS` characters. Linear time and memory.
    """
    first, size = window.first, window.last - window.first
    if size < 1:
        return None
    reach = min(MAX_ANSWER_TOKENS, size)
    end = np.concatenate([marks.end[first : window.last], np.full(reach - 1, -np.inf, np.float32)])
    joint = marks.start[first : window.last, None] + np.lib.stride_tricks.sliding_window_view(end, reach)
    begin, length = np.unravel_index(int(joint.argmax()), joint.shape)
    odds = float(joint[begin, length]) - float(marks.start[0] + marks.end[0])
    left, right = first + int(begin), first + int(begin) + int(length)
    while left > first and window.words[left] is not None and window.words[left - 1] == window.words[left]:
        left -= 1
    while (
        right + 1 < window.last and window.words[right] is not None and window.words[right + 1] == window.words[right]
    ):
        right += 1
    span = BestSpan(window.offsets[left][0], window.offsets[right][1], odds)
    return span if span.end - span.start <= MAX_SPAN_CHARS else None


class OnnxSpans:
    """A question-answering graph in a folder with `model.onnx` and `tokenizer.json`.

    Every window is a separate run, several concurrently: the scales that a quantised graph derives from its input then
    depend on one passage only, so that passages do not influence each other, and nothing is padded.

    Raises:
        MissingExtraError: onnxruntime is not installed.
        ModelError: A file is missing or unusable.
    """

    def __init__(self, folder: Path, name: str, threads: int) -> None:
        self.name, self._workers = name, Workers("unpoison-reader", threads)
        self._session, self._inputs, outputs = open_graph(folder, name)
        wanted = [next((one for one in outputs if one.lower().startswith(kind)), None) for kind in ("start", "end")]
        if None in wanted or set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids"}:
            raise ModelError(
                f"{name} has the inputs {', '.join(self._inputs)} and the outputs {', '.join(outputs)}; a graph for "
                "extractive question answering maps tokens to start and end logits"
            )
        self._outputs = [*wanted, *(["relation"] if "relation" in outputs else [])]

    def run(self, windows: Sequence[TokenWindow]) -> list[Marks]:
        return self._workers.map(self._marks, windows)

    def _marks(self, window: TokenWindow) -> Marks:
        features = {"input_ids": window.ids, "attention_mask": np.ones_like(window.ids), "token_type_ids": window.types}
        feed = {name: features[name].astype(kind)[None] for name, kind in self._inputs.items()}
        try:
            parts = [part[0] for part in self._session.run(self._outputs, feed)]
        except Exception as error:  # onnxruntime raises bare exceptions of its own
            raise ModelError(f"{self.name} failed ({clip(str(error), 200)}); export the model again") from error
        return _check_marks(Marks(*parts), len(window.ids), self.name)


class TorchSpans:
    """Any question-answering checkpoint of the transformers library, from BERT to DeBERTa.

    Only safetensors weights are read, and code in a checkpoint is never run.

    Raises:
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded, or has no fast tokenizer.
    """

    def __init__(self, path: str, name: str, device: str | None = None, batch_size: int = 16) -> None:
        self._torch = require("torch", name)
        self.name, self._batch_size = name, batch_size
        tokenizer, self._model = load_answerer(path, name, name, device)
        self.tokenizer: str = tokenizer.backend_tokenizer.to_str()
        self._pad = tokenizer.pad_token_id or 0
        self._typed = getattr(self._model.config, "type_vocab_size", 0) > 1
        longest = getattr(self._model.config, "max_position_embeddings", 0)
        self.context = min(value for value in (longest, tokenizer.model_max_length, 512) if value and value > 0)
        self._lock = Lock()

    def run(self, windows: Sequence[TokenWindow]) -> list[Marks]:
        marks: list[Marks] = []
        with self._lock, self._torch.inference_mode():
            for at in range(0, len(windows), self._batch_size):
                marks += self._batch(windows[at : at + self._batch_size])
        return marks

    def _batch(self, windows: Sequence[TokenWindow]) -> list[Marks]:
        longest = max(len(window.ids) for window in windows)
        ids = np.full((len(windows), longest), self._pad, np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, window in enumerate(windows):
            size = len(window.ids)
            ids[row, :size], mask[row, :size], types[row, :size] = window.ids, 1, window.types
        feed = {"input_ids": ids, "attention_mask": mask, **({"token_type_ids": types} if self._typed else {})}
        outputs = self._model(**{k: self._torch.from_numpy(v).to(self._model.device) for k, v in feed.items()})
        start, end = (part.float().cpu().numpy() for part in (outputs.start_logits, outputs.end_logits))
        sizes = [len(window.ids) for window in windows]
        return [_check_marks(Marks(start[i, :n], end[i, :n]), n, self.name) for i, n in enumerate(sizes)]


def load_answerer(path: str, name: str, purpose: str, device: str | None = None, **options: Any) -> tuple[Any, Any]:
    """Load a checkpoint's tokenizer and question-answering model with the transformers library.

    Raises:
        ModelError: The checkpoint has no trained question-answering head (the library would initialise a random one),
            or no fast tokenizer.
    """
    options = {"use_safetensors": True, **options}
    tokenizer, model, missing = load_pretrained("QuestionAnswering", path, purpose, device, **options)
    if missing or getattr(model.config, "num_labels", 2) != 2:
        lacking = ", ".join(missing) or "start and end"
        raise ModelError(
            f"{clip(path, 200)} is not an extractive question-answering model: it has no weights for "
            f"{clip(lacking, 120)}; use one that was trained on data such as SQuAD 2"
        )
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise ModelError(f"{name} has no fast tokenizer, which is needed for word positions; use another checkpoint")
    return tokenizer, model


def _check_marks(marks: Marks, size: int, name: str) -> Marks:
    if marks.start.shape != (size,) or marks.end.shape != (size,):
        raise ModelError(f"{name} returned logits of shape {marks.start.shape} for {size} tokens; export it again")
    if not all(np.isfinite(part).all() for part in marks if part is not None):
        raise ModelError(f"{name} returned a value that is not finite; load it in float32 or use another model")
    return marks
