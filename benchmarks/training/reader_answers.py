"""Two answers to one question: the pairs from which the reader learns whether they say the same."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from benchmarks.training.reader_data import TEST_SHARE, answer_pairs, span_pairs
from benchmarks.training.reader_texts import MONTHS
from benchmarks.training.split import held_out

__all__ = ["CLASSES", "judge_pairs", "relation_rows"]

CLASSES = ("same", "rival", "compatible")

WRITTEN = 1500
"""Pairs written by rule for each class, beside those of the data."""

NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
]


def judge_pairs(folder: Path, seed: int = 0) -> list[tuple[str, str, str, int]]:
    """(question, answer, answer, class), none of a held-out question."""
    rng = np.random.default_rng(seed)
    rows = relation_rows(folder, test=False)
    asked = [
        (pair.question, pair.answer)
        for pair in span_pairs(folder)
        if pair.spans and not held_out(folder, pair.question, TEST_SHARE)
    ]
    for _ in range(WRITTEN):
        question, answer = asked[int(rng.integers(len(asked)))]
        rows.append((question, answer, _reworded(answer, question, rng), 0))
        rival = _rival(answer, asked, rng)
        if rival is not None:
            rows.append((question, answer, _reworded(rival, question, rng) if rng.random() < 0.3 else rival, 1))
    return rows


def relation_rows(folder: Path, *, test: bool) -> list[tuple[str, str, str, int]]:
    """The pairs of the data alone."""
    rows = []
    for question, left, right, relation in answer_pairs(folder, test=test):
        listed = relation == "same" and not _share(left, right)  # several right answers as if they were names of one
        rows.append((question, left, right, CLASSES.index("compatible" if listed else relation)))
    return rows


def _share(left: str, right: str) -> bool:
    one, two = (set(re.findall(r"\w+", text.lower())) - {"the", "a", "an", "of", "in"} for text in (left, right))
    return len(one & two) * 2 >= min(len(one), len(two)) > 0


def _reworded(answer: str, question: str, rng: np.random.Generator) -> str:
    """The same answer in other words."""
    words = answer.split()
    if len(words) == 1 and answer.isdigit() and int(answer) < len(NUMBERS) and rng.random() < 0.7:
        return NUMBERS[int(answer)]
    if answer.lower() in NUMBERS and rng.random() < 0.7:
        return str(NUMBERS.index(answer.lower()))
    date = re.fullmatch(r"(\d{1,2}) (\w+),? (\d{4})", answer)
    if date and date[2] in MONTHS:
        return str(
            rng.choice(
                [f"{date[2]} {date[1]}, {date[3]}", f"{date[3]}-{MONTHS.index(date[2]) + 1:02}-{int(date[1]):02}"]
            )
        )
    if len(words) == 2 and answer.istitle() and rng.random() < 0.35:
        return words[-1]
    if len(words) > 2 and rng.random() < 0.25:
        return " ".join(words[1:] if rng.random() < 0.5 else words[:-1])
    form = str(rng.choice(["The answer is {}.", "It was {}", "the {}", "{}.", "in {}", '"{}"', "{}, reports say",
                           "by {}", "{q}: {}"]))  # fmt: skip
    return form.format(answer, q=question.rstrip("?"))


def _rival(answer: str, asked: list[tuple[str, str]], rng: np.random.Generator) -> str | None:
    """Another answer of the same kind."""
    number = re.search(r"\d+", answer)
    if number and rng.random() < 0.6:
        changed = str(max(0, int(number[0]) + int(rng.choice([-10, -3, -2, -1, 1, 2, 3, 10]))))
        return answer[: number.start()] + changed + answer[number.end() :] if changed != number[0] else None
    for _ in range(20):
        other = asked[int(rng.integers(len(asked)))][1]
        if (
            other[:1].isupper() == answer[:1].isupper()
            and not _share(other, answer)
            and any(c.isdigit() for c in other) == bool(number)
        ):
            return other
    return None
