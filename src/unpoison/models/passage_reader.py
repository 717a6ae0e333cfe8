"""Reads single passages: the answer of a passage to a question, and the relation of two answers, with a cache."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError, ModelError, clip
from unpoison.models.checkpoints import softmax
from unpoison.models.lexical import judge_pairs
from unpoison.models.loading import MULTILINGUAL, READERS
from unpoison.models.spans import OnnxSpans, SpanModel, SpanSettings, TorchSpans, WindowCutter, best_span
from unpoison.text.answers import Relation, relation
from unpoison.text.languages import other_language
from unpoison.text.tokens import stems
from unpoison.utils.checks import among, at_least, within
from unpoison.utils.extras import EXTRAS, require
from unpoison.utils.lru_cache import LRUCache
from unpoison.utils.processes import Remade
from unpoison.utils.threads import cores

__all__ = ["THRESHOLD", "PassageReader", "Reading"]

THRESHOLD = 0.4
"""Minimum P(no answer) at which no answer is given: in a vote, a wrong answer costs more than a missing one."""

REMEMBERED = 4 * 2**20
"""Bytes of cached readings, about ten thousand: several defenses read the same passages."""

LONG = 30_000
"""Maximum characters of a passage that are read; of a longer one, the slices most similar to the question."""

SLICE = 1000
"""Characters of such a slice."""

MAX_PASSAGE_CHARS = 1_000_000
"""Maximum characters of a passage that are searched for slices."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The answer of one passage to a question.

    Attributes:
        answer: The answering words of the passage, "" if it does not answer.
        start, end: The position of the likeliest answer in the passage, in characters, `end` exclusive; 0, 0 for an
            empty passage. Also set if `answer` is empty.
        score: The model's log-odds of these words against no answer; comparable within one reader.
        no_answer: P(the passage does not answer), in [0, 1], calibrated on held-out questions for the shipped reader.
        skimmed: Characters of a very long passage that the model did not read.
        language: If there is no answer because the reader was not trained on the language of the question or passage,
            that language as a tag such as "de".
    """

    answer: str
    start: int
    end: int
    score: float
    no_answer: float
    skimmed: int = 0
    language: str | None = None


class PassageReader(Remade):
    """Reads each passage separately with an extractive question-answering model: a shipped one, or any checkpoint.

    Where a question or passage is in a language that a shipped reader was not trained on, the multilingual reader reads
    it, if its package is installed.

    Args:
        name_or_path: A folder with `model.onnx` and `tokenizer.json`, or a question-answering checkpoint of the
            transformers library, by folder or by name; None for a shipped reader.
        shipped: The shipped reader: "reader", the small one, "reader-base" or "reader-multilingual".
        threshold: The minimum P(no answer) at which no answer is given, in (0, 1].
        threads: Windows read concurrently; None for one per core.
        device: For a transformers checkpoint: "cpu", "cuda", ...; None for a GPU if there is one.

    Raises:
        OptionError: No such shipped reader.
        MissingExtraError: The extra `reader`, `reader-base` or, for a transformers checkpoint, `torch` is missing.
        ModelError: The files are missing, truncated, changed or of another kind.
    """

    def __init__(
        self,
        name_or_path: str | Path | None = None,
        *,
        shipped: str = "reader",
        threshold: float = THRESHOLD,
        threads: int | None = None,
        device: str | None = None,
    ) -> None:
        self.threshold = within("threshold", threshold, 1e-6, 1.0)
        self.name = reader_name(shipped if name_or_path is None else f"qa:{name_or_path}", threshold)
        self._threads = threads = cores() if threads is None else at_least("threads", threads, 1)
        folder = _shipped_folder(shipped) if name_or_path is None else Path(name_or_path)
        others = name_or_path is None and shipped != MULTILINGUAL
        self._has_multilingual = others and find_spec(READERS[MULTILINGUAL]) is not None
        self._model: SpanModel
        if any((folder / file).is_file() for file in ("model.onnx", "onnx/model.onnx", "reader.json")):
            self._settings = SpanSettings.of(folder, self.name)
            if name_or_path is None and {name for name, _ in self._settings.hashes} != {"model.onnx", "tokenizer.json"}:
                raise ModelError(f"{shipped}'s reader.json lacks the hashes of its files; install the package again")
            self._model = OnnxSpans(folder, self.name, threads)
            source = (folder / "tokenizer.json").read_text("utf-8", "replace")
        else:
            model = TorchSpans(str(name_or_path), self.name, device)
            self._model, source = model, model.tokenizer
            self._settings = SpanSettings(window=min(384, model.context), question=min(64, model.context // 4))
        self._cutter = WindowCutter(source, self._settings, self.name)
        self._cache: LRUCache[bytes, Reading] = LRUCache(lambda key, reading: 300 + 4 * len(reading.answer), REMEMBERED)
        self._related: LRUCache[bytes, Relation] = LRUCache(lambda key, relation: 300, REMEMBERED)

    @cached_property
    def _multilingual(self) -> PassageReader:
        """Who reads other languages; loaded when it is first needed, because it needs another 200 MB."""
        return PassageReader(shipped=MULTILINGUAL, threshold=self.threshold, threads=self._threads)

    @property
    def isolated(self) -> bool:
        """Whether a passage cannot influence the reading of another at all: torch models pad their batches."""
        return isinstance(self._model, OnnxSpans)

    def read(self, question: str, passages: Sequence[str], /) -> list[Reading]:
        """The answer of each passage to the question.

        Ten passages of 120 words take about a tenth of a second on two cores with the small reader; linear time in the
        number of windows. Deterministic on one machine.

        Raises:
            InputError: The passages are not a list of strings.
            ModelError: The model failed.
        """
        if isinstance(passages, str):
            raise InputError(f"passages must be a list of strings, got the string {clip(passages)}; put it in a list")
        return self.read_pairs([(question, passage) for passage in passages])

    def read_pairs(self, pairs: Sequence[tuple[str, str]], /, *, timeout: float | None = None) -> list[Reading]:
        """`read` for passages of several questions, all in one batch.

        Raises:
            InputError: A question or passage is not a string.
            ModelError: The model failed, or the timeout passed before all passages were read.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        for pair in pairs:
            if not all(isinstance(text, str) for text in pair):
                raise InputError(f"a question and a passage must be strings, got {clip(pair)}")
        keys = [_key(pair) for pair in pairs]
        readings = {key: reading for key in keys if (reading := self._cache.get(key)) is not None}
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in readings}
        for done, (key, reading) in enumerate(zip(new, self._readings(list(new.values())), strict=True)):
            readings[key] = reading
            self._cache.put(key, reading)
            if time.monotonic() > end:
                raise ModelError(
                    f"{self.name} read {done + 1} of {len(new)} passages within {timeout:g} s; "
                    "allow more time or give fewer passages",
                    retryable=False,
                )
        return [readings[key] for key in keys]

    def _readings(self, pairs: Sequence[tuple[str, str]]) -> Iterator[Reading]:
        """The reading of each passage, in batches, between which the timeout is checked and memory released."""
        part: list[tuple[str, str]] = []
        size = 0
        for pair in pairs:
            part.append(pair)
            size += min(len(pair[1]), LONG)
            if size >= LONG or len(part) >= _AT_ONCE:
                yield from self._readings_in_languages(part)
                part, size = [], 0
        if part:
            yield from self._readings_in_languages(part)

    def _readings_in_languages(self, pairs: Sequence[tuple[str, str]]) -> list[Reading]:
        readings = self._reading_of_each(pairs)
        unread = [i for i, reading in enumerate(readings) if reading.language]
        if unread and self._has_multilingual:
            for i, reading in zip(unread, self._multilingual._reading_of_each([pairs[i] for i in unread]), strict=True):
                readings[i] = reading
        return readings

    def _reading_of_each(self, pairs: Sequence[tuple[str, str]]) -> list[Reading]:
        pieces = [[(question, *piece) for piece in _pieces(question, text)] for question, text in pairs]
        windows = iter(self._cutter.windows([(question, text) for rows in pieces for question, _, text in rows]))
        asked = {question: self._untrained(question) for question in {question for question, _ in pairs}}
        cut = [
            [
                (offset, window, asked[question] or self._untrained(window.of(text)))
                for question, offset, text in rows
                for window in next(windows)
            ]
            for rows in pieces
        ]
        marks = iter(self._model.run([window for rows in cut for _, window, unread in rows if not unread]))
        read = []
        for (_, text), rows, parts in zip(pairs, cut, pieces, strict=True):
            spans = [
                (offset, span)
                for offset, window, unread in rows
                if not unread and (span := best_span(window, next(marks))) is not None
            ]
            skimmed = len(text) - sum(len(piece) for _, _, piece in parts)
            if not spans:
                language = next((unread for _, _, unread in rows if unread), None)
                read.append(Reading("", 0, 0, 0.0, 1.0, skimmed, language))
                continue
            offset, best = max(spans, key=lambda candidate: candidate[1].odds)
            no_answer = 1 / (1 + np.exp(np.clip(self._settings.slope * best.odds + self._settings.intercept, -60, 60)))
            start, end = _trim_span(text, offset + best.start, offset + best.end)
            if start == end:
                no_answer = 1.0
            answer = text[start:end] if no_answer < self.threshold else ""
            read.append(Reading(answer, start, end, best.odds, float(no_answer), skimmed))
        return read

    def unread_language(self, question: str, /) -> str | None:
        """The language of a question as a tag such as "de", if nothing is read for a question in it."""
        return None if self._has_multilingual else self._untrained(question)

    def _untrained(self, text: str) -> str | None:
        """The language of a text, if the model was not trained on it."""
        if not self._settings.languages:
            return None
        language = other_language(text)
        return None if language in self._settings.languages else language

    def relations(self, question: str, pairs: Sequence[tuple[str, str]], /) -> list[Relation]:
        """The relation of the two answers of each pair: equivalent, rivals, or compatible. Symmetric.

        Rules decide if they can (`text.answers`); otherwise the model of a shipped reader, or for other checkpoints a
        guess from shared words.
        """
        related = [relation(question, left, right) for left, right in pairs]
        unsure = [i for i, relation_of in enumerate(related) if not relation_of.sure]
        judge = self._multilingual if self._has_multilingual and self._untrained(question) else self
        judged = judge._judge_pairs(question, [tuple(sorted(pairs[i])) for i in unsure])
        for i, opinion in zip(unsure, judged, strict=True):
            related[i] = _between(related[i], opinion)
        return related

    def _judge_pairs(self, question: str, pairs: Sequence[tuple[str, ...]]) -> list[Relation | None]:
        """The model's judgement of pairs without a rule, averaged over both orders; None from other checkpoints."""
        keys = [_key((question, *pair)) for pair in pairs]
        related = {key: remembered for key in keys if (remembered := self._related.get(key)) is not None}
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in related}
        orders = [order for left, right in new.values() for order in ((left, right), (right, left))]
        windows = self._cutter.answers(question, orders)
        logits = [mark.relation for mark in self._model.run(windows)]
        if any(logit is None for logit in logits):
            return [None] * len(pairs)
        odds = np.array(logits, np.float64).reshape(len(new), 2, 3) / self._settings.temperature
        probability = softmax(odds).mean(axis=1).tolist()
        judged = {key: Relation(a, b, c, sure=False) for key, (a, b, c) in zip(new, probability, strict=True)}
        for key, relative in judged.items():
            self._related.put(key, relative)
        return [(related | judged)[key] for key in keys]

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """An NLI model for answers: equivalent is entailment, rivals contradiction, compatible answers neutral.

        Pairs of the form "Question: q Answer: a" with the same q are compared as answers, others by the lexical judge.

        Returns:
            Shape (n, 3): P(entailment), P(neutral), P(contradiction).
        """
        return judge_pairs(pairs, self.relations)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


