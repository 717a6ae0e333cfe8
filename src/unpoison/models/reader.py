"""The reader: a small model that says which words of one passage answer a question, or that none do.

It is the default wherever no language model is given: every defense that reads passages one by one takes it as its
generator, and as the judge of whether two answers contradict each other.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from unpoison.checks import at_least, within
from unpoison.errors import ModelError
from unpoison.extras import require
from unpoison.kernels.answers import LONGEST, Relation, relation
from unpoison.kernels.tokens import stems
from unpoison.models.answer_nli import judged
from unpoison.models.checkpoints import softmax
from unpoison.models.extractive import ABSTENTION, ExtractiveReader, gives_orders
from unpoison.models.questions import read_question
from unpoison.models.sentences import split
from unpoison.models.spans import OnnxSpans, Settings, SpanModel, TorchSpans, Window, WindowCutter, best_span, cores
from unpoison.prompts import Prompt, Task, informative
from unpoison.types import Reply

__all__ = ["Reader", "Reading", "shipped"]

V = TypeVar("V")

REMEMBERED = 8192
"""Readings that are kept, some 300 bytes each: several defenses ask the same of the same passage."""

SAME = 0.5
"""Answers that say the same with at least this probability are one."""

WINDOWS = 64
"""Windows of one passage that are read, some 30,000 characters; those nearest to the question where there are more."""

LONGEST_PASSAGE = 2_000_000
"""Characters of a passage that are looked at."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one passage says to a question.

    Attributes:
        answer: The words of the passage that answer, "" where it holds no answer.
        start, end: Where the likeliest answer stands in the passage, as characters, `end` exclusive; 0, 0 for an
            empty passage. They are given even if `answer` is empty.
        score: The log-odds of these words against no answer, as the model gives them; comparable within one reader.
        no_answer: P(the passage does not answer), in [0, 1], calibrated on held-out questions for the shipped reader.
        skimmed: Characters of a very long passage of which only the words were compared with the question's.
    """

    answer: str
    start: int
    end: int
    score: float
    no_answer: float
    skimmed: int = 0


class Said(NamedTuple):
    """An answer with the text that gives it, and how much it counts."""

    answer: str
    reading: Reading
    text: str
    weight: float


class Reader:
    """Reads with an extractive question-answering model: the shipped one, or any checkpoint. It is no language model.

    It copies words. It does not infer, compare, count or translate, and knows nothing that the passages do not say.
    Each passage is read by itself: what one says cannot change how another is read.

    The tasks of a prompt:

    - "atomic": the passage's answer, or an abstention.
    - "answer", "decide": the answer that the texts support best: each lends its answer what it is worth, less with
      its rank (the last one half), and answers that say the same count together. Where no bare name, date or number is
      asked for, the sentence in which it stands.
    - "synthesize": of the answers given, the one that most others equal, contain or are contained in.
    - "consolidate": the sentences that hold the best supported answer; texts that give orders are left out.
    - yes-or-no questions and "free" are answered as the extractive reader does, from words.
    - "answer-alone", "knowledge": always abstains.

    As a judge (`judge`), it compares two answers to one question by rules, and by the model where no rule applies.

    Args:
        name_or_path: A folder with `model.onnx` and `tokenizer.json`, or a question-answering checkpoint of the
            transformers library, by folder or by name; None for the shipped reader.
        threshold: From this probability of no answer on, none is given, in (0, 1].
        threads: Windows that are read at the same time; None for one on every core.
        device: For a transformers checkpoint: "cpu", "cuda", ...; None for a GPU if there is one.

    Raises:
        MissingExtraError: The extra `reader` (or `torch`, for a transformers checkpoint) is not installed.
        ModelError: The files are missing, cut, changed or of another kind.
    """

    def __init__(
        self,
        name_or_path: str | Path | None = None,
        *,
        threshold: float = 0.5,
        threads: int | None = None,
        device: str | None = None,
    ) -> None:
        self.name = "reader" if name_or_path is None else f"qa:{name_or_path}"
        self.threshold = within("threshold", threshold, 1e-6, 1.0)
        threads = cores() if threads is None else at_least("threads", threads, 1)
        folder = _package() if name_or_path is None else Path(name_or_path)
        self._model: SpanModel
        if any((folder / file).is_file() for file in ("model.onnx", "onnx/model.onnx", "reader.json")):
            self._settings = Settings.of(folder, self.name)
            self._model = OnnxSpans(folder, self.name, threads)
            source = (folder / "tokenizer.json").read_text("utf-8")
        else:
            model = TorchSpans(str(name_or_path), self.name, device)
            self._model, source = model, model.tokenizer
            self._settings = Settings(window=min(384, model.context), question=min(64, model.context // 4))
        self._cutter = WindowCutter(source, self._settings, self.name)
        self._words = ExtractiveReader()
        self._known: OrderedDict[bytes, Reading] = OrderedDict()
        self._related: OrderedDict[bytes, Relation] = OrderedDict()
        self._lock = Lock()

    def read(self, question: str, passages: Sequence[str], /) -> list[Reading]:
        """What each passage says to the question.

        Ten passages of 120 words take about a tenth of a second on two cores with the shipped reader; time is linear
        in the windows. Two calls give the same bytes on the same machine.

        Raises:
            ModelError: The model failed.
        """
        return self.read_pairs([(question, passage) for passage in passages])

    def read_pairs(self, pairs: Sequence[tuple[str, str]], /, *, timeout: float | None = None) -> list[Reading]:
        """`read` for passages of several questions, all in one batch.

        Raises:
            ModelError: The model failed, or the time was up before all was read.
        """
        end = None if timeout is None else time.monotonic() + timeout
        keys = [_key(pair) for pair in pairs]
        with self._lock:
            found = {key: self._known[key] for key in keys if key in self._known}
        new = [(key, pair) for key, pair in dict(zip(keys, pairs, strict=True)).items() if key not in found]
        for at in range(0, len(new), _AT_ONCE):
            if end is not None and time.monotonic() > end:
                raise ModelError(
                    f"{self.name} had read {at} of {len(new)} passages when its {timeout:g} s were up; "
                    "allow more time or give fewer passages",
                    retryable=False,
                )
            part = new[at : at + _AT_ONCE]
            found.update(zip([key for key, _ in part], self._read([pair for _, pair in part]), strict=True))
        self._remember(self._known, {key: found[key] for key, _ in new})
        return [found[key] for key in keys]

    def _read(self, pairs: Sequence[tuple[str, str]]) -> list[Reading]:
        cut = [text[:LONGEST_PASSAGE] for _, text in pairs]
        windows = self._cutter.windows([(question, text) for (question, _), text in zip(pairs, cut, strict=True)])
        chosen = [
            _nearest(question, text, parts) for (question, _), text, parts in zip(pairs, cut, windows, strict=True)
        ]
        marks = iter(self._model.run([window for parts in chosen for window in parts]))
        made = []
        for (_, text), parts, every in zip(pairs, chosen, windows, strict=True):
            spans = [span for window in parts if (span := best_span(window, next(marks))) is not None]
            best = max(spans, key=lambda span: span.odds, default=None)
            if best is None:
                made.append(Reading("", 0, 0, 0.0, 1.0))
                continue
            no_answer = 1 / (1 + np.exp(np.clip(self._settings.slope * best.odds + self._settings.intercept, -60, 60)))
            start, end = _trimmed(text, best.start, best.end)
            answer = text[start:end] if no_answer < self.threshold else ""
            skimmed = (
                len(text) - _read_characters(parts) if len(parts) < len(every) or len(text) > LONGEST_PASSAGE else 0
            )
            made.append(Reading(answer, start, end, best.odds, float(no_answer), max(0, skimmed)))
        return made

    def relations(self, question: str, pairs: Sequence[tuple[str, str]], /) -> list[Relation]:
        """Whether the two answers of each pair say the same, are rivals, or are compatible.

        Rules decide where they can (`kernels.answers`); otherwise the shipped reader's model does, and a guess from
        the shared words does for other checkpoints. Symmetric.
        """
        made = [relation(question, left, right) for left, right in pairs]
        unsure = [i for i, found in enumerate(made) if not found.sure]
        judged = self._judged(question, [tuple(sorted(pairs[i])) for i in unsure])
        for i, opinion in zip(unsure, judged, strict=True):
            made[i] = _between(made[i], opinion)
        return made

    def _judged(self, question: str, pairs: Sequence[tuple[str, ...]]) -> list[Relation | None]:
        """What the model says of pairs on which no rule speaks, the mean of both orders; None from others."""
        keys = [_key((question, *pair)) for pair in pairs]
        with self._lock:
            found = {key: self._related[key] for key in keys if key in self._related}
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in found}
        orders = [order for left, right in new.values() for order in ((left, right), (right, left))]
        windows = self._cutter.answers([(f"{question} {one[:LONGEST]}", two[:LONGEST]) for one, two in orders])
        logits = [mark.relation for mark in self._model.run(windows)]
        if any(logit is None for logit in logits):
            return [None] * len(pairs)
        odds = np.array(logits, np.float64).reshape(len(new), 2, 3) / self._settings.temperature
        probability = softmax(odds).mean(axis=1).tolist()
        made = {key: Relation(a, b, c, sure=False) for key, (a, b, c) in zip(new, probability, strict=True)}
        self._remember(self._related, made)
        return [(found | made)[key] for key in keys]

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """An NLI model for answers: the same is entailment, rivals contradict, compatible answers are neutral.

        Pairs of the form "Question: q Answer: a" with the same q are compared as answers, others by the lexical judge.

        Returns:
            Shape (n, 3): P(entailment), P(neutral), P(contradiction).
        """
        return judged(pairs, self.relations)

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """`generate_batch` for one prompt."""
        return self.generate_batch([prompt], timeout=timeout)[0]

    def generate_batch(self, prompts: Sequence[Prompt], /, *, timeout: float | None = None) -> list[Reply]:
        """Reply from the prompts' fields, what they want read in one batch; what cannot be answered is "I don't know".

        Raises:
            ModelError: The model failed, or the time was up.
        """
        self.read_pairs([(p.question, text) for p in prompts if _reads(p) for text in _texts(p)], timeout=timeout)
        return [Reply(self._reply(prompt) or ABSTENTION) for prompt in prompts]

    def _reply(self, prompt: Prompt) -> str | None:
        if not _reads(prompt):
            return self._words.generate(prompt).text
        return _TASKS[prompt.task](self, prompt)

    def _atomic(self, prompt: Prompt) -> str | None:
        return next((one.answer for one in self._supported(prompt)), None)

    def _answer(self, prompt: Prompt) -> str | None:
        said = self._supported(prompt)
        if not said:
            return None
        best = max(said, key=lambda one: one.weight)
        return best.answer if read_question(prompt.question).kind in _CRISP else _sentence(best)

    def _consolidate(self, prompt: Prompt) -> str | None:
        return "\n".join(dict.fromkeys(_sentence(one) for one in self._supported(prompt)))

    def _supported(self, prompt: Prompt) -> list[Said]:
        """The texts that give the best supported answer."""
        texts = [text for text in _texts(prompt) if prompt.task != "consolidate" or not gives_orders(text)]
        readings = self.read_pairs([(prompt.question, text) for text in texts])
        said = [
            Said(reading.answer, reading, text, (1 - 0.5 * rank / len(texts)) * (1 - reading.no_answer))
            for rank, (reading, text) in enumerate(zip(readings, texts, strict=True))
            if reading.answer
        ]
        groups = [[other for other in said if _same(prompt.question, one.answer, other.answer)] for one in said]
        return max(groups, key=lambda group: sum(one.weight for one in group), default=[])

    def _remember(self, memory: OrderedDict[bytes, V], new: Mapping[bytes, V]) -> None:
        with self._lock:
            memory.update(new)
            while len(memory) > REMEMBERED:
                memory.popitem(last=False)

    def __repr__(self) -> str:
        return "Reader()" if self.name == "reader" else f"Reader({self.name.removeprefix('qa:')!r})"


_AT_ONCE = 32
"""Passages between two looks at the clock."""

_CRISP = ("person", "place", "date", "number")
"""Questions that a bare name, date or number answers; to others the sentence in which the answer stands says more."""

_READING: frozenset[Task] = frozenset(("atomic", "answer", "decide", "consolidate"))


def shipped() -> Reader:
    """The reader of the package unpoison-reader; one for all who ask in a process, for it costs some 100 MB.

    Raises:
        MissingExtraError: The extra `reader` is not installed.
        ModelError: Its files were cut or changed.
    """
    with _LOADING:
        if not _SHIPPED:
            _SHIPPED.append(Reader())
        return _SHIPPED[0]


_SHIPPED: list[Reader] = []
_LOADING = Lock()


def _package() -> Path:
    require("onnxruntime", "the reader")
    return Path(str(require("unpoison_reader", "the reader").FOLDER))


def _reads(prompt: Prompt) -> bool:
    """Whether the model reads for this prompt; what it did not learn is left to the extractive reader."""
    if prompt.task == "synthesize":
        return True
    return prompt.task in _READING and bool(prompt.question.strip()) and read_question(prompt.question).kind != "polar"


def _texts(prompt: Prompt) -> list[str]:
    """What a prompt gives to read from."""
    if prompt.task == "synthesize":
        return []
    notes = [text for text in prompt.notes.values() if informative(text)] if prompt.task != "atomic" else []
    return list(dict.fromkeys((*prompt.passages, *notes)))


def _synthesize(_: Reader, prompt: Prompt) -> str | None:
    answers = [text.strip() for text in prompt.passages if informative(text)]
    alike = [[_same(prompt.question, one, other) for other in answers] for one in answers]
    within_ = [[other.casefold() in one.casefold() for other in answers] for one in answers]
    order = range(len(answers))
    return answers[max(order, key=lambda i: (sum(alike[i]), sum(within_[i]), -i))] if answers else None


_TASKS: dict[Task, Callable[[Reader, Prompt], str | None]] = {
    "atomic": Reader._atomic,
    "answer": Reader._answer,
    "decide": Reader._answer,
    "consolidate": Reader._consolidate,
    "synthesize": _synthesize,
}


def _same(question: str, left: str, right: str) -> bool:
    return left == right or relation(question, left, right).same >= SAME


def _between(guess: Relation, opinion: Relation | None) -> Relation:
    """The geometric mean of a guess from the words and the model's opinion."""
    if opinion is None:
        return guess
    mean = [math.sqrt(one * two) for one, two in zip(guess[:3], opinion[:3], strict=True)]
    same, rival, compatible = (value / sum(mean) for value in mean)
    return Relation(same, rival, compatible, sure=False)


