"""The extractive reader: answers without a model, for demonstrations, tests and offline evaluation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from unpoison.core.answers import Reply
from unpoison.injections import THRESHOLD, detect
from unpoison.models.answer_spans import AnswerSpan, spans
from unpoison.models.prompts import Prompt, Task
from unpoison.text.answers import affirms
from unpoison.text.languages import table
from unpoison.text.questions import ParsedQuestion, asked_language, read_question
from unpoison.text.replies import informative
from unpoison.text.sentences import STOP_WORDS, Sentence, split

__all__ = ["ABSTENTION", "ExtractiveReader", "has_injection"]

ABSTENTION = "I don't know"

RELEVANT = 1 / 3
"""A passage with at most this share of the question's words is irrelevant."""

TOKENS_PER_WORD = 2
"""Conversion of a prompt's token limit to words, conservative for English."""

CONSOLIDATED = 8
"""Maximum sentences of a consolidation."""


def has_injection(text: str) -> bool:
    """Whether a text contains a prompt injection."""
    return detect(text).probability > THRESHOLD


class ExtractiveReader:
    """A deterministic reader that copies the best supported sentence of the passages. It is not a language model.

    It finds the sentence that covers most of the question's words and contains an answer of the expected type (a name,
    a place, a date, a number, yes or no) that several passages support, and replies with that sentence or with the
    bare answer. It does not infer, compare, count, translate, or combine passages, and has no world knowledge: it is
    right in a little more than half of the cases in which the passages contain the answer (`benchmarks grid answers`).
    Results with it must say so; they show the effect of a defense on the passages, not the answers of a language model.

    As a victim it is fooled like retrieval and other word-matching readers: by a passage that repeats the question's
    words around a wrong answer, especially at a good rank or in several passages. It does not understand prompt
    injections, so it neither follows nor refuses them: an injection that quotes the question and an answer covers the
    question well, and is usually chosen. Only "consolidate" leaves out texts with injections, as the prompt demands.
    Identical passages count once; paraphrases count separately.

    The tasks of a prompt:

    - "answer", "decide": the best supported sentence, cut to the requested length; yes or no to such questions.
    - "atomic": the bare answer if it fits the expected type well, so that passages that agree give equal texts; else
      the sentence. Abstains if the passage has at most a third of the question's words, or no date or number although
      one is asked for.
    - "consolidate": the best supported sentence and those of other passages with the same answer.
    - "synthesize": the answer that most others equal, contain or are contained in; if all differ, as "answer".
    - "free": the first sentence that shares a word with the question.
    - "answer-alone", "knowledge": always abstains.

    Questions and passages may be in any language, but types are recognised in English only; otherwise words decide
    (single characters in Chinese and Japanese). Linear time. Thread-safe.
    """

    name = "extractive"

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """Reply from the prompt's fields, or with "I don't know".

        Args:
            prompt: Its `system` and `closing` are ignored.
            timeout: Ignored; a reply takes milliseconds.
        """
        return Reply(_TASKS[prompt.task](prompt) or ABSTENTION)


def _answer(prompt: Prompt) -> str | None:
    return _best_statement(prompt, prompt.passages)


def _decide(prompt: Prompt) -> str | None:
    return _best_statement(prompt, [text for text in prompt.notes.values() if informative(text)])


def _best_statement(prompt: Prompt, texts: Sequence[str]) -> str | None:
    reading = read(read_question(prompt.question), texts)
    return _statement(reading[0], prompt) if reading else None


def _atomic(prompt: Prompt) -> str | None:
    question = read_question(prompt.question)
    reading = read(question, prompt.passages)
    if not reading or reading[0].relevance <= RELEVANT:
        return None
    if question.kind in ("date", "number") and not reading[0].fit:
        return None
    return reading[0].answer if reading[0].sure else _statement(reading[0], prompt)


def _consolidate(prompt: Prompt) -> str | None:
    texts = [one for one in (*prompt.notes.values(), *prompt.passages) if informative(one) and not has_injection(one)]
    reading = read(read_question(prompt.question), texts)
    kept = reading[:1] + [finding for finding in reading[1:] if finding.relevance > RELEVANT]
    return "\n".join(list(dict.fromkeys(finding.sentence.text for finding in kept))[:CONSOLIDATED])


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
    return _best_statement(prompt, answers) or answers[0]


