"""The reader: a small model that says which words of one passage answer a question, or that none do.

It is the default wherever no language model is given: every defense that reads passages one by one takes it as its
generator, and as the judge of whether two answers contradict each other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from unpoison.checks import at_least, within
from unpoison.errors import InputError, ModelError, shown
from unpoison.extras import require
from unpoison.kernels.answers import Relation, relation
from unpoison.kernels.tokens import stems
from unpoison.models.answer_nli import judged
from unpoison.models.checkpoints import encodable, softmax
from unpoison.models.extractive import ABSTENTION, ExtractiveReader, gives_orders
from unpoison.models.questions import read_question
from unpoison.models.spans import OnnxSpans, Settings, SpanModel, TorchSpans, WindowCutter, best_span, cores
from unpoison.models.voices import Said, central, sentence, supported
from unpoison.prompts import Prompt, Task, informative
from unpoison.recent import Recent
from unpoison.types import Reply

__all__ = ["Reader", "Reading", "shipped"]

THRESHOLD = 0.4
"""The probability of no answer from which on none is given: a wrong answer costs a vote more than a missing one."""

REMEMBERED = 4 * 2**20
"""Bytes of readings that are kept, some ten thousand: several defenses ask the same of the same passage."""

LAST = 0.75
"""P(no answer) up to which the likeliest words of several texts are given where none is read as an answer."""

LONG = 30_000
"""Characters of a passage that are read; of a longer one the slices nearest to the question, so many together."""

SLICE = 1000
"""Characters of such a slice."""

LONGEST_PASSAGE = 1_000_000
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
        threshold: float = THRESHOLD,
        threads: int | None = None,
        device: str | None = None,
    ) -> None:
        self.threshold = within("threshold", threshold, 1e-6, 1.0)
        self.name = named("reader" if name_or_path is None else f"qa:{name_or_path}", threshold)
        threads = cores() if threads is None else at_least("threads", threads, 1)
        folder = _package() if name_or_path is None else Path(name_or_path)
        self._model: SpanModel
        if any((folder / file).is_file() for file in ("model.onnx", "onnx/model.onnx", "reader.json")):
            self._settings = Settings.of(folder, self.name)
            if name_or_path is None and {name for name, _ in self._settings.hashes} != {"model.onnx", "tokenizer.json"}:
                raise ModelError("the reader's reader.json lacks the hashes of its files; install the package again")
            self._model = OnnxSpans(folder, self.name, threads)
            source = (folder / "tokenizer.json").read_text("utf-8", "replace")
        else:
            model = TorchSpans(str(name_or_path), self.name, device)
            self._model, source = model, model.tokenizer
            self._settings = Settings(window=min(384, model.context), question=min(64, model.context // 4))
        self._cutter = WindowCutter(source, self._settings, self.name)
        self._words = ExtractiveReader()
        self._known: Recent[bytes, Reading] = Recent(lambda key, reading: 300 + 4 * len(reading.answer), REMEMBERED)
        self._related: Recent[bytes, Relation] = Recent(lambda key, found: 300, REMEMBERED)

    @property
    def isolated(self) -> bool:
        """Whether no passage can change how another is read, down to the last bit: a torch model pads its batches."""
        return isinstance(self._model, OnnxSpans)

    def read(self, question: str, passages: Sequence[str], /) -> list[Reading]:
        """What each passage says to the question.

        Ten passages of 120 words take about a tenth of a second on two cores with the shipped reader; time is linear
        in the windows. Two calls give the same bytes on the same machine.

        Raises:
            InputError: The passages are no list of strings.
            ModelError: The model failed.
        """
        if isinstance(passages, str):
            raise InputError(f"passages must be a list of strings, got the string {shown(passages)}; put it in a list")
        return self.read_pairs([(question, passage) for passage in passages])

    def read_pairs(self, pairs: Sequence[tuple[str, str]], /, *, timeout: float | None = None) -> list[Reading]:
        """`read` for passages of several questions, all in one batch.

        Raises:
            InputError: A question or passage is no string.
            ModelError: The model failed, or the time was up before all was read.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        for pair in pairs:
            if not all(isinstance(text, str) for text in pair):
                raise InputError(f"a question and a passage must be strings, got {shown(pair)}")
        keys = [_key(pair) for pair in pairs]
        readings = {key: reading for key in keys if (reading := self._known.get(key)) is not None}
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in readings}
        for done, (key, reading) in enumerate(zip(new, self._readings(list(new.values())), strict=True)):
            readings[key] = reading
            self._known.put(key, reading)
            if time.monotonic() > end:
                raise ModelError(
                    f"{self.name} had read {done + 1} of {len(new)} passages when its {timeout:g} s were up; "
                    "allow more time or give fewer passages",
                    retryable=False,
                )
        return [readings[key] for key in keys]

    def _readings(self, pairs: Sequence[tuple[str, str]]) -> Iterator[Reading]:
        """What each passage says, a few passages at a time: the clock is looked at, and memory given back, between."""
        part: list[tuple[str, str]] = []
        size = 0
        for pair in pairs:
            part.append(pair)
            size += min(len(pair[1]), LONG)
            if size >= LONG or len(part) >= _AT_ONCE:
                yield from self._reading_of_each(part)
                part, size = [], 0
        if part:
            yield from self._reading_of_each(part)

    def _reading_of_each(self, pairs: Sequence[tuple[str, str]]) -> list[Reading]:
        pieces = [[(question, *piece) for piece in _pieces(question, text)] for question, text in pairs]
        windows = iter(self._cutter.windows([(question, text) for rows in pieces for question, _, text in rows]))
        cut = [[(offset, window) for _, offset, _ in rows for window in next(windows)] for rows in pieces]
        marks = iter(self._model.run([window for rows in cut for _, window in rows]))
        read = []
        for (_, text), rows, parts in zip(pairs, cut, pieces, strict=True):
            spans = [(offset, span) for offset, window in rows if (span := best_span(window, next(marks))) is not None]
            skimmed = len(text) - sum(len(piece) for _, _, piece in parts)
            if not spans:
                read.append(Reading("", 0, 0, 0.0, 1.0, skimmed))
                continue
            offset, best = max(spans, key=lambda found: found[1].odds)
            no_answer = 1 / (1 + np.exp(np.clip(self._settings.slope * best.odds + self._settings.intercept, -60, 60)))
            start, end = _trimmed(text, offset + best.start, offset + best.end)
            if start == end:
                no_answer = 1.0
            answer = text[start:end] if no_answer < self.threshold else ""
            read.append(Reading(answer, start, end, best.odds, float(no_answer), skimmed))
        return read

    def relations(self, question: str, pairs: Sequence[tuple[str, str]], /) -> list[Relation]:
        """Whether the two answers of each pair say the same, are rivals, or are compatible.

        Rules decide where they can (`kernels.answers`); otherwise the shipped reader's model does, and a guess from
        the shared words does for other checkpoints. Symmetric.
        """
        related = [relation(question, left, right) for left, right in pairs]
        unsure = [i for i, relation_of in enumerate(related) if not relation_of.sure]
        judged = self._judged(question, [tuple(sorted(pairs[i])) for i in unsure])
        for i, opinion in zip(unsure, judged, strict=True):
            related[i] = _between(related[i], opinion)
        return related

    def _judged(self, question: str, pairs: Sequence[tuple[str, ...]]) -> list[Relation | None]:
        """What the model says of pairs on which no rule speaks, the mean of both orders; None from others."""
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
        return [Reply(encodable(self._reply(prompt) or ABSTENTION)) for prompt in prompts]

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
        return best.answer if read_question(prompt.question).kind in _CRISP else sentence(best)

    def _consolidate(self, prompt: Prompt) -> str | None:
        return "\n".join(dict.fromkeys(sentence(one) for one in self._supported(prompt)))

    def _supported(self, prompt: Prompt) -> list[Said]:
        """The texts that give the best supported answer."""
        texts = [text for text in _texts(prompt) if prompt.task != "consolidate" or not gives_orders(text)]
        readings = self.read_pairs([(prompt.question, text) for text in texts])
        said = [
            Said(reading.answer, text, reading.start, (1 - 0.5 * rank / len(texts)) * (1 - reading.no_answer))
            for rank, (reading, text) in enumerate(zip(readings, texts, strict=True))
            if reading.answer
        ]
        if not said and prompt.task != "atomic":
            said = _likeliest(readings, texts)
        return supported(prompt.question, said)

    def __repr__(self) -> str:
        return f"Reader({self.name!r})"


