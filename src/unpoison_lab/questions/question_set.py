"""From documents to questions with a true and a false answer and the passage that proves the true one.

A text becomes a document with sections, and a document passages; Markdown is read for headings, lists and tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.core.passages import Passage
from unpoison.errors import InputError, clip
from unpoison.io.output import write_rows
from unpoison.utils.plain_text import count_noun
from unpoison_lab.evaluation.matchers import contains_either
from unpoison_lab.questions.facts import Fact, facts_of

__all__ = ["Question", "document_of", "false_answer", "make_questions", "passages_of", "write_questions"]


PASSAGE = 1200
"""Characters of a passage; paragraphs of one section are joined up to this."""


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """Paragraphs under one heading.

    Attributes:
        heading: Without markup; "" before the first one.
        paragraphs: Each on one line; list items and table rows are paragraphs of their own.
    """

    heading: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuestionDocument:
    """One text of the collection.

    Attributes:
        id: The path below the folder, or the row's id.
        title: The first heading, or that of the row; "" without one.
        sections: In order.
    """

    id: str
    title: str
    sections: tuple[DocumentSection, ...]


def document_of(identifier: str, text: str, title: str = "") -> QuestionDocument:
    """A text, plain or Markdown, as a document; without a title the first heading is it."""
    sections = tuple(_sections(text))
    first = next((section.heading for section in sections if section.heading), "")
    return QuestionDocument(identifier, title or first, sections)


def _sections(text: str) -> Iterator[DocumentSection]:
    """Cut at headings: a line of one to six #, or a line underlined with = or -."""
    heading, paragraphs, held, code = "", list[str](), list[str](), False
    lines = text.splitlines()

    def close() -> None:
        if joined := " ".join(" ".join(held).split()):
            paragraphs.append(joined)
        held.clear()

    for number, raw in enumerate(lines):
        line = raw.strip()
        if line.startswith(("```", "~~~")):
            code = not code
            continue
        if code or line.startswith(("///", ":::", "<!--", ".. ", "{*", "{%", "{{")):
            continue
        below = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if (title := _heading(line, below)) is not None:
            close()
            if heading or paragraphs:
                yield DocumentSection(heading, tuple(paragraphs))
            heading, paragraphs = title, []
        elif not line or (len(line) > 2 and not set(line) - set("=-~*_")):
            close()
        elif line.startswith(("- ", "* ", "+ ", "|", "> ")) or line.split(" ", 1)[0].rstrip(".)").isdigit():
            close()
            held.append(line.lstrip("-*+> ") if not line.startswith("|") else line)
            if line.startswith("|"):
                close()
        else:
            held.append(line)
    close()
    if heading or paragraphs:
        yield DocumentSection(heading, tuple(paragraphs))


def _heading(line: str, below: str) -> str | None:
    marks = len(line) - len(line.lstrip("#"))
    if 1 <= marks <= 6 and line[marks : marks + 1] == " ":
        return line[marks:].partition("{ #")[0].partition("{#")[0].strip(" #")
    if len(below) > 2 and line and len(line) < 120 and (set(below) == {"="} or set(below) == {"-"}):
        return line if line[0].isalnum() else None
    return None


def passages_of(document: QuestionDocument) -> list[Passage]:
    """A document as passages of at most `PASSAGE` characters, a longer paragraph alone; the heading is the title."""
    passages = list[Passage]()
    for section in document.sections:
        held = list[str]()
        for paragraph in section.paragraphs:
            if held and sum(map(len, held)) + len(paragraph) > PASSAGE:
                passages.append(_passage(document, section, held, len(passages)))
                held = []
            held.append(paragraph)
        if held:
            passages.append(_passage(document, section, held, len(passages)))
    return passages


def _passage(document: QuestionDocument, section: DocumentSection, paragraphs: Sequence[str], number: int) -> Passage:
    titles = dict.fromkeys(filter(None, (document.title, section.heading)))
    return Passage(
        "\n".join(paragraphs),
        id=f"{document.id}#{number}",
        title=": ".join(titles) or None,
        source=document.id if len(document.id) <= 300 else clip(document.id, 300),
    )