def _key(answer: str) -> str:
    """The stems of an answer's first sentences, with spaces so that containment respects word boundaries."""
    return f" {' '.join(stem for sentence in split(answer)[:3] for stem in sentence.stems)} "


def _free(prompt: Prompt) -> str | None:
    question = read_question(prompt.question)
    sentences = (sentence for text in (*prompt.passages, *prompt.notes.values()) for sentence in split(text))
    return next((s.text for s in sentences if s.distinct & question.content and not restates(s, question)), None)


def _statement(finding: SpanAnswer, prompt: Prompt) -> str:
    """The sentence of an answer, cut around it to the requested length; yes and no stay bare."""
    sentence, longest = finding.sentence, max(1, prompt.max_tokens // TOKENS_PER_WORD)
    if read_question(prompt.question).kind == "polar":
        return finding.answer
    if len(sentence.words) <= longest:
        return sentence.text
    first = max(0, min((finding.start + finding.end - longest) // 2, len(sentence.words) - longest))
    return sentence.span(first, first + longest)


_TASKS: dict[Task, Callable[[Prompt], str | None]] = {
    "answer": _answer,
    "atomic": _atomic,
    "answer-alone": lambda _: None,  # it has no memory to answer from
    "knowledge": lambda _: None,
    "consolidate": _consolidate,
    "decide": _decide,
    "synthesize": _synthesize,
    "free": _free,
}


CONTEXT = 0.5
"""The weight of a question word elsewhere in the passage: titles and earlier sentences set the topic."""

HALF_NEAR = 8
"""The distance in words from a question word at which the nearness of a candidate is halved."""

SURE = 0.7
"""Minimum fit of a span that is understandable without its sentence."""

SENTENCES_PER_PASSAGE = 4
"""Number of a passage's best sentences that are searched for candidates."""

MAX_CANDIDATES = 48
"""Number of best candidates that are compared in pairs."""

_COPULAS = frozenset(("is", "was", "are", "were"))


@dataclass(frozen=True, slots=True)
class Scored:
    """A sentence of one passage.

    Attributes:
        sentence: The sentence.
        passage: The position of its passage.
        score: Its coverage of the question, in [0, 1].
        own: The question's words in it.
        relevance: The share of the question's words in its passage, in [0, 1].
    """

    sentence: Sentence
    passage: int
    score: float
    own: frozenset[str]
    relevance: float


@dataclass(frozen=True, slots=True)
class SpanAnswer:
    """An answer and its sentence.

    Attributes:
        answer: The words of the expected type; "Yes" or "No"; or the whole sentence if it has no such words.
        sentence: The sentence.
        start, end: The answer's words in the sentence, `end` exclusive.
        passage: The position of its passage.
        relevance: The share of the question's words in its passage, in [0, 1].
        fit: The fit of the words to the expected type, in (0, 1]; 0 if not sought or not found.
        sure: Whether the answer is understandable without its sentence.
        score: Combines the sentence's score, fit and position in the sentence; comparable within one question.
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


def score_sentences(question: ParsedQuestion, passages: Sequence[str]) -> list[list[Scored]]:
    """For each passage, its sentences that can contain an answer, best first; a repeated passage is read once.

    The score of a sentence is its coverage of the question's words, weighted by their rarity among all sentences; words
    elsewhere in its passage count half. Questions, and sentences that only restate the question, contain no answer.
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
    """Put a question at the beginning of a passage on a line of its own."""
    stripped = text.lstrip()
    if question and stripped[: len(question)].lower() == question.lower() and len(stripped) > len(question):
        return f"{question}\n{stripped[len(question) :].lstrip(' .?!:')}"
    return text


def _score_passage(
    question: ParsedQuestion,
    position: int,
    sentences: Sequence[Sentence],
    owned: Sequence[frozenset[str]],
    weights: Mapping[str, float],
) -> list[Scored]:
    """The sentences of one passage that can contain an answer, best first."""
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


def restates(sentence: Sentence, question: ParsedQuestion) -> bool:
    """Whether a sentence only repeats the question's words, or is a question itself."""
    if sentence.text.rstrip("\"'\u201d\u2019)] ").endswith(("?", "\uff1f")):
        return True
    if question.kind == "polar":  # an affirmation has the question's words in another order
        return asked_language(question.text) is None and sentence.stems[: len(question.stems)] == question.stems
    return not sentence.distinct - STOP_WORDS - question.content - frozenset(question.stems)


def read(question: ParsedQuestion, passages: Sequence[str]) -> list[SpanAnswer]:
    """The best supported answer, then the supporting findings of other passages, by passage.

    A candidate is a span of the expected type in a good sentence. Its own score is the square of the sentence's score,
    times its fit, its nearness to the question's words and its prominence. Each passage adds to every candidate the
    score of its best candidate that equals, contains or is contained in it. Weights fall linearly with rank; the last
    passage counts half.

    Returns:
        Empty if no sentence shares a word with the question.
    """
    ranked = score_sentences(question, passages)
    if question.kind == "polar":
        return _polar(ranked, question)
    candidates: dict[tuple[str, int], SpanAnswer] = {}
    for scored in ranked:
        for sentence in scored[:SENTENCES_PER_PASSAGE]:
            for finding in _candidates(question, sentence, 1 - 0.5 * sentence.passage / len(ranked)):
                key = (_span_key(finding), sentence.passage)
                if key not in candidates or candidates[key].score < finding.score:
                    candidates[key] = finding
    return _rank_by_support(candidates) if candidates else _whole(ranked)


def _span_key(finding: SpanAnswer) -> str:
    stems = finding.sentence.stems[finding.start : finding.end]
    return f" {' '.join([s for s in stems if s not in STOP_WORDS] or stems)} "


def _candidates(question: ParsedQuestion, scored: Scored, trust: float) -> list[SpanAnswer]:
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


def _prominence(sentence: Sentence, span: AnswerSpan, question: ParsedQuestion) -> float:
    """A factor of at least 1, higher if grammar connects the span to the question.

    2 beside the noun that the question asks for ("Kent County", "the river Stour"), 1.5 as the subject of the verb that
    the question asks about, or of a definition.
    """
    stems = sentence.stems
    around = stems[max(0, span.start - 1) : span.end + 1]
    if question.kind in ("place", "thing", "person") and question.head.intersection(around):
        return 2.0
    if question.predicate:
        agent = span.start > 0 and stems[span.start - 1] == "by"
        return 1.5 if agent or question.predicate in stems[span.end : span.end + 2] else 1.0
    early = span.start <= 1 and span.end < len(stems)
    defined = early and (stems[span.end] in _COPULAS or "," in sentence.gap(span.end - 1))
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
    """The best sentence itself, if none contains words of the expected type."""
    firsts = sorted((scored[0] for scored in ranked if scored and scored[0].own), key=lambda first: -first.score)
    return [_sentence_answer(first.sentence.text, first, sure=False) for first in firsts[:1]]


def _sentence_answer(answer: str, scored: Scored, *, sure: bool) -> SpanAnswer:
    length = len(scored.sentence.words)
    return SpanAnswer(answer, scored.sentence, 0, length, scored.passage, scored.relevance, 0.0, sure, scored.score)


def _polar(ranked: Sequence[Sequence[Scored]], question: ParsedQuestion) -> list[SpanAnswer]:
    """Yes or no, by the polarity of every passage's best sentence, weighted by its squared score."""
    firsts = sorted((scored[0] for scored in ranked if scored), key=lambda first: -first.score)
    denied = {f.passage: not affirms([word.lower() for word in f.sentence.words], question) for f in firsts}
    balance = sum(
        (-1 if denied[first.passage] else 1) * (1 - 0.5 * first.passage / len(ranked)) * first.score**2
        for first in firsts
    )
    agreeing = [first for first in firsts if denied[first.passage] == (balance < 0)]
    yes, no = table("replies").get(asked_language(question.text), "Yes, No").split(", ")
    return [_sentence_answer(no if balance < 0 else yes, first, sure=True) for first in agreeing]
