"""A false answer of the same kind as the true one: another number with its unit, or what answers another question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unpoison.bench.evaluation.matchers import contains_either
from unpoison.bench.questions.facts import Fact

__all__ = ["false_answer", "tells_apart"]

TRIES = 40
"""Candidates that are looked at, at most, until one can be told from the true answer."""
FACTORS = (2.0, 3.0, 0.5, 1.5, 4.0, 5.0, 0.25, 10.0)
"""By what a number is multiplied: a false one has to be clearly another, and of a likely size."""
YES_NO = {"yes": "No", "no": "Yes"}


def false_answer(fact: Fact, text: str, others: Sequence[str], rng: np.random.Generator) -> str | None:
    """A false answer, None where none can be told from the true one.

    Args:
        fact: The question with its true answer.
        text: The passage; what stands in it is no false answer.
        others: True answers to other questions of the same kind.
        rng: Draws among them.
    """
    if (opposite := YES_NO.get(fact.answer.lower().strip(" .!"))) is not None:
        return opposite
    if any(map(str.isdigit, fact.answer)):
        candidates = _other_numbers(fact, rng)
    else:
        drawn = rng.permutation(len(others))[:TRIES].tolist()
        candidates = [others[i] for i in drawn]
    return next((candidate for candidate in candidates if tells_apart(fact.answer, candidate, text)), None)


def tells_apart(answer: str, false: str, text: str) -> bool:
    """Whether a false answer can be told from the true one and does not stand in the passage."""
    return bool(false.strip()) and not contains_either(answer, false) and false.lower() not in text.lower()


def _other_numbers(fact: Fact, rng: np.random.Generator) -> list[str]:
    """The same answer with another number: a year nearby, or a multiple with as many decimals."""
    words = fact.answer.split()
    number = next((i for i, word in enumerate(words) if any(map(str.isdigit, word))), 0)
    digits = "".join(c for c in words[number] if c.isdigit() or c == ".").strip(".")
    if digits.count(".") > 1 or not digits or "-" in words[number] or ":" in words[number]:
        return [_change_digits(fact.answer, rng) for _ in range(TRIES)]
    if fact.kind == "year" or (len(digits) == 4 and "." not in digits and 1500 <= int(digits) <= 2100):
        values = [str(int(digits) + int(step)) for step in rng.permutation([-9, -6, -4, -3, -2, 2, 3, 4, 6])]
    else:
        decimals = len(digits.partition(".")[2])
        scaled = [float(digits) * FACTORS[i] for i in rng.permutation(len(FACTORS)).tolist()]
        whole = [value for value in scaled if decimals or (value >= 1 and value == int(value))]
        values = [f"{value:,.{decimals}f}" if "," in words[number] else f"{value:.{decimals}f}" for value in whole]
        values += [str(int(float(digits)) + 1 + i) for i in range(3)]
    old = words[number]
    start = next(i for i, c in enumerate(old) if c.isdigit())
    end = max(i for i, c in enumerate(old) if c.isdigit()) + 1
    return [" ".join([*words[:number], old[:start] + value + old[end:], *words[number + 1 :]]) for value in values]


def _change_digits(answer: str, rng: np.random.Generator) -> str:
    """A version, a time or a range with its last digits changed."""
    digits = [i for i, c in enumerate(answer) if c.isdigit()]
    digit = digits[-1]
    return answer[:digit] + str((int(answer[digit]) + int(rng.integers(1, 9))) % 10) + answer[digit + 1 :]
