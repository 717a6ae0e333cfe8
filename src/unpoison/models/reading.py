"""Which sentence of several passages answers a question best, and with which words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unpoison.models.answer_spans import AnswerSpan, spans
from unpoison.models.questions import Question
from unpoison.models.sentences import STOP_WORDS, Sentence, split

__all__ = ["Scored", "SpanAnswer", "read", "restates", "score_sentences"]

CONTEXT = 0.5
"""What a question word counts that stands elsewhere in the passage: titles and earlier sentences set the topic."""

HALF_NEAR = 8
"""At this distance, in words, from a word of the question a candidate is half as near as beside it."""

SURE = 0.7
"""A span that fits the expected type less well needs its sentence to be understood."""

SENTENCES_PER_PASSAGE = 4
"""Only a passage's best sentences are searched for candidates."""

MAX_CANDIDATES = 48
"""Only the best candidates are compared with each other, pair by pair."""

_COPULAS = frozenset(("is", "was", "are", "were"))
_NEGATIONS = frozenset(
    """no not never none neither nor cannot without isn't aren't wasn't weren't doesn't don't didn't can't won't hasn't
    haven't""".split()  # noqa: SIM905 - a list literal of this length is unreadable
)


@dataclass(frozen=True, slots=True)
class Scored:
    """A sentence of one passage.

    Attributes:
        sentence: The sentence.
        passage: The position of its passage.
        score: How well it covers the question, in [0, 1].
        own: The question's words that it holds itself.
        relevance: The share of the question's words that its passage holds, in [0, 1].
    """

    sentence: Sentence
    passage: int
    score: float
    own: frozenset[str]
    relevance: float


@dataclass(frozen=True, slots=True)
class SpanAnswer:
    """An answer and the sentence that it was found in.

    Attributes:
        answer: The words of the expected type; "Yes" or "No"; or the whole sentence where it holds no such words.
        sentence: The sentence.
        start, end: The answer's words in the sentence, `end` exclusive.
        passage: The position of its passage.
        relevance: The share of the question's words that its passage holds, in [0, 1].
        fit: How well the words fit the expected type, in (0, 1]; 0 where they were not looked for or not found.
        sure: Whether the answer can stand alone, without its sentence.
        score: The sentence's score, fit and place in the sentence together; comparable within one question.
    """

    answer: str
    sentence: Sentence
    start: int
    end: int
    passage: int
    relevance: float
    fit: float
    sure: bool
    score: float


def score_sentences(question: Question, passages: Sequence[str]) -> list[list[Scored]]:
    """For each passage its sentences that can hold an answer, best first; a repeated passage is read once.

    A sentence's score is the share of the question's words that it covers, weighted by their rarity among all
    sentences; words that stand elsewhere in its passage count half. Questions, and sentences that only restate the one
    asked, can hold no answer.
    """
    seen: set[str] = set()
    read: list[tuple[Sentence, ...]] = []
    for text in passages:
        key = " ".join(text.lower().split())
        read.append(() if key in seen else split(_split_question(text, question.text)))
        seen.add(key)
    owned = [[question.content & sentence.distinct for sentence in sentences] for sentences in read]
    total = sum(map(len, read))
    frequency = Counter(word for words in owned for owned_words in words for word in owned_words)
    weights = {word: math.log(1 + total / max(1, frequency[word])) for word in sorted(question.content)}
    return [
        _score_passage(question, position, sentences, owned_words, weights)
        for position, (sentences, owned_words) in enumerate(zip(read, owned))
    ]


def _split_question(text: str, question: str) -> str:
    """Put a question that begins the passage on a line of its own, whatever glues it to the text."""
    stripped = text.lstrip()
    if question and stripped[: len(question)].lower() == question.lower() and len(stripped) > len(question):
        return f"{question}\n{stripped[len(question) :].lstrip(' .?!:')}"
    return text


def _score_passage(
    question: Question,
    position: int,
    sentences: Sequence[Sentence],
    owned: Sequence[frozenset[str]],
    weights: Mapping[str, float],
) -> list[Scored]:
    """One passage's sentences that can hold an answer, best first."""
    present = frozenset[str]().union(*owned)
    whole = sum(weights.values())
    mentioned = sum(weight for word, weight in weights.items() if word in present)
    ranked = []
    for sentence, own in zip(sentences, owned):
        if not present or restates(sentence, question):
            continue
        covered = sum(weight for word, weight in weights.items() if word in own)
        score = (covered + CONTEXT * (mentioned - covered)) / whole
        ranked.append(Scored(sentence, position, score, own, len(present) / len(question.content)))
    return sorted(ranked, key=lambda scored: -scored.score)


def restates(sentence: Sentence, question: Question) -> bool:
    """Whether a sentence only repeats the question's words, or asks itself."""
    if sentence.text.rstrip("\"'\u201d\u2019)] ").endswith(("?", "\uff1f")):
        return True
    if question.kind in ("polar", "choice"):  # an affirmation has the question's words in another order
        return sentence.stems[: len(question.stems)] == question.stems
    return not sentence.distinct - STOP_WORDS - question.content - frozenset(question.stems)


