"""The reader: a small model that finds the words of a passage that answer a question, if any.

It is the default without a language model: defenses that read passages one by one use it as their generator, and as the
judge of contradictions between answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Reply
from unpoison.models.extractive import ABSTENTION, ExtractiveReader, has_injection
from unpoison.models.passage_reader import THRESHOLD, PassageReader
from unpoison.models.prompts import Prompt, Task
from unpoison.text.answers import relation
from unpoison.text.questions import read_question
from unpoison.text.replies import informative
from unpoison.text.sentences import sentence_of
from unpoison.utils.plain_text import encodable

__all__ = ["GivenAnswer", "Reader", "central", "heaviest_group", "load_reader"]


class Reader(PassageReader):
    """An extractive question-answering model as a generator: a shipped one, or any checkpoint. Not a language model.

    It copies words. It does not infer, compare, count or translate, and has no knowledge beside the passages. Each
    passage is read separately: passages do not influence each other. Passages for which `read` gives no answer
    (`threshold`) do not answer in any task.

    The tasks of a prompt:

    - "atomic": the passage's answer, or an abstention.
    - "answer", "decide": the best supported answer: each text adds its certainty to its answer, less with its rank (the
      last one half), and equivalent answers count together. Unless a bare name, date or number is asked for, the
      sentence of the answer.
    - "synthesize": of the given answers, the one that most others equal, contain or are contained in.
    - "consolidate": the sentences with the best supported answer; texts with prompt injections are left out.
    - yes-or-no questions and "free" are left to the extractive reader.
    - "answer-alone", "knowledge": always abstains.

    As a judge (`judge`), it compares two answers to a question by rules, and by the model if no rule applies. Options
    and errors are those of `PassageReader`.
    """

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """`generate_batch` for one prompt."""
        return self.generate_batch([prompt], timeout=timeout)[0]

    def generate_batch(self, prompts: Sequence[Prompt], /, *, timeout: float | None = None) -> list[Reply]:
        """Reply from the prompts' fields, with all passages read in one batch; "I don't know" without an answer.

        Raises:
            ModelError: The model failed, or the timeout passed.
        """
        self.read_pairs([(p.question, text) for p in prompts if _reads(p) for text in _texts(p)], timeout=timeout)
        return [Reply(encodable(self._reply(prompt) or ABSTENTION)) for prompt in prompts]

    def _reply(self, prompt: Prompt) -> str | None:
        return _WORDS.generate(prompt).text if not _reads(prompt) else _TASKS[prompt.task](self, prompt)

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
        """The texts with the best supported answer."""
        texts = [text for text in _texts(prompt) if prompt.task != "consolidate" or not has_injection(text)]
        readings = self.read_pairs([(prompt.question, text) for text in texts])
        given = [
            GivenAnswer(reading.answer, text, reading.start, (1 - 0.5 * rank / len(texts)) * (1 - reading.no_answer))
            for rank, (reading, text) in enumerate(zip(readings, texts, strict=True))
            if reading.answer
        ]
        return heaviest_group(prompt.question, given)


_CRISP = ("person", "place", "date", "number")
"""Types of questions that are answered by a bare name, date or number; other answers are whole sentences."""

_READING: frozenset[Task] = frozenset(("atomic", "answer", "decide", "consolidate"))


_WORDS = ExtractiveReader()


def load_reader(name: str = "reader", /, *, threshold: float = THRESHOLD, threads: int | None = None) -> Reader:
    """A shipped reader; shared within a process, because the small one needs about 100 MB and the others twice that.

    Args:
        name: "reader", the small one; "reader-base", more accurate, and several times slower; "reader-multilingual",
            which these ask about texts that are not English.
        threshold: As for `Reader`; with options, the reader is not shared.
        threads: As for `Reader`.

    Raises:
        OptionError: No such reader.
        MissingExtraError: The extra `reader`, or for the larger one `reader-base`, is not installed.
        ModelError: Its files are truncated or changed.
    """
    if threshold != THRESHOLD or threads is not None:
        return Reader(shipped=name, threshold=threshold, threads=threads)
    with _LOADING:
        if name not in _LOADED:
            _LOADED[name] = Reader(shipped=name)
        return _LOADED[name]


_LOADED: dict[str, Reader] = {}
_LOADING = Lock()


def _reads(prompt: Prompt) -> bool:
    """Whether the model reads for this prompt; other prompts are left to the extractive reader."""
    if prompt.task == "synthesize":
        return True
    return prompt.task in _READING and bool(prompt.question.strip()) and read_question(prompt.question).kind != "polar"


def _texts(prompt: Prompt) -> list[str]:
    """The texts of a prompt to read."""
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
"""Minimum probability at which two answers are equivalent."""

COMPARED = 200
"""Maximum number of distinct answers to compare with each other; later ones stay separate."""


class GivenAnswer(NamedTuple):
    """An answer, its text, its start in the text, and its weight."""

    answer: str
    text: str
    start: int
    weight: float


def heaviest_group(question: str, given: Sequence[GivenAnswer]) -> list[GivenAnswer]:
    """The heaviest group of equivalent answers, in input order; empty without answers."""
    same = alike(question, [answer.answer for answer in given])
    groups = [[supporter for j, supporter in enumerate(given) if same[i, j]] for i in range(len(given))]
    return max(groups, key=lambda group: sum(answer.weight for answer in group), default=[])


def alike(question: str, answers: Sequence[str]) -> NDArray[np.bool_]:
    """Which answers are equivalent, shape (n, n); only the first `COMPARED` distinct answers are compared."""
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
    """The answer that most others equal, contain or are contained in; ties go to the earlier one."""
    same = alike(question, answers)
    folded = [answer.casefold() for answer in answers]
    votes = [(int(same[i].sum()), sum(contained in folded[i] for contained in folded), -i) for i in range(len(answers))]
    return answers[-max(votes)[2]] if votes else None
