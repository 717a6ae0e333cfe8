"""Candidate answers: which words make a date, a number or a name, and how well each fits the question."""

from __future__ import annotations

import pytest

from unpoison.models.answer_spans import MAX_NAME_WORDS, spans
from unpoison.text.questions import read_question
from unpoison.text.sentences import split

NAME = "Ann Bee Cee Dee Eff Gee Hay"


def found(question: str, text: str) -> dict[str, float]:
    (sentence,) = split(text)
    fitting = spans(sentence, read_question(question))
    return {" ".join(sentence.words[one.start : one.end]): round(one.fit, 3) for one in fitting}


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("It opened on 12 May 1990.", {"12 May 1990": 1.0}),
        ("It opened on 5 May here.", {"5 May": 0.9}),
        ("It opened on 123 May here.", {}),  # no day; and "May" alone may be a verb
        ("It opened in June here.", {"June": 0.9}),
        ("It opened on Monday here.", {"Monday": 0.5}),
        ("It opened in 99 BC here.", {"99 BC": 1.0}),
        ("It opened in the 19th century.", {"19th century": 1.0}),
        ("It opened with 99 guests.", {}),
    ],
)
def test_a_day_belongs_to_a_month_and_a_year_fits_best(text: str, dates: dict[str, float]) -> None:
    assert found("when did it happen", text) == dates


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It made 12 goals.", {"12": 1.0}),
        ("It made 12 of all the goals.", {"12": 0.4}),  # the noun is too far behind
        ("It paid $12 there.", {"12": 1.0}),
        ("It rose by 12% there.", {"12%": 0.7}),
        ("It took 12 km there.", {"12 km": 0.7}),
        ("It was 1990 there.", {"1990": 0.1}),
        ("It made 1990 goals.", {"1990": 1.0}),
        ("Then one man came.", {"one": 0.1}),
    ],
)
def test_a_number_fits_that_counts_what_is_asked_for(text: str, numbers: dict[str, float]) -> None:
    assert found("how many goals", text) == numbers


@pytest.mark.parametrize(
    ("words", "fit"), [(1, 0.6), (2, 1.0), (4, 1.0), (5, 0.6), (MAX_NAME_WORDS, 0.6), (MAX_NAME_WORDS + 1, 0.25)]
)
def test_a_person_has_two_to_four_names_and_a_headline_more_than_six(words: int, fit: float) -> None:
    name = " ".join(NAME.split()[:words])
    assert found("who won", f"We saw {name} today.") == {name: fit}


@pytest.mark.parametrize(
    ("question", "text", "name", "fit"),
    [
        ("who won", "We were in Ann Bee today.", "Ann Bee", 0.5),
        ("where is it", "It is in Kent today.", "Kent", 1.0),
        ("where is it", "It is in the Kent today.", "Kent", 1.0),
        ("where is it", "It saw Kent today.", "Kent", 0.6),
        ("where is it", "It saw French today.", "French", 0.25),
        ("who won", "Ann went.", "Ann", 0.3),  # a capital begins every sentence
    ],
)
def test_what_stands_before_a_name_tells_a_place(question: str, text: str, name: str, fit: float) -> None:
    assert found(question, text)[name] == fit


def test_the_words_of_the_question_count_against_a_name() -> None:
    assert found("who met Ann Bee", "We saw Ann Cee today.") == {"Ann Cee": 0.5}
    assert found("who met Ann Bee", "We saw Ann Bee today.") == {}


def test_other_words_are_cut_after_four() -> None:
    assert found("what fell", "A heavy rotten apple tree house fell.") == {"heavy rotten apple tree": 0.6, "house": 0.6}


@pytest.mark.parametrize(
    ("question", "text", "names"),
    [
        ("who won", "We saw J. R. Smith today.", {"J R Smith"}),
        ("who won", "We saw Dr. Smith today.", {"Dr Smith"}),
        ("who won", "We saw Prof. Smith today.", {"Prof", "Smith"}),
        ("who won", "We saw Leonardo da Vinci today.", {"Leonardo da Vinci"}),
        ("who won", "We saw Leonardo da capo.", {"Leonardo"}),
        ("who won", "We saw Smith, Jones and Brown.", {"Smith", "Jones", "Brown"}),
        ("who won", "We saw District 9 today.", {"District"}),
        ("who won", "Today I saw A Smith.", {"Smith"}),
    ],
)
def test_a_name_goes_on_over_initials_and_small_words(question: str, text: str, names: set[str]) -> None:
    assert set(found(question, text)) - {"Today"} == names


def test_a_number_is_part_of_a_place_and_not_of_a_person() -> None:
    assert "District 9" in found("where is it", "We saw District 9 today.")


@pytest.mark.parametrize(
    ("name", "fit"),
    [("March", 0.1), ("Monday", 0.1), ("March 5", 0.1), ("March Hare", 0.6), ("X", 0.25), ("Italian", 0.25)],
)
def test_dates_letters_and_peoples_are_hardly_places(name: str, fit: float) -> None:
    assert found("where is it", f"We saw {name} there.").get(name) == fit


def test_a_single_verb_or_adverb_is_half_an_answer() -> None:
    fits = found("what fell", "The quickly, running, painted, apple fell.")
    assert fits == {"quickly": 0.3, "running": 0.3, "painted": 0.3, "apple": 0.6}
