"""The extractive reader: answers without any model, for demonstrations, tests and offline evaluation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from unpoison.models.answer_types import read_question
from unpoison.models.reading import Finding, read, restates
from unpoison.models.sentences import split
from unpoison.prompts import Prompt, Task, informative
from unpoison.types import Reply

__all__ = ["ExtractiveReader"]

ABSTENTION = "I don't know"

RELEVANT = 1 / 3
"""A single passage whose best sentence covers less of the question than this has nothing to say about it."""

LONGEST_REPLY = 40
"""Words; a longer sentence is cut around the answer."""

SHORTEST_CLAUSE = 4
SURE = 0.5
"""An answer that fits the expected type this well stands alone in an atomic answer; others bring their clause."""

CONSOLIDATED = 8
"""Sentences that a consolidation keeps at most."""

_BREAK = re.compile(r"[,;:()—–]|\s-\s")
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:instruction|question|query|prompt|context|above|previous|other)"
    r"|\b(?:when|if|whenever)\b.{0,40}\basked\b"
    r"|\b(?:always|must|please|only|just)\s+(?:answer|output|respond|reply|say|print|state)\b"
    r"|\b(?:output|respond|reply)\s+(?:with\b|[\"'“‘:])"
    r"|\[/?INST\]|<\|?(?:system|im_start)",
    re.IGNORECASE,
)


class ExtractiveReader:
    """x."""

    @property
    def name(self) -> str:
        return "extractive"

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """Reply to a prompt from its fields; `timeout` is not needed."""
        return Reply(_TASKS[prompt.task](prompt) or ABSTENTION)


def _answer(prompt: Prompt) -> str | None:
    found = read(read_question(prompt.question), prompt.passages)
    return _statement(found[0]) if found else None


def _atomic(prompt: Prompt) -> str | None:
    question = read_question(prompt.question)
    found = read(question, prompt.passages)
    if not found or found[0].coverage < RELEVANT:
        return None
    if question.kind in ("date", "number") and not found[0].fit:
        return None  # a passage without any date does not say when
    return found[0].answer if question.kind == "polar" or found[0].fit >= SURE else _clause(found[0])


def _nothing(prompt: Prompt) -> None:
    """It has no memory."""


def _consolidate(prompt: Prompt) -> str | None:
    """The sentences that agree with the best supported answer, from passages that give no orders."""
    question = read_question(prompt.question)
    notes = [text for text in prompt.notes.values() if informative(text)]
    passages = [text for text in (*notes, *prompt.passages) if not _ORDER.search(text)]
    agreeing = [finding for finding in read(question, passages) if finding.coverage >= RELEVANT]
    return "\n".join(list(dict.fromkeys(finding.sentence.text for finding in agreeing))[:CONSOLIDATED])


def _decide(prompt: Prompt) -> str | None:
    """As "answer", with the paragraphs of all informative notes as passages."""
    lines = [line for text in prompt.notes.values() if informative(text) for line in text.splitlines() if line.strip()]
    found = read(read_question(prompt.question), lines)
    return _statement(found[0]) if found else None


def _synthesize(prompt: Prompt) -> str | None:
    """The reference answer of the largest group of answers that equal, contain or are contained in it."""
    answers = [text.strip() for text in prompt.passages if informative(text)]
    keys = [f" {' '.join(stem for sentence in split(text) for stem in sentence.stems)} " for text in answers]
    counts = Counter(keys)
    sizes = {key: sum(n for other, n in counts.items() if key in other or other in key) for key in counts}
    ranked = sorted(range(len(answers)), key=lambda i: (-sizes[keys[i]], -counts[keys[i]], i))
    return answers[ranked[0]] if ranked else None


def _free(prompt: Prompt) -> str | None:
    """The first sentence that shares a word with the question."""
    question = read_question(prompt.question)
    for text in (*prompt.passages, *prompt.notes.values()):
        for sentence in split(text):
            if sentence.distinct & question.content and not restates(sentence, question):
                return sentence.text
    return None


def _statement(finding: Finding) -> str:
    """The sentence of an answer, cut around it when it is long; a bare yes or no stays bare."""
    sentence = finding.sentence
    if finding.answer in ("Yes", "No"):
        return finding.answer
    if len(sentence.words) <= LONGEST_REPLY:
        return sentence.text
    first = max(0, min(finding.start - LONGEST_REPLY // 2, len(sentence.words) - LONGEST_REPLY))
    return sentence.span(first, max(finding.end, first + LONGEST_REPLY))


def _clause(finding: Finding) -> str:
    """The part of the sentence between commas and the like that holds the answer; the sentence where that is short."""
    sentence = finding.sentence
    start, end = finding.start, finding.end
    while start and not _BREAK.search(sentence.gap(start - 1)):
        start -= 1
    while end < len(sentence.words) and not _BREAK.search(sentence.gap(end - 1)):
        end += 1
    return sentence.span(start, end) if end - start >= SHORTEST_CLAUSE else _statement(finding)


_TASKS: dict[Task, Callable[[Prompt], str | None]] = {
    "answer": _answer,
    "atomic": _atomic,
    "answer-alone": _nothing,
    "knowledge": _nothing,
    "consolidate": _consolidate,
    "decide": _decide,
    "synthesize": _synthesize,
    "free": _free,
}
