"""Two answers to one question, by rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.kernels.answers import RIVAL, SAME, relation

SAID_THE_SAME = [
    ("when did it open", "March 3, 1999", "3 March 1999"),
    ("when did it open", "1999-03-03", "3rd of March 1999"),
    ("when did it open", "1999", "March 3, 1999"),
    ("when did it open", "March 1999", "in 1999"),
    ("how many are there", "6", "six"),
    ("how many are there", "six points", "6"),
    ("how many are there", "twenty-one", "21"),
    ("how many are there", "1.5 million", "1,500,000"),
    ("how many times", "twice", "two"),
    ("how far is it", "5 km", "3.1 miles"),
    ("how heavy is it", "2 kilograms", "2,000 g"),
    ("how much is it", "$20", "20 dollars"),
    ("what share", "12 %", "12 percent"),
    ("who sang it", "Elvis", "Elvis Presley"),
    ("who sang it", "The answer is Bob Dylan.", "Bob Dylan"),
    ("who wrote it", "Beethoven", "Beethofen"),
    ("where is it", "Tampa, Florida", "Tampa"),
    ("which country", "UK", "United Kingdom"),
    ("which river", "the Tiber", "Tiber River"),
    ("is it open", "Yes.", "yes, it is open"),
    ("refund window", "within 30 days of purchase", "30 days"),
    ("who is it", "José Muñoz", "Jose Munoz"),
]
RIVALS = [
    ("when did it open", "March 3, 1999", "March 4, 1999"),
    ("when did it open", "1999", "1998"),
    ("how many are there", "6", "seven"),
    ("how many steps", "2,579 steps", "1875"),
    ("how far is it", "5 km", "5 miles"),
    ("how long", "30 days", "14 days"),
    ("what share", "2%", "15%"),
    ("is it open", "yes", "No, it is closed"),
    ("did he win", "he won the race", "he never won the race"),
    ("how many days", "100 days", "101 days"),
]
OPEN = [
    ("who won the cup", "Manchester United", "Manchester City"),
    ("where are nutrients absorbed", "small intestine", "Large intestine"),
    ("who sang it", "Frank Sinatra", "Elvis Presley"),
    ("which classic, the delaware or the mid-county", "The Delaware Classic", "The Mid-County Classic"),
]


@pytest.mark.parametrize(("question", "left", "right"), SAID_THE_SAME)
def test_the_same_in_other_words(question, left, right):
    assert relation(question, left, right) == relation(question, right, left) == SAME


@pytest.mark.parametrize(("question", "left", "right"), RIVALS)
def test_rivals_that_a_rule_tells_apart(question, left, right):
    assert relation(question, left, right) == relation(question, right, left) == RIVAL


@pytest.mark.parametrize(("question", "left", "right"), OPEN)
def test_other_names_are_probably_rivals_but_no_rule_is_sure(question, left, right):
    found = relation(question, left, right)
    assert found.rival > 0.5
    assert not found.sure


def test_a_list_and_one_of_its_items_can_both_be_right():
    found = relation("what colours has the flag", "red, white and blue", "blue")
    assert found.compatible > 0.5
    assert relation("which colours", "red and blue", "blue and red").same > 0.5


def test_what_the_question_says_tells_no_answer_apart():
    assert relation("what is the name of season 6 of american horror story", "American Horror Story: Roanoke",
                    "Roanoke").same > 0.5  # fmt: skip


def test_long_explanations_without_a_shared_word_may_both_be_right():
    found = relation(
        "why did it fail",
        "engineers blamed brittle rubber rings that stiffened during one unusually cold night",
        "managers ignored written warnings, chasing schedules that politicians kept demanding loudly",
    )
    assert found.compatible > found.rival


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_it_is_symmetric_sums_to_one_and_takes_any_text(question, left, right):
    found = relation(question, left, right)
    assert found == relation(question, right, left)
    assert sum(found[:3]) == pytest.approx(1)
    assert relation(question, left, left) == SAME


def test_only_the_beginning_of_a_long_answer_is_read():
    assert relation("who", "Ada " + "x" * 100_000, "Ada " + "x" * 100_000 + "y") == SAME
    assert relation("how many", "9" * 400, "1" * 400).rival > 0.5
