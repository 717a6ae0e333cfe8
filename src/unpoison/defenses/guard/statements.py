"""Statements: the answer of each passage, read alone.

A reader copies words and says how sure it is; any other generator answers from each passage. In a language that the
reader was not trained on, the answer is found by the question's words, if it is one of `languages.LANGUAGES`; other
languages are not read. If the question asks for a kind of value (`text.values`), only values of that kind are answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Self

from unpoison.core.passages import Passage, Query
from unpoison.defenses.voices import read_isolated
from unpoison.models.extractive import RELEVANT, ExtractiveReader
from unpoison.models.prompts import atomic_answer_reference_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, read
from unpoison.text.languages import LANGUAGES, fold, has_decimal_comma, mentions
from unpoison.text.questions import Kind, Wanted, read_question, wanted
from unpoison.text.replies import informative
from unpoison.text.sentences import sentence_of, sentences
from unpoison.text.tokens import READ_WORD
from unpoison.text.units import Numbers, single
from unpoison.text.values import answers_kind, compare_all, find_value, fits, question_coverage, values

__all__ = [
    "CERTAIN", "DOUBT", "MAX_READ", "UNLIKELY", "Statement", "completed", "find_by_words", "read_statements",
    "taken_back", "with_noun",
]  # fmt: skip

MAX_READ = 50
"""Maximum number of passages to read, those of counting sources first: about half a second on two cores."""

UNLIKELY = 0.9
"""Maximum P(no answer) of the likeliest words of a passage that the reader does not give as an answer."""

DOUBT = 0.03
"""Maximum P(no answer) of a statement that may contradict another: reading errors must not count as disputes."""

CERTAIN = 0.4
"""Maximum P(no answer) of a statement that drops its passage: the readers' own threshold."""

SHAPED = frozenset(("iban", "phone", "code"))
"""Kinds of value that are recognised by their shape, even if the reader gives no answer."""

GUESSED = 0.1
"""P(no answer) assumed for the extractive reader, in languages that the reader was not trained on."""

MAX_PLACES = 20
"""Maximum number of places in a sentence where an answer is looked for."""

_WORDS = ExtractiveReader()


class Statement(NamedTuple):
    """The answer of one passage.

    Attributes:
        answer: Words of the passage, or of the generator.
        sentence: The sentence around them.
        no_answer: P(the passage does not answer); 0 for a language model, which does not say.
        given: Whether the reader gives it as an answer; otherwise it is the passage's likeliest words.
    """

    answer: str
    sentence: str
    no_answer: float = 0.0
    given: bool = True

    @classmethod
    def found(cls, answer: str, text: str, no_answer: float = 0.0) -> Self:
        """An answer with its sentence in a text."""
        return cls(answer, sentence_of(answer, text, max(text.find(answer), 0)), no_answer)

    @property
    def confidence(self) -> float:
        return (1 - self.no_answer) ** 2


def read_statements(
    query: Query, passages: Sequence[Passage], generator: Generator | None
) -> Flow[dict[int, Statement]]:
    """The statement of each passage that answers, by position. One reading, or one call, for each passage.

    Every statement is a function of the question and of its own passage. Its answer has all that belongs to its values:
    a reader says "2" of "2 tablets a day".
    """
    found = yield from _read(query, passages, generator)
    alone = {i: one._replace(answer=_alone(one, passages[i].reading, query.reading)) for i, one in found.items()}
    return {i: one._replace(answer=with_noun(query.reading, one.answer, one.sentence)) for i, one in alone.items()}


def _alone(statement: Statement, text: str, question: str) -> str:
    """An answer that means without its passage what it means there; an English question gets 1,000 for 1.000."""
    answer = completed(statement.answer, statement.sentence)
    dotted = _DOTTED.search(answer) and not has_decimal_comma(question) and Numbers(text, has_decimal_comma(text)).dots
    return _DOTTED.sub(lambda match: match[0].replace(".", ","), answer) if dotted else answer


def completed(answer: str, sentence: str) -> str:
    """An answer with all that belongs to its values in its sentence: "2 tablets a day" for "2"."""
    for match in islice(re.finditer(re.escape(answer), sentence) if values(answer) else (), MAX_PLACES):
        start, end = match.span()
        apart = not sentence[max(start - 1, 0) : start].isalnum()  # no part of a longer number
        said = [
            v.reaching(start, end)
            for v in values(sentence)
            if start <= v.start < end or (apart and v.start < start < v.end)
        ]
        if said:
            regions = [value.whole or match.span() for value in said]
            return sentence[min(first for first, _ in regions) : max(last for _, last in regions)]
    return answer


