"""One form for all ways to write an answer, and another for every other answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.answer_forms import form

SAME = [
    ("who won", ["Paul Lynch", "the Paul Lynch.", "PAUL LYNCH", '"Paul Lynch"', "It was Paul Lynch", "Paul Lynch's"]),
    ("how many days were they stuck", ["17 days", "17", "seventeen days", "the 17 days"]),
    ("how many Republican candidates", ["5", "five", "Five candidates", "5 Republican candidates"]),
    ("when was it", ["May 4, 2010", "4 May 2010", "2010-05-04", "on 4 May 2010"]),
    ("how much was spent", ["$12.2 billion", "12,200,000,000 dollars", "$12.2B", "12.2 billion USD"]),
    ("how far is it", ["3 km", "3 kilometres", "3 kilometers"]),
    ("which country", ["U.S.", "USA", "the United States"]),
    ("what is the capital of France", ["Paris", "The capital of France is Paris.", "Paris is the capital of France"]),
    ("is it so", ["Yes.", "yes", "Yes, it is"]),
]

DIFFERENT = [
    ("who won", ["Paul Lynch", "not Paul Lynch", "Paul Lynch and Bo", "Lynch", "Paul", "Pauline Lynch"]),
    ("which language", ["C", "C++", "C#"]),
    ("which king", ["Louis XIV", "Louis XV", "Louis"]),
    ("how many days were they stuck", ["17 days", "18 days", "17 weeks", "more than 17 days", "-17", "17-18 days"]),
    ("when was it", ["4 May 2010", "May 2010", "2010", "2011", "before 2010", "4 May"]),
    ("how much was spent", ["$5", "5 euros", "5 million dollars", "$5.5"]),
    ("what is the capital of France", ["Paris", "not Paris", "The capital of France is not Paris, it is Lyon"]),
    ("is it so", ["yes", "no"]),
]


@pytest.mark.parametrize(("question", "answers"), SAME)
def test_one_answer_has_one_form(question: str, answers: list[str]) -> None:
    assert len({form(question, answer) for answer in answers}) == 1


@pytest.mark.parametrize(("question", "answers"), DIFFERENT)
def test_other_answers_have_others(question: str, answers: list[str]) -> None:
    assert len({form(question, answer) for answer in answers}) == len(answers)


def test_nothing_has_no_form() -> None:
    assert form("q", "") == form("q", "  ") == ""


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_has_a_form_that_white_space_around_it_does_not_change(question: str, text: str) -> None:
    assert form(question, f"  {text} ") == form(question, text)
    assert form(question, text) == form(question, text)
