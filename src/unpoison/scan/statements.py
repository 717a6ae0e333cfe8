"""Whether a reply gives an answer, and how explicitly a passage states it. Rules, no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.injections import THRESHOLD, detect
from unpoison.text.answer_forms import MAX_ANSWER_CHARS
from unpoison.text.answers import relation
from unpoison.text.canonical import canonical
from unpoison.text.questions import read_question
from unpoison.text.replies import informative
from unpoison.text.sentences import STOP_WORDS, Sentence, split, stem

__all__ = ["STATED", "Stance", "Suspect", "claim", "says", "statement_strengths", "suspects_among"]

HINT, STATED = 0.25, 0.6
"""Minimum strength of a statement that may be behind an answer, and of one that clearly states it."""

MAX_REPLY = 10_000
"""Characters of a reply that are read."""

MIN_SHARE = 0.8
"""Minimum share of an answer's distinctive words in a reply that gives the answer."""

LIKELY = 0.5
"""Minimum probability at which two answers are the same, or rivals."""

WINDOW = 2
"""Number of adjacent sentences in which the answer and the question's words are looked for."""

UNASKED = 0.25
"""Strength of a statement without any word of the question."""


def claim(question: str, answer: str) -> frozenset[str]:
    """The stems of an answer that its question does not have, which distinguish it from other answers.

    All its stems if there are none, as in "which is larger, the sun or the moon".
    """
    question_words = read_question(question).content
    given = _stems(answer[:MAX_REPLY])
    telling = frozenset(word for word in given if word not in STOP_WORDS) or frozenset(given)
    return telling - question_words or telling


def says(question: str, reply: str, answer: str) -> bool:
    """Whether a reply gives the answer in any wording; a denial does not.

    Rules for names, dates, numbers, yes and no decide if they are sure (`text.answers`). Otherwise the reply must
    contain the distinctive words of the answer, or the answer those of a shorter reply. Linear time.

    Args:
        question: The question.
        reply: The reply of a model; the first `MAX_REPLY` characters are read.
        answer: The answer to look for, of any length.
    """
    if not informative(reply):
        return False
    if max(len(reply), len(answer)) <= MAX_ANSWER_CHARS:
        related = relation(question, reply, answer)
        if related.same >= LIKELY:
            return True
        if related.sure and related.rival >= LIKELY:
            return False
    wanted, reply_words = claim(question, answer), _stems(reply[:MAX_REPLY])
    if not wanted:
        return reply.strip().casefold() == answer.strip().casefold()
    own = claim(question, reply)  # empty for a reply without words, such as "?"
    return len(wanted & reply_words) >= MIN_SHARE * len(wanted) or (bool(own) and own <= wanted)


def statement_strengths(question: str, answer: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """How explicitly each text states the answer to the question.

    The share of the answer's distinctive words, weighted by rarity among the texts, in the best two sentences; lower if
    these share few words with the question. A first line without a full stop is a title, and counts with each.

    Returns:
        Shape (k,), in [0, 1]. Linear time in the texts.
    """
    wanted, question_words = claim(question, answer), read_question(question).content
    if wanted <= STOP_WORDS:  # yes or no: only the topic can be checked
        wanted = frozenset()
    parts = [split(text) for text in texts]
    spread = Counter(word for sentences in parts for word in wanted & _all(sentences))
    rarity = {word: log(1 + (len(texts) + 1) / (1 + spread[word])) for word in wanted}
    return np.array([_strength_of_statement(sentences, rarity, question_words) for sentences in parts], float)


def _strength_of_statement(sentences: Sequence[Sentence], rarity: dict[str, float], question_words: Set[str]) -> float:
    best, total = 0.0, sum(rarity.values())
    title = _words(sentences[0]) if sentences and not sentences[0].text.endswith((".", "!", "?")) else frozenset()
    for at in range(len(sentences)):
        near = frozenset[str]().union(*map(_words, sentences[at : at + WINDOW]))
        held = sum(weight for word, weight in rarity.items() if word in near) / total if total else 1.0
        about = len(question_words & (near | title)) / max(len(question_words), 1)
        best = max(best, held * (UNASKED + (1 - UNASKED) * about))
    return min(best, 1.0)


def _all(sentences: Sequence[Sentence]) -> frozenset[str]:
    return frozenset[str]().union(*map(_words, sentences))


def _words(sentence: Sentence) -> frozenset[str]:
    return frozenset(map(_number, sentence.distinct))


def _stems(text: str) -> frozenset[str]:
    return _all(split(text)) if text.strip() else frozenset()


def _number(word: str) -> str:
    """The stem of a word; numbers without thousands separators."""
    return stem(word.replace(",", "")) if word[:1].isdecimal() else word


class Stance(StrEnum):
    """The position of a document on the answer."""

    STATES = "states the wrong answer, or gives orders"
    SILENT = "does not state the wrong answer"
    RIGHT = "states what is right"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A document that may be behind the answer.

    Attributes:
        id: The name of the document.
        text: Its text, after its title.
        stated: How explicitly it states the wrong answer, in [0, 1].
        right: How explicitly it states a right answer, in [0, 1]; 0 if none is known.
    """

    id: str
    text: str
    stated: float
    right: float = 0.0

    @property
    def standing(self) -> Stance:
        """Whether its text can be behind the wrong answer; independent of any reply."""
        if self.right >= STATED and self.stated < STATED:
            return Stance.RIGHT
        ordered = self.stated < HINT and detect(canonical(self.text).text).probability > THRESHOLD
        return Stance.STATES if self.stated >= HINT or ordered else Stance.SILENT

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values, without the text."""
        return {"id": self.id, "stated": round(self.stated, 4), "standing": self.standing.value}


def suspects_among(
    question: str, answers: Sequence[str], documents: Mapping[str, str], right: Sequence[str] = ()
) -> list[Suspect]:
    """Documents by how explicitly they state a wrong answer; equal ones in their order.

    Args:
        question: The question.
        answers: The wrong answer, or the wrong part of it, and other wrong answers that replaced it.
        documents: Texts by name.
        right: Known right answers.
    """
    names, texts = list(documents), list(documents.values())
    wrong, agree = _strengths(question, answers, texts), _strengths(question, right, texts)
    suspects = [Suspect(*fields) for fields in zip(names, texts, wrong, agree)]
    return sorted(suspects, key=lambda one: -round(one.stated, 9))


def _strengths(question: str, answers: Sequence[str], texts: Sequence[str]) -> list[float]:
    """How explicitly each text states one of the answers, in [0, 1]; 0 without an answer."""
    stated = [np.zeros(len(texts)), *(statement_strengths(question, answer, texts) for answer in answers)]
    return list(np.max(stated, axis=0).tolist())
