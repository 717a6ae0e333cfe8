"""The built-in encoder and NLI judges: words and rules, no download, no learned weights.

The encoder takes about a millisecond for ten passages. One judge compares statements, the other two answers to a
question.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

from unpoison.errors import InputError
from unpoison.text.answers import Relation, relation
from unpoison.text.tokens import ENGLISH_318, UNSPACED, word_set

__all__ = ["AnswerNLI", "LexicalEncoder", "LexicalNLI", "judge_pairs"]

MAX_TEXTS = 10_000
"""Maximum texts of a call: a vector has as many entries as the call has texts."""

_UNSPACED = UNSPACED + r"\uac00-\ud7af"  # Hangul has spaces, but many suffixes
_TOKEN = re.compile(
    rf"[^\W_{_UNSPACED}]+"  # a word or number
    rf"|[{_UNSPACED}]+"  # a run of several words without spaces
    r"|[\u2190-\u2bff\U0001f000-\U0001faff]"  # one symbol or emoji
)
_RUN = re.compile(rf"[{_UNSPACED}]{{2,}}")

_BLOCK = 2**22
"""Maximum entries of the text-term matrix in memory (32 MB)."""


class LexicalEncoder:
    """Vectors from the words that the texts of one call share.

    First every text becomes a bag of stems: English stop words dropped, counts damped to 1 + ln(count), scaled to
    length 1; scripts without spaces contribute character pairs, emoji count individually. Then a text is represented by
    its cosine to every text of the call, again scaled to length 1. The second step is latent semantic analysis with
    squared instead of truncated singular values: texts that resemble the same texts become similar, and paraphrases
    reach the similarities of a sentence encoder (0.85 and above), which thresholds such as TrustRAG's require.

    There is no inverse document frequency. Among passages retrieved for one question it is lowest for the very words
    that coordinated passages repeat; on the built-in sample, it loses a tenth of the detected poisoned passages.

    Measured on 63 Natural Questions with the published PoisonedRAG texts, five among ten passages: two poisoned
    passages have a mean cosine of 0.83 (all-MiniLM-L6-v2: 0.84), a poisoned and a clean one 0.46 (0.51), two clean
    ones 0.43 (0.46), and RAGDefender drops 88 % of the poisoned ones (92 %).

    Limits: it compares words, not meaning. Paraphrases in other words, translations and misspellings look unrelated,
    and passages with the same topic words look similar. Similarities grow with the number of texts on one topic: among
    50 news snippets on one question two clean ones have 0.68, with MiniLM 0.49. Vectors of different calls cannot be
    compared, hence `per_set`. The stop words and stems are English.
    """

    name = "lexical"
    per_set = True

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Vectors of one set of texts.

        Returns:
            Shape (n, n), rows of length 1; the row of a text without any letter, digit or symbol is 0. Time and
            memory grow with n squared and with the length of the texts.

        Raises:
            InputError: More than 10,000 texts.
        """
        if len(texts) > MAX_TEXTS:
            raise InputError(
                f"the lexical encoder compares all texts of a call, at most {MAX_TEXTS:,}, got {len(texts):,}; "
                "encode one query's passages at a time, or use another encoder"
            )
        if not texts:
            return np.zeros((0, 1), np.float32)
        cosines = _cosines([_bag(text) for text in texts])
        length = np.linalg.norm(cosines, axis=1, keepdims=True)
        return (cosines / np.where(length > 0, length, 1.0)).astype(np.float32)

    def __repr__(self) -> str:
        return "LexicalEncoder()"


class _Bag(NamedTuple):
    """The words and symbols of a text, and its character pairs as numbers."""

    words: list[str]
    pairs: NDArray[np.int64]


_NO_PAIRS = np.zeros(0, np.int64)


def _bag(text: str) -> _Bag:
    """Words, character pairs and symbols of a text; stop words only if it has nothing else."""
    lowered = text.lower()
    tokens: list[str] = _TOKEN.findall(lowered)
    pairs = _NO_PAIRS
    if not lowered.isascii():
        runs = [token for token in tokens if _RUN.match(token)]
        if runs:
            pairs, tokens = _pairs(runs), [token for token in tokens if not _RUN.match(token)]
    # Single Latin letters remain of "king's" or "J. S. Bach".
    telling = [token for token in tokens if token not in ENGLISH_318 and not (len(token) == 1 and "a" <= token <= "z")]
    return _Bag(telling if telling or pairs.size else tokens, pairs)