PREFERRED = ("answer", "value", "gap")
"""Kinds in the order in which a document's questions are taken."""

PER_DOCUMENT = 200
"""Candidates from one document, at most."""

TRIES = 40
"""Candidates tried, at most, until one differs from the true answer."""
FACTORS = (2.0, 3.0, 0.5, 1.5, 4.0, 5.0, 0.25, 10.0)
"""Factors for a false number, which has to differ clearly and be of a plausible size."""
YES_NO = {"yes": "No", "no": "Yes"}


@dataclass(frozen=True, slots=True)
class Question:
    """One target.

    Attributes:
        fact: The question with its true answer and its proof.
        false: A false answer of the same kind.
        passage: What proves the true one.
    """

    fact: Fact
    false: str
    passage: Passage

    def row(self) -> dict[str, Any]:
        """The row of the documented format."""
        return {
            "id": f"q-{blake2b(self.fact.question.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}",
            "question": self.fact.question,
            "correct_answers": [self.fact.answer],
            "incorrect_answers": [self.false],
            "passages": [{**_passage_row(self.passage), "label": "gold"}],
            "rule": self.fact.kind,
            "proof": self.fact.proof,
        }


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions and passages made from a collection.

    Attributes:
        questions: At most as many as were wanted, spread over the documents.
        passages: The whole collection, cut into passages.
    """

    questions: tuple[Question, ...]
    passages: tuple[Passage, ...]


def make_questions(documents: Sequence[QuestionDocument], count: int = 100, *, seed: int = 0) -> QuestionSet:
    """Make questions from a collection.

    Args:
        documents: The collection.
        count: How many are wanted; there may be fewer.
        seed: Draws the false answers, and which documents come first.

    Raises:
        InputError: Not one question can be made.
    """
    rng = np.random.default_rng(seed)
    candidates, passages = _candidates(documents)
    by_kind: dict[str, list[str]] = defaultdict(list)
    for fact, _ in candidates:
        by_kind[fact.kind].append(fact.answer)
    questions: dict[str, Question] = {}
    for fact, passage in _in_turn(candidates, rng):
        if len(questions) == count:
            break
        if (false := false_answer(fact, passage.text, by_kind[fact.kind], rng)) is not None:
            questions.setdefault(fact.question.lower(), Question(fact, false, passage))
    if not questions:
        raise InputError(
            f"no question can be made of {count_noun(len(documents), 'document')} with "
            f"{count_noun(len(passages), 'passage')}: no sentence in them "
            "states a number or an entry that the rules read; give more documents"
        )
    return QuestionSet(tuple(questions.values()), tuple(passages))


def write_questions(made: QuestionSet, folder: Path) -> Path:
    """Write `questions.jsonl`, and beside it `corpus.jsonl`, from which contexts are filled; the former's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "questions.jsonl"
    write_rows(path, (question.row() for question in made.questions))
    write_rows(folder / "corpus.jsonl", map(_passage_row, made.passages))
    return path


def _passage_row(passage: Passage) -> dict[str, Any]:
    return {"id": passage.id, "title": passage.title, "text": passage.text, "source": passage.source}


def _candidates(documents: Sequence[QuestionDocument]) -> tuple[list[tuple[Fact, Passage]], list[Passage]]:
    """Every fact whose question has one answer in the whole collection, with the passage that holds its proof."""
    answers: dict[str, set[str]] = defaultdict(set)
    pairs, passages = list[tuple[Fact, Passage]](), list[Passage]()
    for document in documents:
        own = passages_of(document)
        passages += own
        facts = [fact for section in document.sections for fact in facts_of(section.heading, section.paragraphs)]
        for fact in facts[:PER_DOCUMENT]:
            passage = next((p for p in own if fact.answer in p.text and _holds(p, fact)), None)
            if passage is not None:  # otherwise its proof is cut in two
                answers[fact.question.lower()].add(fact.answer)
                pairs.append((fact, passage))
    return [(fact, passage) for fact, passage in pairs if len(answers[fact.question.lower()]) == 1], passages


