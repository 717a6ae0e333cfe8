"""NLI without a model: the lexical judge of statements, and rules for two answers to one question."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import Stemmer
from numpy.typing import NDArray

from unpoison.text.answers import Relation, relation
from unpoison.text.tokens import ENGLISH_318

__all__ = ["AnswerNLI", "LexicalNLI", "judge_pairs"]

_QUESTION_AND_ANSWER = re.compile(r"\s*question:(.*?)\banswer:(.*)", re.IGNORECASE | re.DOTALL)

_WORD = re.compile(
    r"\d+(?:[.,]\d+)*"  # 1990, 1,300, 3.5
    r"|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # scripts without spaces
    r"|[^\W\d_]+(?:['\u2019][^\W\d_]+)*"  # Paris, don't
    r"|[.!?]"  # where a sentence ends, capitals mean nothing
)

_UNITS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty""".split()  # noqa: SIM905 - a list literal of this length is unreadable
_TENS = "thirty forty fifty sixty seventy eighty ninety hundred".split()  # noqa: SIM905
_NUMBERS = {word: str(value) for value, word in enumerate(_UNITS)}
_NUMBERS |= {word: str(10 * value) for value, word in enumerate(_TENS, start=3)}

_NEGATIONS = frozenset(
    {"no", "not", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor", "without", "cannot"}
)

# Verdicts: P(entailment), P(neutral), P(contradiction). Chosen by judgement, fitted to no data.
_SAME = (0.96, 0.03, 0.01)
_CONTAINED = (0.85, 0.13, 0.02)
_CONTAINS = (0.65, 0.33, 0.02)
_ADDS = (0.20, 0.75, 0.05)
_UNRELATED = (0.05, 0.85, 0.10)
_REPLACED = (0.15, 0.30, 0.55)
_OTHER_ANSWER = (0.05, 0.20, 0.75)
_CONFLICT = (0.02, 0.08, 0.90)

_SHORT = 6
"""Content words up to which an answer is taken for one name, number or phrase rather than an explanation."""


class LexicalNLI:
    """A judge that compares numbers, names, negation and the overlap of content words.

    Pairs of the form "Question: q Answer: a" with the same q are compared by what their answers add to the question:
    the same or a contained answer is entailment, another short answer contradiction. Bare statements must first
    share half of the shorter one's content words to be related at all. Then, in this order: one of the two negated is
    contradiction; different numbers, or different names, in the same place are contradiction; a hypothesis that
    says nothing new is entailment (under negation: one that says nothing less); a single word replaced leans to
    contradiction; the rest is neutral.

    Measured by `benchmarks nli`, nothing fitted: accuracy 0.67 on SICK (always neutral: 0.57), 0.63 on MED (0.50),
    0.71 on Breaking NLI (always contradiction: 0.86). It finds 92 % of SICK's contradictions, which are mostly
    negations, and 42 % of its entailments.

    Limits: it knows no synonyms, antonyms, units, paraphrases or facts of the world, notes that a negation occurs but
    not what it negates, and knows names by their capitals. The probabilities are fixed steps, not calibrated. Its
    words are English; of other languages it uses equality, numbers and names. Where accuracy matters, use an NLI
    checkpoint.
    """

    name = "lexical"
    isolated = True
    """Each pair is judged as if it were alone."""

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n, 3): P(entailment), P(neutral), P(contradiction) of each (premise, hypothesis)."""
        read: dict[str, _Statement] = {}
        for text in {text for pair in pairs for text in pair}:
            read[text] = _statement(text)
        rows = [_judge_pair(read[premise], read[hypothesis]) for premise, hypothesis in pairs]
        return np.array(rows, np.float64).reshape(len(rows), 3)

    def __repr__(self) -> str:
        return "LexicalNLI()"


@dataclass(frozen=True, slots=True)
class _Statement:
    """What the rules look at.

    Attributes:
        question: The stems of the question that it answers, None for a bare statement.
        content: Its content stems and numbers, without the question's.
        numbers, names: Those of them that are numbers, or capitalised inside a sentence.
        negated: Whether a negation occurs.
    """

    question: frozenset[str] | None
    content: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    negated: bool


def _statement(text: str) -> _Statement:
    framed = _QUESTION_AND_ANSWER.fullmatch(text)
    if framed is None:
        content, numbers, names, negated = _content(text)
        return _Statement(None, content, numbers, names, negated)
    question = _content(framed[1])[0]
    content, numbers, names, negated = _content(framed[2])
    # An answer that only repeats words of the question ("Is it Paris or Lyon?") is taken whole.
    fresh = content - question or content
    return _Statement(question, fresh, numbers & fresh, names & fresh, negated)


def _content(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str], bool]:
    stem = Stemmer.Stemmer("english", 0).stemWord
    folded = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    content, numbers, names = set[str](), set[str](), set[str]()
    negated, starts = False, True
    for piece in _WORD.findall(unicodedata.normalize("NFC", folded)):
        if piece in ".!?":
            starts = True
            continue
        word = piece.lower().replace("\u2019", "'")
        number = _NUMBERS.get(word, word.replace(",", "") if word[0].isdigit() else None)
        if number is not None:
            numbers.add(number)
            content.add(number)
        elif word in _NEGATIONS or word.endswith("n't"):
            negated = True
        elif (word := word.removesuffix("'s")) not in ENGLISH_318 and word != "yes":
            stemmed = stem(word)
            content.add(stemmed)
            if not starts and piece[0].isupper():
                names.add(stemmed)
        starts = False
    return frozenset(content), frozenset(numbers), frozenset(names), negated


def _judge_pair(premise: _Statement, hypothesis: _Statement) -> tuple[float, float, float]:
    """The verdict of the first rule that applies."""
    same_question = premise.question is not None and premise.question == hypothesis.question
    lost, added = premise.content - hypothesis.content, hypothesis.content - premise.content
    common = len(premise.content & hypothesis.content)
    shorter = min(len(premise.content), len(hypothesis.content))
    related = 2 * common >= shorter
    short = same_question and max(len(premise.content), len(hypothesis.content)) <= _SHORT

    if premise.negated != hypothesis.negated:
        return _CONFLICT if related else _UNRELATED
    if not lost and not added:
        return _SAME
    if (related or same_question) and _has_conflict(premise, hypothesis, lost, added):
        return _CONFLICT
    if not (related or short):
        return _UNRELATED
    if not lost or not added:
        return _containment(same_question, premise.negated, nothing_new=not added)
    if short:
        return _OTHER_ANSWER
    return _REPLACED if len(lost) == len(added) == 1 else _ADDS


def _has_conflict(premise: _Statement, hypothesis: _Statement, lost: frozenset[str], added: frozenset[str]) -> bool:
    """Whether each has a number, or each a name, that the other lacks."""
    return bool(
        (premise.numbers & lost and hypothesis.numbers & added) or (premise.names & lost and hypothesis.names & added)
    )


def _containment(same_question: bool, negated: bool, *, nothing_new: bool) -> tuple[float, float, float]:
    """One statement says all that the other says, and more."""
    if nothing_new != negated:  # to deny less is to deny more: "nobody came" entails "nobody came late"
        return _CONTAINED
    return _CONTAINS if same_question else _ADDS


Relate = Callable[[str, Sequence[tuple[str, str]]], list[Relation]]
"""A question and pairs of answers to it, to how each two relate."""

_FRAMED = re.compile(r"\s*question:(.*?)\banswer:(.*)", re.IGNORECASE | re.DOTALL)


class AnswerNLI:
    """Compares answers by rules for numbers, dates, units, lists and names (`text.answers`). No model.

    The same answer is entailment, rival answers contradict, compatible ones are neutral. Statements that are no
    answers to one question are left to the lexical judge. Names that share no word are taken for rivals, so it does not
    know that Holland is the Netherlands; the shipped reader knows somewhat more.
    """

    name = "answers"
    isolated = True
    """Each pair is judged as if it were alone."""

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n, 3): P(entailment), P(neutral), P(contradiction) of each (premise, hypothesis)."""
        return judge_pairs(pairs, lambda question, answers: [relation(question, *pair) for pair in answers])

    def __repr__(self) -> str:
        return "AnswerNLI()"