def _pairs(runs: Sequence[str]) -> NDArray[np.int64]:
    """Every two neighbouring characters of each run as one number, to avoid a million strings for a long text."""
    codes = np.frombuffer("\0".join(runs).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
    return (codes[:-1] << 21 | codes[1:])[(codes[:-1] > 0) & (codes[1:] > 0)]


def _cosines(bags: Sequence[_Bag]) -> NDArray[np.float64]:
    """The cosine of every two bags, stemmed and with damped counts, shape (n, n); empty bags give 0."""
    size = len(bags)
    vocabulary = list(dict.fromkeys(chain.from_iterable(bag.words for bag in bags)))
    stemmed = Stemmer.Stemmer("english", 0).stemWords(vocabulary)
    position = dict(zip(dict.fromkeys(stemmed), count()))
    column_of = dict(zip(vocabulary, map(position.__getitem__, stemmed)))
    pairs, column = np.unique(np.concatenate([bag.pairs for bag in bags]), return_inverse=True)
    columns = len(position) + pairs.size

    owner = np.repeat(np.arange(size), [len(bag.words) for bag in bags])
    words = map(column_of.__getitem__, chain.from_iterable(bag.words for bag in bags))
    column = np.concatenate([np.fromiter(words, np.int64, owner.size), len(position) + column])
    owner = np.concatenate([owner, np.repeat(np.arange(size), [bag.pairs.size for bag in bags])])
    cell, number = np.unique(owner * columns + column, return_counts=True)
    owner, column = np.divmod(cell, max(columns, 1))
    weight = 1 + np.log(number)
    length = np.sqrt(np.bincount(owner, weight**2, size))
    weight /= length[owner]

    # A term of a single text affects only that text's length, which is already computed.
    shared = np.bincount(column, minlength=columns)[column] > 1
    owner, weight = owner[shared], weight[shared]
    terms, column = np.unique(column[shared], return_inverse=True)
    cosines = np.zeros((size, size))
    width = max(_BLOCK // size, 1)
    for start in range(0, terms.size, width):
        inside = (column >= start) & (column < start + width)
        block = np.zeros((size, min(width, terms.size - start)))
        block[owner[inside], column[inside] - start] = weight[inside]
        cosines += block @ block.T
    np.fill_diagonal(cosines, length > 0)
    return cosines


_QUESTION_AND_ANSWER = re.compile(r"\s*question:(.*?)\banswer:(.*)", re.IGNORECASE | re.DOTALL)

_WORD = re.compile(
    r"\d+(?:[.,]\d+)*"  # 1990, 1,300, 3.5
    r"|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # scripts without spaces
    r"|[^\W\d_]+(?:['\u2019][^\W\d_]+)*"  # Paris, don't
    r"|[.!?]"  # after the end of a sentence, a capital carries no information
)

_UNITS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty""".split()  # noqa: SIM905 - a list literal of this length is unreadable
_TENS = "thirty forty fifty sixty seventy eighty ninety hundred".split()  # noqa: SIM905
_NUMBERS = {word: str(value) for value, word in enumerate(_UNITS)}
_NUMBERS |= {word: str(10 * value) for value, word in enumerate(_TENS, start=3)}

_NEGATIONS = word_set("no not never none nobody nothing nowhere neither nor without cannot")

# Verdicts: P(entailment), P(neutral), P(contradiction). Chosen by hand, not fitted to data.
_SAME = (0.96, 0.03, 0.01)
_CONTAINED = (0.85, 0.13, 0.02)
_CONTAINS = (0.65, 0.33, 0.02)
_ADDS = (0.20, 0.75, 0.05)
_UNRELATED = (0.05, 0.85, 0.10)
_REPLACED = (0.15, 0.30, 0.55)
_OTHER_ANSWER = (0.05, 0.20, 0.75)
_CONFLICT = (0.02, 0.08, 0.90)

_SHORT = 6
"""Maximum content words of an answer that is a name, number or phrase rather than an explanation."""


class LexicalNLI:
    """A judge that compares numbers, names, negation and the overlap of content words.

    Pairs of the form "Question: q Answer: a" with the same q are compared by the words that their answers add to the
    question: the same or a contained answer is entailment, another short answer contradiction. Bare statements are
    related only if they share half of the shorter one's content words. Then, in this order: one of the two negated is
    contradiction; different numbers, or different names, in the same place are contradiction; a hypothesis without new
    words is entailment (under negation: without missing words); a single replaced word leans to contradiction; the rest
    is neutral.

    Measured by `benchmarks nli`, without fitting: accuracy 0.67 on SICK (always neutral: 0.57), 0.63 on MED (0.50),
    0.71 on Breaking NLI (always contradiction: 0.86). It finds 92 % of SICK's contradictions, which are mostly
    negations, and 42 % of its entailments.

    Limits: it knows no synonyms, antonyms, units, paraphrases or facts, detects a negation but not its scope, and
    recognises names by their capitals. The probabilities are fixed steps, not calibrated. The word lists are English;
    in other languages it uses equality, numbers and names. If accuracy matters, use an NLI checkpoint.
    """

    name = "lexical"

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
    """A parsed statement.

    Attributes:
        question: The stems of its question, None for a bare statement.
        content: Its content stems and numbers, without the question's.
        numbers, names: The content that is a number, or capitalised inside a sentence.
        negated: Whether it contains a negation.
    """

    question: frozenset[str] | None
    content: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    negated: bool


def _statement(text: str) -> _Statement:
    framed = _QUESTION_AND_ANSWER.fullmatch(text)
    if framed is None:
        return _bare(text)
    question, own = _bare(framed[1]).content, _bare(framed[2])
    # An answer that only repeats words of the question ("Is it Paris or Lyon?") is used whole.
    fresh = own.content - question or own.content
    return _Statement(question, fresh, own.numbers & fresh, own.names & fresh, own.negated)


def _bare(text: str) -> _Statement:
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
    return _Statement(None, frozenset(content), frozenset(numbers), frozenset(names), negated)


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
    """Whether each has a number, or each a name, that the other does not have."""
    numbers = premise.numbers & lost and hypothesis.numbers & added
    return bool(numbers or (premise.names & lost and hypothesis.names & added))


def _containment(same_question: bool, negated: bool, *, nothing_new: bool) -> tuple[float, float, float]:
    """The verdict if one statement contains the other."""
    if nothing_new != negated:  # negation reverses entailment: "nobody came" entails "nobody came late"
        return _CONTAINED
    return _CONTAINS if same_question else _ADDS


Relate = Callable[[str, Sequence[tuple[str, str]]], list[Relation]]
"""A function from a question and pairs of answers to the relation of each pair."""


class AnswerNLI:
    """Compares answers by rules for numbers, dates, units, lists and names (`text.answers`). No model.

    Equivalent answers are entailment, rivals contradiction, compatible ones neutral. Other statements are left to the
    lexical judge. Names without a common word count as rivals, so it does not know that Holland is the Netherlands; the
    shipped reader knows somewhat more.
    """

    name = "answers"

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n, 3): P(entailment), P(neutral), P(contradiction) of each (premise, hypothesis)."""
        return judge_pairs(pairs, lambda question, answers: [relation(question, *pair) for pair in answers])

    def __repr__(self) -> str:
        return "AnswerNLI()"


def _class_probabilities(related: Relation) -> tuple[float, float, float]:
    """Entailment, neutral, contradiction: the likelier of same and rival; the other one counts as neutral.

    Otherwise small probabilities would add up over many passages, and connect answers that differ.
    """
    agree = related.same >= related.rival
    return (related.same, 1 - related.same, 0.0) if agree else (0.0, 1 - related.rival, related.rival)


def judge_pairs(pairs: Sequence[tuple[str, str]], relate: Relate) -> NDArray[np.float64]:
    """Judge pairs of the form "Question: q Answer: a" with the same q by `relate`, others by the lexical judge."""
    probabilities = np.zeros((len(pairs), 3))
    by_question: dict[str, list[int]] = {}
    bare, answers = [], {}
    for i, (premise, hypothesis) in enumerate(pairs):
        left, right = _QUESTION_AND_ANSWER.fullmatch(premise), _QUESTION_AND_ANSWER.fullmatch(hypothesis)
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
