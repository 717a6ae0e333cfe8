"""One form for all ways to write an answer, and another for every other answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.answer_forms import ParsedAnswer, denying, form, read_answer
from unpoison.text.answers import relation
from unpoison.text.questions import read_question

SAME = [
    (
        "who won",
        [
            "Paul Lynch",
            "the Paul Lynch.",
            "PAUL LYNCH",
            '"Paul Lynch"',
            "It was Paul Lynch",
            "It was by Paul Lynch",
            "Paul Lynch's",
        ],
    ),
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


@pytest.mark.parametrize(
    ("question", "answer", "written"),
    [
        ("when was it", "4 May 2010", "date (2010, 5, 4)"),
        ("when was it", "May 2010", "date (2010, 5, None)"),
        ("when was it", "4 May", "date (None, 5, 4)"),
        ("when was it", "before 2010", "date (2010, None, None) bound:before"),
        ("how many days were they stuck", "seventeen", "17 day"),
        ("how many days were they stuck", "17 weeks", "17 week"),
        ("how many days were they stuck", "more than 17 days", "17 day bound:more"),
        ("how many days were they stuck", "17-18 days", "17 day range:from 18 day range:to"),
        ("how many people live there", "10 million people", "10000000"),
        ("how much was spent", "$12.2B", "12200000000 $"),
        ("when does it open", "9 am", "clock (540,)"),
        ("what is the length", "5 km (3.1 miles)", "5 km"),
        ("which house", "No. 10", "10"),
        ("which house", "not 10", "not 10"),
        ("which king", "Louis XIV", "louis 14"),
        ("who", "The ECB", "european central bank"),
        ("who", "the ECB's", "european central bank"),
        ("is it so", "No, it is not", "no"),
        ("which film", "No Country for Old Men", "no country for old men"),
        ("which vitamin", "vitamin A", "vitamin a"),
    ],
)
def test_how_a_form_is_written(question: str, answer: str, written: str) -> None:
    assert form(question, answer) == written


def read(question: str, answer: str) -> ParsedAnswer:
    return read_answer(answer, read_question(question))


def test_what_an_answer_says() -> None:
    found = read("where is it", "It is in Tampa, Florida, not in Miami")
    assert found.words == ("tampa", "florida", "not", "in", "miami")
    assert (found.stems, found.denied) == ({"tampa", "florida"}, {"miami"})
    assert (found.items, found.letters) == (({"tampa", "florida"},), "tampa florida")
    assert (found.initials, found.capitals, found.bounds) == ("itfm", "", frozenset())
    several = read("who came", "Ann, Bo and Cy")
    assert several.items == ({"ann"}, {"bo"}, {"cy"})
    assert read("who discovered it", "Curie's husband").owners == {"curi"}
    assert read("which language", "C++").signs == ("+", "+")
    assert (read("who", "NATO").capitals, read("who", "The NATO").capitals) == ("nato", "nato")
    assert read("who won", "not Ann").bounds == {"not"}


def test_what_only_repeats_the_question_is_its_own_content() -> None:
    found = read("what is the capital of France", "Paris is the capital of France")
    assert (found.content, found.stems) == ({"pari"}, {"pari", "franc", "capit"})
    assert read("is Paris the capital", "the capital").content == {"capit"}


@pytest.mark.parametrize(
    ("question", "answer", "yes", "bare"),
    [
        ("is it so", "Yes.", True, True),
        ("is it so", "Yes, in Ghent", True, False),
        ("is it so", "no", False, True),
        ("who won", "No, Ann won", False, False),
        ("who won", "No Doubt", None, False),
        ("who won", "No. 1", None, False),
        ("is it so", "perhaps", None, False),
    ],
)
def test_whether_an_answer_affirms(question: str, answer: str, yes: bool | None, bare: bool) -> None:
    found = read(question, answer)
    assert (found.yes, found.bare) == (yes, bare)


def test_a_house_number_denies_nothing() -> None:
    assert relation("which house", "No. 10", "10").same > 0.9
    assert relation("which house", "No. 10", "not 10").same < 0.1
    assert {"not", "no", "never"} <= denying()
    assert denying("xx") == denying()
    assert "nicht" in denying()
    assert "ohne" in denying("de") - denying()
