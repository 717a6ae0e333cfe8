"""Further wrong answers without a language model: other numbers, other names."""

from __future__ import annotations

import re

import numpy as np

from unpoison.models.questions import read_question

__all__ = ["decoys"]

_NAMES = {
    "person": (
        "Margaret Ellison",
        "Thomas Hargreave",
        "Ingrid Solberg",
        "Daniel Okafor",
        "Lucia Ferrante",
        "Viktor Halasz",
        "Eleanor Whitcombe",
        "Samuel Redfern",
    ),
    "place": ("Wellington", "Trondheim", "Valparaiso", "Bratislava", "Halifax", "Mombasa", "Adelaide", "Gdansk"),
}


def decoys(question: str, answer: str, count: int, rng: np.random.Generator) -> list[str]:
    """Answers of the same kind as a wrong answer.

    Args:
        question: Says whether a person or a place is asked for.
        answer: One wrong answer; where it holds a number, the decoys hold others.
        count: How many.
        rng: Chooses.

    Returns:
        At most `count` different answers; none where neither a number nor a name is asked for.
    """
    number = re.search(r"\d+", answer)
    if number is not None:
        value = int(number[0][:15])
        # Years stay years and counts stay counts: the shift is small against the number.
        reach = max(count + 1, min(value // 4, 40))
        shifts = [s for s in range(-reach, reach + 1) if s and value + s > 0]
        chosen = rng.permutation(len(shifts))[:count]
        return [f"{answer[: number.start()]}{value + shifts[k]}{answer[number.end() :]}" for k in chosen]
    names = _NAMES.get(read_question(question).kind, ())
    return [names[k] for k in rng.permutation(len(names))[:count]]