def with_noun(question: str, answer: str, sentence: str) -> str:
    """An answer that ends in a number, with the plural behind it if the question names it: "at most 4 tablets"."""
    begin = sentence.find(answer)
    end = begin + len(answer)
    noun = READ_WORD.match(sentence, end + 1)
    if begin < 0 or noun is None or not noun[0].endswith(("s", "n")):  # 1,000 came: a verb
        return answer
    counts = any(value.end == end and value.unit == single(fold(noun[0])) for value in values(sentence))
    return sentence[begin : noun.end()] if counts and question_coverage(question, noun[0]) else answer


_DOTTED = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+(?![.,]?\d)")


def _read(query: Query, passages: Sequence[Passage], generator: Generator | None) -> Flow[dict[int, Statement]]:
    question, texts = query.reading, [passage.reading for passage in passages]
    asked = wanted(question)
    if callable(getattr(generator, "read", None)) and read_question(question).kind != "polar":
        readings = yield from read(question, texts)
        words = [one.answer or text[one.start : one.end] for one, text in zip(readings, texts)]
        said = {
            i: Statement(words[i], sentence_of(words[i], texts[i], max(one.start, 0)), one.no_answer, bool(one.answer))
            for i, one in enumerate(readings)
            if informative(words[i]) and (one.answer or one.no_answer < UNLIKELY)
        }
        found = _of_kind(question, texts, said, asked)
        given = {i for i, statement in found.items() if statement.given}
        shaped = asked.kind in SHAPED
        unread = [i for i, one in enumerate(readings) if one.language in LANGUAGES or (shaped and i not in given)]
        return found | find_by_words(question, texts, unread, asked)
    answers = yield from read_isolated(query, passages, atomic_answer_reference_prompt, generator)
    said = {i: Statement.found(answer, texts[i]) for i, answer in enumerate(answers) if informative(answer)}
    said = _of_kind(question, texts, said, asked)
    if isinstance(generator, ExtractiveReader) and asked.kind:
        typed = {
            i: one
            for i, one in said.items()
            if answers_kind(one.answer, asked.kind) and not _is_needless_sentence(one, asked)
        }
        return said | find_by_words(question, texts, range(len(texts)), asked) | typed
    return said


def _of_kind(question: str, texts: Sequence[str], said: Mapping[int, Statement], asked: Wanted) -> dict[int, Statement]:
    """The statements of the kind that is asked for; others are replaced by such a value nearby, or left out."""
    found = dict[int, Statement]()
    for i, statement in said.items():
        fit = fits(statement.answer, asked)
        if fit is False and (value := find_value(question, statement.sentence, asked)) is not None:
            found[i] = statement._replace(answer=value[0])
        elif _is_bare(statement.answer, asked.kind) and (value := find_value(question, texts[i], asked)) is not None:
            found[i] = statement._replace(answer=value[0], sentence=value[1])
        elif fit is not False:
            found[i] = statement
    return found


def _is_needless_sentence(statement: Statement, asked: Wanted) -> bool:
    """Whether an answer is a whole sentence with at most one value of the kind that is asked for."""
    alike = [value for value in values(statement.answer) if value.kind == asked.kind]
    return statement.answer == statement.sentence and len(alike) <= 1


def _is_bare(answer: str, kind: Kind) -> bool:
    """Whether an answer has only numbers without a unit, though money or a duration is asked for."""
    found = values(answer)
    return kind in ("money", "duration") and bool(found) and all(value.kind == "number" for value in found)


def find_by_words(question: str, texts: Sequence[str], unread: Sequence[int], asked: Wanted) -> dict[int, Statement]:
    """Statements without a trained reader: the value nearest to the question's words, else the extractive reader's."""
    found = dict[int, Statement]()
    for i in unread:
        if not asked.kind:
            answer = _WORDS.generate(atomic_answer_reference_prompt(question, texts[i])).text
            if informative(answer):
                found[i] = Statement.found(answer, texts[i], GUESSED)
        elif (value := find_value(question, texts[i], asked)) is not None:
            words, sentence, relevance = value
            given = relevance > RELEVANT
            found[i] = Statement(words, sentence, DOUBT if given else UNLIKELY / 2, given)
    return found


def taken_back(text: str, claim: str) -> Statement | None:
    """The value that a text gives in place of an earlier one: "That is no longer true: now it is 60".

    Args:
        text: A passage.
        claim: What it says first.

    Returns:
        The first value that contradicts the claim, in or behind a sentence that takes something back; None without one.
    """
    earlier, found = values(claim), sentences(text)
    for n, (start, end) in enumerate(found) if earlier else ():
        if mentions("retractions", text[start:end]):
            said = text[start : found[min(n + 1, len(found) - 1)][1]]
            for value in values(said):
                if compare_all([value], earlier[:1]) == "rival":
                    return Statement.found(said[value.start : value.end], said)
    return None