def _sentence(said: Said) -> str:
    """The sentence of the text in which the answer stands; the answer itself where it spans several."""
    return next((s.text for s in split(said.text) if said.answer in s.text), said.answer)


def _nearest(question: str, text: str, windows: list[Window]) -> list[Window]:
    """The windows that share most words with the question, in order; all of them where they are few."""
    if len(windows) <= WINDOWS:
        return windows
    asked = set(stems(question))
    shared = [len(asked & set(stems(text[slice(*_reach(window))]))) for window in windows]
    best = sorted(range(len(windows)), key=lambda i: (-shared[i], i))[:WINDOWS]
    return [windows[i] for i in sorted(best)]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without what follows a line break (a title is a line of its own), and without an ellipsis at its ends."""
    part = text[start:end]
    kept = part.partition("\n")[0].rstrip(_ELLIPSES) or part
    return start + len(kept) - len(kept.lstrip(_ELLIPSES)), start + len(kept)


_ELLIPSES = " \t\r…,;:"


def _reach(window: Window) -> tuple[int, int]:
    inside = window.offsets[window.first : window.last]
    return (inside[0][0], inside[-1][1]) if inside else (0, 0)


def _read_characters(windows: Sequence[Window]) -> int:
    """Characters that the windows cover, overlaps once."""
    covered, seen = 0, 0
    for start, end in map(_reach, windows):
        covered += max(0, end - max(start, seen))
        seen = max(seen, end)
    return covered


def _key(parts: Sequence[str]) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()
