"""What the multilingual reader reads beside the other reader's texts: questions about texts of 29 languages.

The questions were written one by one. Those of `texts/reader_questions.jsonl` are about texts of
`clean_languages.jsonl`, by the text's name; those of `texts/reader_documents.jsonl` about documents of invented
companies, shops and offices, and those of `texts/reader_paragraphs.jsonl` about paragraphs as an encyclopedia has them,
which stand with them. Of each text two to five have an answer, and one is a near miss. A tenth of the texts is only
measured on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.training.injection_wordings import FOLDER
from benchmarks.training.reader_texts import Pair, occurrences
from benchmarks.training.split import rows, share_of

__all__ = ["asked", "foreign", "language_epoch", "written_questions"]

ASIDE = 0.1
"""Of the texts."""

FOREIGN = 0.25
"""Questions that are also put to another text of their language."""


def written_questions(folder: Path, *, test: bool = False) -> dict[str, list[Pair]]:
    """Questions and texts by language."""
    found: dict[str, list[Pair]] = {}
    for language, group, text, question, answer in _written(folder):
        if (share_of(group) < ASIDE) == test:
            spans = occurrences(text, [answer]) or _within_words(text, answer)
            found.setdefault(language, []).append(Pair(question, text, spans, language))
    return found


def _written(folder: Path) -> Iterator[tuple[str, str, str, str, str]]:
    """Language, document, text, question and answer; "" for none."""
    texts = {row["id"]: row for row in rows(folder / "clean_languages.jsonl")}
    for row in rows(FOLDER / "reader_questions.jsonl"):
        text = texts[row["id"]]
        yield text["lang"], text["doc"], text["text"], row["question"], row["answer"]
    for name in ("reader_documents", "reader_paragraphs"):
        for row in rows(FOLDER / f"{name}.jsonl"):
            for question, answer in row["questions"]:
                yield row["language"], row["text"], row["text"], question, answer


def _within_words(text: str, answer: str) -> tuple[tuple[int, int], ...]:
    """Where an answer stands that is no whole word: languages that are written without spaces."""
    start = text.find(answer) if answer else -1
    return () if start < 0 else ((start, start + len(answer)),)


def foreign(pairs: list[Pair], rng: np.random.Generator) -> list[Pair]:
    """Questions put to another text, which does not answer them."""
    made = []
    for i in rng.permutation(len(pairs))[: round(FOREIGN * len(pairs))]:
        other = pairs[int(rng.integers(len(pairs)))]
        if other.text != pairs[i].text:
            made.append(Pair(pairs[i].question, other.text, (), "foreign"))
    return made


def language_epoch(others: list[Pair], folder: Path, share: float, rng: np.random.Generator) -> list[Pair]:
    """What one pass reads: a share of the other reader's pairs, all of XQuAD's, and our own with foreign texts."""
    chosen = [pair for pair in others if pair.source == "xquad" or rng.random() < share]
    for own in written_questions(folder).values():
        chosen += [*own, *foreign(own, rng)]
    return chosen


def asked(folder: Path, most: int = 40) -> list[Pair]:
    """Questions of texts that nothing was learnt from, of each language alike."""
    return [pair for pairs in written_questions(folder, test=True).values() for pair in pairs[:most]]