_AT_ONCE = 32
"""Passages between two looks at the clock."""

_CRISP = ("person", "place", "date", "number")
"""Questions that a bare name, date or number answers; to others the sentence in which the answer stands says more."""

_READING: frozenset[Task] = frozenset(("atomic", "answer", "decide", "consolidate"))


def named(name: str, threshold: float) -> str:
    """The name of a reader: caches of replies know by it who replied."""
    return name if threshold == THRESHOLD else f"{name},threshold={threshold:g}"


def shipped(*, threshold: float = THRESHOLD, threads: int | None = None) -> Reader:
    """The reader of the package unpoison-reader; one for all who ask in a process, for it costs some 100 MB.

    Args:
        threshold: As for `Reader`; with options a reader of its own is made.
        threads: As for `Reader`.

    Raises:
        MissingExtraError: The extra `reader` is not installed.
        ModelError: Its files were cut or changed.
    """
    if threshold != THRESHOLD or threads is not None:
        return Reader(threshold=threshold, threads=threads)
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


def _likeliest(readings: Sequence[Reading], texts: Sequence[str]) -> list[Said]:
    """Of texts that all seem silent the one that may yet answer: several together seldom hold nothing."""
    best = min(range(len(texts)), key=lambda i: readings[i].no_answer, default=None)
    if best is None or readings[best].no_answer > LAST or readings[best].start == readings[best].end:
        return []
    reading = readings[best]
    return [Said(texts[best][reading.start : reading.end], texts[best], reading.start, 1 - reading.no_answer)]