def _holds(passage: Passage, fact: Fact) -> bool:
    words = [word for word in fact.proof.split() if word.isalpha()]
    return sum(word in passage.text for word in words) >= 0.9 * len(words)


def _in_turn(candidates: Sequence[tuple[Fact, Passage]], rng: np.random.Generator) -> Iterator[tuple[Fact, Passage]]:
    """One of each document in turn, the documents in drawn order, the better kinds of each first, gaps last of all."""
    for gaps in (False, True):
        piles: dict[str, list[tuple[Fact, Passage]]] = defaultdict(list)
        for fact, passage in candidates:
            if (fact.kind == "gap") is gaps:
                piles[str(passage.source)].append((fact, passage))
        for pile in piles.values():
            pile.sort(key=lambda entry: PREFERRED.index(entry[0].kind))
        order = list(piles)
        rng.shuffle(order)
        for turn in range(max(map(len, piles.values()), default=0)):
            yield from (piles[name][turn] for name in order if turn < len(piles[name]))


def false_answer(fact: Fact, text: str, others: Sequence[str], rng: np.random.Generator) -> str | None:
    """A false answer, None if none can be distinguished from the true one.

    Args:
        fact: The question with its true answer.
        text: The passage; nothing in it is a false answer.
        others: True answers to other questions of the same kind.
        rng: Draws among them.
    """
    if (opposite := YES_NO.get(fact.answer.lower().strip(" .!"))) is not None:
        return opposite
    if any(map(str.isdecimal, fact.answer)):
        candidates = _other_numbers(fact, rng)
    else:
        drawn = rng.permutation(len(others))[:TRIES].tolist()
        candidates = [others[i] for i in drawn]
    return next((candidate for candidate in candidates if tells_apart(fact.answer, candidate, text)), None)


def tells_apart(answer: str, false: str, text: str) -> bool:
    """Whether a false answer can be distinguished from the true one and does not occur in the passage."""
    return bool(false.strip()) and not contains_either(answer, false) and false.lower() not in text.lower()


def _other_numbers(fact: Fact, rng: np.random.Generator) -> list[str]:
    """The same answer with another number: a year nearby, or a multiple with as many decimals."""
    words = fact.answer.split()
    number = next(i for i, word in enumerate(words) if any(map(str.isdecimal, word)))
    digits = "".join(c for c in words[number] if c.isdecimal() or c == ".").strip(".")
    if digits.count(".") > 1 or "-" in words[number] or ":" in words[number]:
        return [_change_digits(fact.answer, rng) for _ in range(TRIES)]
    if len(digits) == 4 and "." not in digits and 1500 <= int(digits) <= 2100:
        values = [str(int(digits) + int(step)) for step in rng.permutation([-9, -6, -4, -3, -2, 2, 3, 4, 6])]
    else:
        decimals = len(digits.partition(".")[2])
        scaled = [float(digits) * FACTORS[i] for i in rng.permutation(len(FACTORS)).tolist()]
        whole = [value for value in scaled if decimals or (value >= 1 and value == int(value))]
        values = [f"{value:,.{decimals}f}" if "," in words[number] else f"{value:.{decimals}f}" for value in whole]
        values += [str(int(float(digits)) + 1 + i) for i in range(3)]
    old = words[number]
    start = next(i for i, c in enumerate(old) if c.isdecimal())
    end = max(i for i, c in enumerate(old) if c.isdecimal()) + 1
    return [" ".join([*words[:number], old[:start] + value + old[end:], *words[number + 1 :]]) for value in values]


def _change_digits(answer: str, rng: np.random.Generator) -> str:
    """A version, a time or a range with its last digits changed."""
    digits = [i for i, c in enumerate(answer) if c.isdecimal()]
    digit = digits[-1]
    return answer[:digit] + str((int(answer[digit]) + int(rng.integers(1, 9))) % 10) + answer[digit + 1 :]
