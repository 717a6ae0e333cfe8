"""Which of several given answers counts: the heaviest group, the one that most others are part of."""

from __future__ import annotations

import pytest

from unpoison.models.reader import GivenAnswer, central, heaviest_group


def given(*weights: tuple[str, float]) -> list[GivenAnswer]:
    return [GivenAnswer(answer, f"It is {answer}.", 6, weight) for answer, weight in weights]


@pytest.mark.parametrize(
    ("answers", "wins"),
    [
        ([("Oslo", 0.9), ("Bergen", 0.4), ("Bergen", 0.4)], ["Oslo"]),  # by weight, not by number
        ([("Oslo", 0.7), ("Bergen", 0.4), ("Bergen", 0.4)], ["Bergen", "Bergen"]),
        ([("Oslo", 0.5), ("Bergen", 0.5)], ["Oslo"]),  # of equals the earlier
        ([], []),
    ],
)
def test_the_heaviest_group_counts(answers: list[tuple[str, float]], wins: list[str]) -> None:
    assert [answer.answer for answer in heaviest_group("which city is it?", given(*answers))] == wins


def test_of_answers_that_differ_the_one_that_holds_the_others_is_central() -> None:
    assert central("which colour?", ["red", "blue", "Red and Blue"]) == "Red and Blue"
    assert central("which colour?", ["red", "blue"]) == "red"
    assert central("which colour?", ["green", "red and blue", "red and blue", "blue", "red"]) == "red and blue"
    assert central("which colour?", []) is None