def read(question: Question, passages: Sequence[str]) -> list[SpanAnswer]:
    """The best supported answer, then the findings of other passages that support it, by passage.

    A candidate is a span of the expected type in a good sentence. Its own score is the square of the sentence's,
    times its fit, its nearness to the question's words and its prominence. Each passage lends every candidate the
    score of the best candidate that it holds and that equals, contains or is contained in it. Passages lose weight
    evenly with their rank; the last counts half.

    Returns:
        Empty where no sentence shares a word with the question.
    """
    ranked = score_sentences(question, passages)
    if question.kind == "polar":
        return _polar(ranked)
    candidates: dict[tuple[str, int], SpanAnswer] = {}
    for scored in ranked:
        for sentence in scored[:SENTENCES_PER_PASSAGE]:
            for finding in _candidates(question, sentence, 1 - 0.5 * sentence.passage / len(ranked)):
                key = (_key(finding), sentence.passage)
                if key not in candidates or candidates[key].score < finding.score:
                    candidates[key] = finding
    return _rank_by_support(candidates) if candidates else _whole(ranked)


def _key(finding: SpanAnswer) -> str:
    stems = finding.sentence.stems[finding.start : finding.end]
    return f" {' '.join([s for s in stems if s not in STOP_WORDS] or stems)} "


def _candidates(question: Question, scored: Scored, trust: float) -> list[SpanAnswer]:
    sentence = scored.sentence
    stressed = question.head | {question.predicate}
    hits = [
        (2.0 if word in stressed else 1.0, [i for i, s in enumerate(sentence.stems) if s == word])
        for word in sorted(scored.own)
    ]
    stress = sum(weight for weight, _ in hits)
    findings = []
    for span in spans(sentence, question):
        middle = (span.start + span.end - 1) / 2
        nearness = CONTEXT
        if hits:
            nearness = sum(w / (1 + min(abs(middle - i) for i in where) / HALF_NEAR) for w, where in hits) / stress
        score = trust * scored.score**2 * span.fit * nearness * _prominence(sentence, span, question)
        answer, sure = sentence.span(span.start, span.end), span.fit >= SURE
        findings.append(
            SpanAnswer(answer, sentence, span.start, span.end, scored.passage, scored.relevance, span.fit, sure, score)
        )
    return findings


def _prominence(sentence: Sentence, span: AnswerSpan, question: Question) -> float:
    """1 for a span anywhere, more where grammar ties it to what is asked.

    2 where it stands beside the noun that the question asks for ("Kent County", "the river Stour"), 1.5 where it is
    the subject of the verb that the question asks about, or of a definition.
    """
    stems = sentence.stems
    around = stems[max(0, span.start - 1) : span.end + 1]
    if question.kind in ("place", "thing", "person") and question.head.intersection(around):
        return 2.0
    if question.predicate:
        agent = span.start > 0 and stems[span.start - 1] == "by"
        return 1.5 if agent or question.predicate in stems[span.end : span.end + 2] else 1.0
    defined = (
        span.start <= 1 and span.end < len(stems) and (stems[span.end] in _COPULAS or "," in sentence.gap(span.end - 1))
    )
    return 1.5 if defined and question.kind in ("person", "thing") else 1.0


def _rank_by_support(candidates: dict[tuple[str, int], SpanAnswer]) -> list[SpanAnswer]:
    best = sorted(candidates.items(), key=lambda item: -item[1].score)[:MAX_CANDIDATES]
    top: tuple[float, float] = (-1.0, -1.0)
    chosen: list[SpanAnswer] = []
    for (key, _), finding in best:
        lent: dict[int, SpanAnswer] = {}
        for (supporting_key, passage), supporter in best:
            if supporting_key in key or key in supporting_key:
                lent.setdefault(passage, supporter)
        support = (sum(supporter.score for supporter in lent.values()), finding.score)
        if support > top:
            top = support
            chosen = [finding, *(lent[passage] for passage in sorted(lent) if passage != finding.passage)]
    return chosen


def _whole(ranked: Sequence[Sequence[Scored]]) -> list[SpanAnswer]:
    """The best sentence itself, where none holds words of the expected type."""
    firsts = sorted((scored[0] for scored in ranked if scored and scored[0].own), key=lambda first: -first.score)
    return [_sentence_answer(first.sentence.text, first, sure=False) for first in firsts[:1]]


def _sentence_answer(answer: str, scored: Scored, *, sure: bool) -> SpanAnswer:
    length = len(scored.sentence.words)
    return SpanAnswer(answer, scored.sentence, 0, length, scored.passage, scored.relevance, 0.0, sure, scored.score)


def _polar(ranked: Sequence[Sequence[Scored]]) -> list[SpanAnswer]:
    """Yes or no by the polarity of every passage's best sentence, weighted by the square of what it covers."""
    firsts = sorted((scored[0] for scored in ranked if scored), key=lambda first: -first.score)
    denied = {first.passage: any(s in _NEGATIONS for s in first.sentence.stems) for first in firsts}
    balance = sum(
        (-1 if denied[first.passage] else 1) * (1 - 0.5 * first.passage / len(ranked)) * first.score**2
        for first in firsts
    )
    agreeing = [first for first in firsts if denied[first.passage] == (balance < 0)]
    return [_sentence_answer("No" if balance < 0 else "Yes", first, sure=True) for first in agreeing]
