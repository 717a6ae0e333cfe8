"""Whether a reply gives an answer, and how plainly a passage states it. Words and rules, no model."""

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
"""A reply that has this share of the words by which an answer differs from its question gives that answer."""

LIKELY = 0.5
"""From this probability on, two answers are the same, or rivals."""

WINDOW = 2
"""Sentences in which an answer and what it answers have to stand together."""

UNASKED = 0.25
"""What a passage's stating the answer counts where nothing of the question stands beside it."""


def claim(question: str, answer: str) -> frozenset[str]:
    """The stems that an answer adds to its question: what tells one answer from another.

    All its stems where it adds none, as in "which is larger, the sun or the moon".
    """
    question_words = read_question(question).content
    given = _stems(answer[:MAX_REPLY])
    telling = frozenset(word for word in given if word not in STOP_WORDS) or frozenset(given)
    return telling - question_words or telling


def says(question: str, reply: str, answer: str) -> bool:
    """Whether a reply gives the answer, in whatever words; a denial of it does not.

    Rules for names, dates, numbers, yes and no decide where they are sure (`text.answers`). Otherwise the reply has
    to hold the words that the answer adds to the question, or the answer those of a shorter reply. Linear time.

    Args:
        question: What was asked.
        reply: What a model replied, of which `MAX_REPLY` characters are read.
        answer: The answer to look for, as short or as long as it was given.
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
    own = claim(question, reply)  # of a reply without a word, such as "?", nothing
    return len(wanted & reply_words) >= MIN_SHARE * len(wanted) or (bool(own) and own <= wanted)


def statements(question: str, answer: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """How plainly each text states the answer to the question.

    The share of the answer's telling words (rare ones among the texts count more) in the best two sentences, less
    where these share few words with the question. A first line without a full stop is a title, and stands beside each.

    Returns:
        Shape (k,), in [0, 1]. Linear time in the texts.
    """
    wanted, question_words = claim(question, answer), read_question(question).content
    if wanted <= STOP_WORDS:  # yes, no: no word of the passage says so, but it has to be about the question
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
    """1,200 as 1200."""
    return stem(word.replace(",", "")) if word[:1].isdecimal() else word
