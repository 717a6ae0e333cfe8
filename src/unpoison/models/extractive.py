"""The extractive reader: answers without any model, for demonstrations, tests and offline evaluation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from unpoison.models.prompts import Prompt, Task, informative
from unpoison.models.questions import read_question
from unpoison.models.reading import SpanAnswer, read, restates
from unpoison.models.sentences import split
from unpoison.types import Reply

__all__ = ["ABSTENTION", "ExtractiveReader", "has_injection"]

ABSTENTION = "I don't know"

RELEVANT = 1 / 3
"""A passage that holds no larger share of the question's words has nothing to say about it."""

TOKENS_PER_WORD = 2
"""How a prompt's bound in tokens becomes one in words, on the safe side for English."""

CONSOLIDATED = 8
"""Sentences that a consolidation keeps at most."""

_INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:instructions?|questions?|quer(?:y|ies)|prompts?|context|above|previous)\b"
    r"|\b(?:always|must|please|only)\s+(?:answer|output|respond|reply)\b"
    r"|\[/?INST\]|<\|(?:system|user|assistant|im_start)",
    re.IGNORECASE | re.DOTALL,
)
"""How texts speak that tell a system what to answer."""


def has_injection(text: str) -> bool:
    """Whether a text tells a system what to answer."""
    return bool(_INJECTION.search(text))


class ExtractiveReader:
    """A deterministic reader that copies the best supported sentence of the passages. It is no language model.

    It finds the sentence that covers most of the question's words and holds an answer of the expected type (a name, a
    place, a date, a number, yes or no) which several passages support, and replies with that sentence or with the
    bare answer. It does not infer, compare, count, translate, or combine two passages, and it knows nothing of the
    world: expect it to be right in little more than half of the cases where the passages hold the answer, as
    `benchmarks answers` measures. Results that were obtained with it must say so; they show what a defense does to
    the passages, not how a language model would have answered.

    As a victim it is fooled by what fools retrieval and word-matching readers: a passage that repeats the question's
    words around a wrong answer, more so at a good rank or in several passages. Orders hidden in passages are not
    understood, hence neither obeyed nor refused: an order that quotes the question and names an answer is a sentence
    that covers the question well, and is usually chosen. Only when asked to consolidate does it leave out texts that
    give orders, as the prompt demands. A passage that occurs twice word for word counts once; paraphrases count each.

    The tasks of a prompt:

    - "answer", "decide": the best supported sentence, cut to the length asked for; "Yes" or "No" to such questions.
    - "atomic": the bare answer where it fits the expected type well, so that passages that agree give equal texts; else
      the sentence. Abstains where the passage shares no more than a third of the question's words, or has no date or
      number to offer where one is asked for.
    - "consolidate": the best supported sentence and those of other passages that hold the same answer.
    - "synthesize": the answer that most others equal, contain or are contained in; if all differ, as "answer".
    - "free": the first sentence that shares a word with the question.
    - "answer-alone", "knowledge": always abstains.

    Questions and passages may be in any language, but types are recognised in English only; elsewhere words (single
    characters in Chinese and Japanese) decide. Time is linear in the passages' length. May be shared between threads.
    """

    @property
    def name(self) -> str:
        return "extractive"

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """Reply from the prompt's fields; what cannot be answered is answered with "I don't know".

        Args:
            prompt: Its `system` and `closing` are not read.
            timeout: Not needed; a reply takes milliseconds.
        """
        return Reply(_TASKS[prompt.task](prompt) or ABSTENTION)


def _answer(prompt: Prompt) -> str | None:
    reading = read(read_question(prompt.question), prompt.passages)
    return _statement(reading[0], prompt) if reading else None


def _atomic(prompt: Prompt) -> str | None:
    question = read_question(prompt.question)
    reading = read(question, prompt.passages)
    if not reading or reading[0].relevance <= RELEVANT:
        return None
    if question.kind in ("date", "number") and not reading[0].fit:
        return None
    return reading[0].answer if reading[0].sure else _statement(reading[0], prompt)


def _no_answer(prompt: Prompt) -> None:
    """It has no memory to answer from."""


def _consolidate(prompt: Prompt) -> str | None:
    texts = [
        text for text in (*prompt.notes.values(), *prompt.passages) if informative(text) and not has_injection(text)
    ]
    reading = read(read_question(prompt.question), texts)
    kept = reading[:1] + [finding for finding in reading[1:] if finding.relevance > RELEVANT]
    return "\n".join(list(dict.fromkeys(finding.sentence.text for finding in kept))[:CONSOLIDATED])


def _decide(prompt: Prompt) -> str | None:
    reading = read(read_question(prompt.question), [text for text in prompt.notes.values() if informative(text)])
    return _statement(reading[0], prompt) if reading else None


def _synthesize(prompt: Prompt) -> str | None:
    answers = [text.strip() for text in prompt.passages if informative(text)]
    keys = [_key(text) for text in answers]
    counts = Counter(keys)
    sizes = {key: sum(count for longer, count in counts.items() if key in longer or longer in key) for key in counts}
    best = max(range(len(answers)), key=lambda i: (sizes[keys[i]], counts[keys[i]], -i), default=None)
    if best is None:
        return None
    if sizes[keys[best]] > 1 or len(answers) == 1:
        return answers[best]
    reading = read(read_question(prompt.question), answers)
    return _statement(reading[0], prompt) if reading else answers[0]


def _key(answer: str) -> str:
    """An answer's stems, spaced so that containment respects words; what follows the first sentences is let go."""
    return f" {' '.join(stem for sentence in split(answer)[:3] for stem in sentence.stems)} "


def _free(prompt: Prompt) -> str | None:
    question = read_question(prompt.question)
    for text in (*prompt.passages, *prompt.notes.values()):
        for sentence in split(text):
            if sentence.distinct & question.content and not restates(sentence, question):
                return sentence.text
    return None


def _statement(finding: SpanAnswer, prompt: Prompt) -> str:
    """The sentence of an answer, cut around it to the length asked for; a yes or no stays bare."""
    sentence, longest = finding.sentence, max(1, prompt.max_tokens // TOKENS_PER_WORD)
    if finding.answer in ("Yes", "No"):
        return finding.answer
    if len(sentence.words) <= longest:
        return sentence.text
    first = max(0, min((finding.start + finding.end - longest) // 2, len(sentence.words) - longest))
    return sentence.span(first, first + longest)


_TASKS: dict[Task, Callable[[Prompt], str | None]] = {
    "answer": _answer,
    "atomic": _atomic,
    "answer-alone": _no_answer,
    "knowledge": _no_answer,
    "consolidate": _consolidate,
    "decide": _decide,
    "synthesize": _synthesize,
    "free": _free,
}