_AT_ONCE = 32
"""Maximum passages between two checks of the timeout."""


def reader_name(name: str, threshold: float) -> str:
    """The name of a reader, which identifies it in caches of replies."""
    return name if threshold == THRESHOLD else f"{name},threshold={threshold:g}"


def _shipped_folder(name: str) -> Path:
    package = READERS[among("shipped", name, tuple(READERS))]
    extra = EXTRAS[package]
    for library in ("onnxruntime", "tokenizers"):
        require(library, "the reader", extra)
    return Path(str(require(package, "the reader").FOLDER))


def _between(guess: Relation, opinion: Relation | None) -> Relation:
    """The geometric mean of a guess from the words and the model's opinion."""
    if opinion is None:
        return guess
    mean = [math.sqrt(guessed * judged) for guessed, judged in zip(guess[:3], opinion[:3], strict=True)]
    same, rival, compatible = (value / sum(mean) for value in mean)
    return Relation(same, rival, compatible, sure=False)


def _pieces(question: str, text: str) -> list[tuple[int, str]]:
    """The passage, or the slices of a long one with most words of the question, each with its position."""
    if len(text) <= LONG:
        return [(0, text)]
    question_stems = set(stems(question[:2000]))
    slices = [(at, text[at : at + SLICE]) for at in range(0, min(len(text), MAX_PASSAGE_CHARS), SLICE)]
    shared = [len(question_stems.intersection(stems(part))) for _, part in slices]
    best = sorted(range(len(slices)), key=lambda i: (-shared[i], i))[: LONG // SLICE]
    return [slices[i] for i in sorted(best)]


def _trim_span(text: str, start: int, end: int) -> tuple[int, int]:
    """A span up to its first line break (a title is a line of its own), without ellipses at its ends."""
    part = text[start:end]
    kept = part.partition("\n")[0].rstrip(_ELLIPSES) or part
    return start + len(kept) - len(kept.lstrip(_ELLIPSES)), start + len(kept)


_ELLIPSES = " \t\r…,;:"


def _key(parts: Sequence[str]) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()
