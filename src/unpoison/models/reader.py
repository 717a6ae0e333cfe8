"""The reader: a small model that says which words of one passage answer a question, or that none do.

It is the default wherever no language model is given: every defense that reads passages one by one takes it as its
generator, and as the judge of whether two answers contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.models.checkpoints import encodable
from unpoison.models.extractive import ABSTENTION, ExtractiveReader, has_injection
from unpoison.models.passage_reader import THRESHOLD, PassageReader
from unpoison.models.prompts import Prompt, Task, informative
from unpoison.text.answers import relation
from unpoison.text.questions import read_question
from unpoison.text.sentences import sentence_of
from unpoison.types import Reply

__all__ = ["GivenAnswer", "Reader", "alike", "central", "heaviest_group", "load_base_reader", "load_reader"]


class Reader(PassageReader):
    """Reads with an extractive question-answering model: a shipped one, or any checkpoint. It is no language model.

    It copies words. It does not infer, compare, count or translate, and knows nothing that the passages do not say.
    Each passage is read by itself: what one says cannot change how another is read. Every task takes the same passages
    for silent: those that `read` gives no answer for (`threshold`).

    The tasks of a prompt:

    - "atomic": the passage's answer, or an abstention.
    - "answer", "decide": the answer that the texts support best: each lends its answer what it is worth, less with
      its rank (the last one half), and answers that say the same count together. Where no bare name, date or number is
      asked for, the sentence in which it stands.
    - "synthesize": of the answers given, the one that most others equal, contain or are contained in.
    - "consolidate": the sentences that hold the best supported answer; texts that hold prompt injections are left out.
    - yes-or-no questions and "free" are answered as the extractive reader does, from words.
    - "answer-alone", "knowledge": always abstains.

    As a judge (`judge`), it compares two answers to one question by rules, and by the model where no rule applies.
    Options and errors are those of `PassageReader`.
    """

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
            return _WORDS.generate(prompt).text
        return _TASKS[prompt.task](self, prompt)

    def _atomic(self, prompt: Prompt) -> str | None:
        return next((given_answer.answer for given_answer in self._best_answers(prompt)), None)

    def _answer(self, prompt: Prompt) -> str | None:
        given = self._best_answers(prompt)
        if not given:
            return None
        best = max(given, key=lambda given_answer: given_answer.weight)
        return best.answer if read_question(prompt.question).kind in _CRISP else sentence_of(*best[:3])

    def _consolidate(self, prompt: Prompt) -> str | None:
        return "\n".join(dict.fromkeys(sentence_of(*given_answer[:3]) for given_answer in self._best_answers(prompt)))

    def _best_answers(self, prompt: Prompt) -> list[GivenAnswer]:
        """The texts that give the best supported answer."""
        texts = [text for text in _texts(prompt) if prompt.task != "consolidate" or not has_injection(text)]
        readings = self.read_pairs([(prompt.question, text) for text in texts])
        given = [
            GivenAnswer(reading.answer, text, reading.start, (1 - 0.5 * rank / len(texts)) * (1 - reading.no_answer))
            for rank, (reading, text) in enumerate(zip(readings, texts, strict=True))
            if reading.answer
        ]
        return heaviest_group(prompt.question, given)


_CRISP = ("person", "place", "date", "number")
"""Questions that a bare name, date or number answers; to others the sentence in which the answer stands says more."""

_READING: frozenset[Task] = frozenset(("atomic", "answer", "decide", "consolidate"))


_WORDS = ExtractiveReader()


def load_reader(*, threshold: float = THRESHOLD, threads: int | None = None) -> Reader:
    """The reader of the package unpoison-reader; one for all who ask in a process, for it costs some 100 MB.

    Args:
        threshold: As for `Reader`; with options a reader of its own is made.
        threads: As for `Reader`.

    Raises:
        MissingExtraError: The extra `reader` is not installed.
        ModelError: Its files were cut or changed.
    """
    return _shipped("reader", threshold, threads)


def load_base_reader(*, threshold: float = THRESHOLD, threads: int | None = None) -> Reader:
    """The larger reader, of the package unpoison-reader-base: it reads better, and takes several times as long.

    Args:
        threshold: As for `Reader`; with options a reader of its own is made.
        threads: As for `Reader`.

    Raises:
        MissingExtraError: The extra `reader-base` is not installed.
        ModelError: Its files were cut or changed.
    """
    return _shipped("reader-base", threshold, threads)


def _shipped(name: str, threshold: float, threads: int | None) -> Reader:
    if threshold != THRESHOLD or threads is not None:
        return Reader(shipped=name, threshold=threshold, threads=threads)
    with _LOADING:
        if name not in _LOADED:
            _LOADED[name] = Reader(shipped=name)
        return _LOADED[name]


_LOADED: dict[str, Reader] = {}
_LOADING = Lock()


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
    return central(prompt.question, [text.strip() for text in prompt.passages if informative(text)])


_TASKS: dict[Task, Callable[[Reader, Prompt], str | None]] = {
    "atomic": Reader._atomic,
    "answer": Reader._answer,
    "decide": Reader._answer,
    "consolidate": Reader._consolidate,
    "synthesize": _synthesize,
}


SAME = 0.5
"""Answers that say the same with at least this probability are one."""

COMPARED = 200
"""Distinct answers that are compared with each other; one that comes later counts for itself."""


class GivenAnswer(NamedTuple):
    """An answer, the text that gives it, where it begins there, and how much it counts."""

    answer: str
    text: str
    start: int
    weight: float


def heaviest_group(question: str, given: Sequence[GivenAnswer]) -> list[GivenAnswer]:
    """Of the answers given those of the heaviest group that says the same, in order; empty where none is."""
    same = alike(question, [answer.answer for answer in given])
    groups = [[supporter for j, supporter in enumerate(given) if same[i, j]] for i in range(len(given))]
    return max(groups, key=lambda group: sum(answer.weight for answer in group), default=[])


def alike(question: str, answers: Sequence[str]) -> NDArray[np.bool_]:
    """Which answers say the same, shape (n, n); each two distinct ones are compared once, the first `COMPARED` only."""
    position: dict[str, int] = {}
    where = np.array([position.setdefault(answer, len(position)) for answer in answers], dtype=int)
    distinct = list(position)
    same = np.eye(len(distinct), dtype=bool)
    for i, left in enumerate(distinct[:COMPARED]):
        for j, right in enumerate(distinct[:i]):
            same[i, j] = same[j, i] = relation(question, left, right).same >= SAME
    alike: NDArray[np.bool_] = same[np.ix_(where, where)]
    return alike


def central(question: str, answers: Sequence[str]) -> str | None:
    """The answer that most others equal, contain or are contained in; of equals the earlier one."""
    same = alike(question, answers)
    folded = [answer.casefold() for answer in answers]
    votes = [(int(same[i].sum()), sum(contained in folded[i] for contained in folded), -i) for i in range(len(answers))]
    return answers[-max(votes)[2]] if votes else None
