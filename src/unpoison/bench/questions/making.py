"""From documents to questions with a true and a false answer and the passage that proves the true one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from unpoison.bench.questions.documents import Document, passages_of
from unpoison.bench.questions.facts import Fact, facts_of
from unpoison.bench.questions.falsehoods import false_answer
from unpoison.bench.questions.writing import write_fact
from unpoison.errors import InputError
from unpoison.models.protocols import Generator
from unpoison.types import Passage

__all__ = ["Question", "QuestionSet", "make_questions"]

PREFERRED = ("number", "answer", "year", "name", "value", "definition", "task", "meaning", "gap")
"""Kinds in the order in which a document's questions are taken."""

TRIES = 3
"""A language model is shown so many passages for each question that is wanted."""

PER_DOCUMENT = 200
"""Candidates that one document may bring."""


@dataclass(frozen=True, slots=True)
class Question:
    """One target.

    Attributes:
        fact: The question with its true answer and its proof.
        false: A false answer of the same kind.
        passage: What proves the true one.
    """

    fact: Fact
    false: str
    passage: Passage

    def row(self) -> dict[str, Any]:
        """The row of the documented format."""
        return {
            "id": f"q-{blake2b(self.fact.question.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}",
            "question": self.fact.question,
            "correct_answers": [self.fact.answer],
            "incorrect_answers": [self.false],
            "passages": [
                {
                    "id": self.passage.id,
                    "title": self.passage.title,
                    "text": self.passage.text,
                    "source": self.passage.source,
                    "label": "gold",
                }
            ],
            "rule": self.fact.kind,
            "proof": self.fact.proof,
        }


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """What became of a collection.

    Attributes:
        questions: At most as many as were wanted, spread over the documents.
        passages: The whole collection, cut into passages.
        candidates: How many facts were found.
        left_out: How many were left out, by the reason.
    """

    questions: tuple[Question, ...]
    passages: tuple[Passage, ...]
    candidates: int
    left_out: Mapping[str, int]


def make_questions(
    documents: Sequence[Document],
    count: int = 100,
    *,
    generator: Generator | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> QuestionSet:
    """Make questions from a collection.

    Args:
        documents: The collection.
        count: How many are wanted; there may be fewer.
        generator: A language model that writes them; what it writes is checked against the passage, and the rules
            step in where it fails. A reader cannot write and is not asked.
        seed: Draws the false answers, and which documents come first.
        progress: Called with the questions made so far and wanted.

    Raises:
        InputError: Not one question can be made.
        ModelError: The model cannot be reached.
    """
    rng = np.random.default_rng(seed)
    candidates, passages, gone = _candidates(documents)
    by_kind: dict[str, list[str]] = defaultdict(list)
    for fact, _ in candidates:
        by_kind[fact.kind].append(fact.answer)
    questions: dict[str, Question] = {}

    def add(fact: Fact, false: str, passage: Passage) -> None:
        if len(questions) < count and fact.question.lower() not in questions:
            questions[fact.question.lower()] = Question(fact, false, passage)
            progress(len(questions), count)

    if generator is not None:
        for position in rng.permutation(len(passages))[: TRIES * count].tolist():
            if len(questions) < count and (written := write_fact(generator, passages[position])) is not None:
                add(*written, passages[position])
    for fact, passage in _in_turn(candidates, rng):
        if len(questions) == count:
            break
        false = false_answer(fact, passage.text, by_kind[fact.kind], rng)
        if false is None:
            gone["no false answer of its kind"] += 1
        else:
            add(fact, false, passage)
    if not questions:
        raise InputError(
            f"no question can be made of {len(documents)} documents with {len(passages)} passages: no sentence in them "
            "states a number, a name, a definition or an entry that the rules read; give more documents, or a language "
            "model with -g"
        )
    return QuestionSet(tuple(questions.values()), tuple(passages), len(candidates), dict(gone))


def _candidates(documents: Sequence[Document]) -> tuple[list[tuple[Fact, Passage]], list[Passage], Counter[str]]:
    """Every fact whose question has one answer in the whole collection, with the passage that holds its proof."""
    answers: dict[str, set[str]] = defaultdict(set)
    pairs, passages, gone = list[tuple[Fact, Passage]](), list[Passage](), Counter[str]()
    for document in documents:
        own = passages_of(document)
        passages += own
        facts = [fact for section in document.sections for fact in facts_of(section.heading, section.paragraphs)]
        for fact in facts[:PER_DOCUMENT]:
            passage = next((p for p in own if fact.answer in p.text and _holds(p, fact)), None)
            if passage is None:
                gone["its proof is cut in two"] += 1
                continue
            answers[fact.question.lower()].add(fact.answer)
            pairs.append((fact, passage))
    single = [(fact, passage) for fact, passage in pairs if len(answers[fact.question.lower()]) == 1]
    gone["two answers in the collection"] += len(pairs) - len(single)
    return single, passages, +gone


def _holds(passage: Passage, fact: Fact) -> bool:
    words = [word for word in fact.proof.split() if word.isalpha()]
    return sum(word in passage.text for word in words) >= 0.9 * len(words)


def _in_turn(candidates: Sequence[tuple[Fact, Passage]], rng: np.random.Generator) -> Iterator[tuple[Fact, Passage]]:
    """One of each document in turn, the documents in drawn order, the better kinds of each first, gaps last of all."""
    for gaps in (False, True):
        piles: dict[str, list[tuple[Fact, Passage]]] = defaultdict(list)
        for fact, passage in candidates:
            if (fact.kind == "gap") is gaps:
                piles[str(passage.source)].append((fact, passage))
        for pile in piles.values():
            pile.sort(key=lambda entry: PREFERRED.index(entry[0].kind))
        order = list(piles)
        rng.shuffle(order)
        for turn in range(max(map(len, piles.values()), default=0)):
            yield from (piles[name][turn] for name in order if turn < len(piles[name]))