def _class_probabilities(related: Relation) -> tuple[float, float, float]:
    """Entailment, neutral, contradiction: the likelier of same and rival; the other one counts as neutral.

    A small doubt on every pair adds up over many passages, and would tie answers together that differ.
    """
    agree = related.same >= related.rival
    return (related.same, 1 - related.same, 0.0) if agree else (0.0, 1 - related.rival, related.rival)


def judge_pairs(pairs: Sequence[tuple[str, str]], relate: Relate) -> NDArray[np.float64]:
    """Judge pairs of the form "Question: q Answer: a" with the same q by `relate`, others by the lexical judge."""
    probabilities = np.zeros((len(pairs), 3))
    by_question: dict[str, list[int]] = {}
    bare, answers = [], {}
    for i, (premise, hypothesis) in enumerate(pairs):
        left, right = _FRAMED.fullmatch(premise), _FRAMED.fullmatch(hypothesis)
        if left is None or right is None or left[1].strip() != right[1].strip():
            bare.append(i)
        else:
            by_question.setdefault(left[1].strip(), []).append(i)
            answers[i] = (left[2].strip(), right[2].strip())
    for question, positions in by_question.items():
        for i, related in zip(positions, relate(question, [answers[i] for i in positions]), strict=True):
            probabilities[i] = _class_probabilities(related)
    if bare:
        probabilities[bare] = LexicalNLI().judge([pairs[i] for i in bare])
    return probabilities
