"""Whether a reply gives an answer, and how explicitly a passage states it. Rules, no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from math import log

import numpy as np
from numpy.typing import NDArray

from unpoison.models.prompts import informative
from unpoison.text.answer_forms import MAX_ANSWER_CHARS
from unpoison.text.answers import relation
from unpoison.text.questions import read_question
from unpoison.text.sentences import STOP_WORDS, Sentence, split, stem

__all__ = ["MAX_REPLY", "claim", "says", "statements"]

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


def statements(question: str, answer: str, texts: Sequence[str]) -> NDArray[np.float64]:
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