def _synthesize(_: Reader, prompt: Prompt) -> str | None:
    return central(prompt.question, [text.strip() for text in prompt.passages if informative(text)])


_TASKS: dict[Task, Callable[[Reader, Prompt], str | None]] = {
    "atomic": Reader._atomic,
    "answer": Reader._answer,
    "decide": Reader._answer,
    "consolidate": Reader._consolidate,
    "synthesize": _synthesize,
}


def _between(guess: Relation, opinion: Relation | None) -> Relation:
    """The geometric mean of a guess from the words and the model's opinion."""
    if opinion is None:
        return guess
    mean = [math.sqrt(one * two) for one, two in zip(guess[:3], opinion[:3], strict=True)]
    same, rival, compatible = (value / sum(mean) for value in mean)
    return Relation(same, rival, compatible, sure=False)


def _pieces(question: str, text: str) -> list[tuple[int, str]]:
    """The passage, or of a long one the slices that share most words with the question, each with its place."""
    if len(text) <= LONG:
        return [(0, text)]
    question_stems = set(stems(question[:2000]))
    slices = [(at, text[at : at + SLICE]) for at in range(0, min(len(text), LONGEST_PASSAGE), SLICE)]
    shared = [len(question_stems.intersection(stems(part))) for _, part in slices]
    best = sorted(range(len(slices)), key=lambda i: (-shared[i], i))[: LONG // SLICE]
    return [slices[i] for i in sorted(best)]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without what follows a line break (a title is a line of its own), and without an ellipsis at its ends."""
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
