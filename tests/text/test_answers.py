"""Two answers to one question, by rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.answers import (
    COMPATIBLE,
    RIVAL,
    SAME,
    Relation,
    affirms,
    goes_with,
    group_equivalent,
    relation,
    relation_by_value,
)
from unpoison.text.questions import read_question

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
NEVER_THE_SAME = [
    ("how long", "2 months", "2 years"),
    ("how fast is it", "60 mph", "60 km/h"),
    ("how big is it", "10 square miles", "10 square km"),
    ("how many", "3 apples", "3 oranges"),
    ("how much is it", "5 dollars", "5 euros"),
    ("what was the score", "3-1", "3-2"),
    ("how many", "12 to 15", "15 to 20"),
    ("what score", "4 out of 10", "4 out of 5"),
    ("how tall is he", "5'11\"", "5'10\""),
    ("when does it open", "5:30 pm", "5:45 pm"),
    ("what number to call", "555-1234", "555-9999"),
    ("how many", "10^6", "10^5"),
    ("how many", "1 000 000", "1"),
    ("how many", "two and a half", "two"),
    ("how many", "one hundred twenty", "one hundred"),
    ("how many", "5 6 7 8 9 10", "7"),
    ("how cold", "-5 degrees", "5 degrees"),
    ("which dose", ">5 mg", "<5 mg"),
    ("which language", "C", "C++"),
    ("which sign", "👍", "👎"),
    ("what is pi", "3.14", "314"),
    ("where", "パリ", "バリ"),
    ("which", "हिन्दी", "हिन्दू"),
    ("when was it", "before 1990", "after 1990"),
    ("when was it", "1999", "not 1999"),
    ("when was it", "1914-1918", "1914-1945"),
    ("when was it", "3/4/2020", "5/6/2020"),
    ("when was it", "March 15", "March 2015"),
    ("how many", "5", "not 5"),
    ("which film", "No Country for Old Men", "No Time to Die"),
    ("which one", "No. 1", "No. 2"),
    ("which king", "Henry VII", "Henry VIII"),
    ("which war", "World War I", "World War II"),
    ("which country", "Sudan", "South Sudan"),
    ("which city", "York", "New York"),
    ("which country", "Guinea", "Papua New Guinea"),
    ("who", "Marie Curie", "Marie Curie's husband"),
    ("who", "Bob", "anyone but Bob"),
    ("when", "before the war", "after the war"),
    ("which version", "Python 3.1", "Python 3.10"),
    ("who", "al", "Abraham Lincoln"),
    ("who", "Theresa May", "Theresa June"),
    ("how many", "99999999999999999", "99999999999999998"),
    ("who founded it", "Bill Gates and Paul Allen", "Paul Gates and Bill Allen"),
    ("how long", "99 cm", "1 m"),
    ("when", "1990", "1990 to 1995"),
    ("who", "minister", "prime minister's wife"),
    ("how much", "A$5", "$5"),
    ("what", "Vitamin A", "Vitamin"),
    ("where", "go up", "go down"),
    ("who", "Iraq invaded Kuwait", "Kuwait invaded Iraq"),
    ("when", "3 days before Easter", "3 days after Easter"),
    ("when", "late 1999", "early 1999"),
    ("what temperature", "5°C", "5°F"),
    ("what", "≠", "="),
]
UNSURE = [
    ("which band", "No Doubt", "Yes"),
    ("who", "Samuel Johnson", "Samuel Johnston"),
    ("who", "al", "Abraham Lincoln"),
    ("who", "Elvis", "Elvis Presley"),
    ("which country", "Sudan", "South Sudan"),
    ("which country", "UK", "United Kingdom"),
    ("when", "3/4/2020", "4 March 2020"),
]
TELLS_APART = [
    ("which city", "Paris, not London", "London"),
    ("how much is it", "$5", "€5"),
    ("how many", "more than 5", "less than 5"),
    ("when was it", "500 BC", "500 AD"),
    ("when does it open", "5 pm", "5 am"),
    ("how much", "5 mg", "5 g"),
    ("what was the score", "2-1", "1-2"),
    ("when was it", "spring 1999", "fall 1999"),
]
OPEN = [
    ("who won the cup", "Manchester United", "Manchester City"),
    ("where are nutrients absorbed", "small intestine", "Large intestine"),
    ("who sang it", "Frank Sinatra", "Elvis Presley"),
]


@pytest.mark.parametrize(("question", "left", "right"), SAID_THE_SAME)
def test_the_same_in_other_words(question, left, right):
    judged = relation(question, left, right)
    assert judged == relation(question, right, left)
    assert judged.same > 0.5


@pytest.mark.parametrize(("question", "left", "right"), NEVER_THE_SAME)
def test_what_is_not_the_same_is_never_taken_for_it(question, left, right):
    judged = relation(question, left, right)
    assert judged == relation(question, right, left)
    assert judged.same < 0.5
    assert judged.rival > judged.same


@pytest.mark.parametrize(("question", "left", "right"), UNSURE)
def test_what_takes_knowledge_is_left_to_a_model(question, left, right):
    assert not relation(question, left, right).sure
    assert not relation(question, right, left).sure


@pytest.mark.parametrize(("question", "left", "right"), TELLS_APART)
def test_units_signs_eras_and_bounds_tell_apart_for_sure(question, left, right):
    assert relation(question, left, right) == relation(question, right, left) == RIVAL


@pytest.mark.parametrize(("question", "left", "right"), RIVALS)
def test_rivals_that_a_rule_tells_apart(question, left, right):
    assert relation(question, left, right) == relation(question, right, left) == RIVAL


@pytest.mark.parametrize(("question", "left", "right"), OPEN)
def test_other_names_are_probably_rivals_but_no_rule_is_sure(question, left, right):
    judged = relation(question, left, right)
    assert judged.rival > 0.5
    assert not judged.sure


def test_a_list_and_one_of_its_items_can_both_be_right():
    judged = relation("what colours has the flag", "red, white and blue", "blue")
    assert judged.compatible > 0.5
    assert relation("which colours", "red and blue", "blue and red").same > 0.5


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_it_is_symmetric_sums_to_one_and_takes_any_text(question, left, right):
    judged = relation(question, left, right)
    assert judged == relation(question, right, left)
    assert sum(judged[:3]) == pytest.approx(1)
    assert relation(question, left, left) == SAME


GUESS = Relation(0.4, 0.3, 0.3, sure=False)


@pytest.mark.parametrize(
    ("left", "right", "guess", "found"),
    [
        ("3 days", "72 hours", GUESS, SAME),
        ("3 days", "5 days", GUESS, RIVAL),
        ("3 days", "5 days", SAME, SAME),  # a rule has decided
        ("3 days", "3 days or 5 days", GUESS, COMPATIBLE),  # one of several is no contradiction
        ("3 days", "3 days or 5 days", RIVAL, RIVAL),
        ("soon", "3 days", GUESS, GUESS),
    ],
)
def test_values_decide_where_no_rule_did(left: str, right: str, guess: Relation, found: Relation) -> None:
    assert relation_by_value("How long does it take?", left, right, guess) == found


def test_an_answer_joins_a_group_that_it_does_not_contradict() -> None:
    """7 pm goes with Tuesday at 7 pm, and Thursday at 7 pm then does not."""
    same, rival = Relation(0.9, 0.05, 0.05), Relation(0.05, 0.9, 0.05)
    related = {frozenset("ab"): same, frozenset("ac"): same, frozenset("bc"): rival}
    assert group_equivalent("abc", related) == {"a": ["a", "b"], "c": ["c"]}
    unsure = {**related, frozenset("bc"): rival._replace(sure=False)}
    assert group_equivalent("abc", unsure) == {"a": ["a", "b", "c"]}
    assert goes_with("a", "b", related)
    assert not goes_with("b", "c", related)
    assert group_equivalent("", {}) == {}


@pytest.mark.parametrize(
    ("question", "left", "right"),
    [
        ("How did the rent change?", "it rose by 5 %", "it rose to 5 %"),
        ("How much did the rent rise?", "by 5 %", "to 5 %"),
        ("Um wie viel stieg die Miete?", "um 5 %", "auf 5 %"),
        ("De combien ont augmenté les loyers ?", "de 5 %", "à 5 %"),
        ("¿Cuánto subió?", "subió un 5 %", "subió al 5 %"),
        ("Darf ich Hunde mitbringen?", "Ja.", "Hunde sind nicht erlaubt."),
        ("Ist Rauchen erlaubt?", "Ja", "Rauchen ist verboten."),
        ("Gibt es Parkplätze?", "Nein", "Es gibt Parkplätze am Haus."),
        ("Peut-on fumer ?", "oui", "Il est interdit de fumer."),
        ("¿Hay aparcamiento?", "No", "Hay aparcamiento gratuito."),
    ],
)
def test_changes_and_statements_about_a_question_for_yes_or_no_are_rivals(question: str, left: str, right: str) -> None:
    assert relation(question, left, right) == relation(question, right, left) == RIVAL


@pytest.mark.parametrize(
    ("question", "words", "yes"),
    [
        ("May I smoke?", "smoking is allowed", True),
        ("May I smoke?", "smoking is forbidden", False),
        ("May I smoke?", "smoking is not forbidden", True),
        ("Is smoking forbidden?", "smoking is forbidden", True),
        ("Darf ich parken?", "parken ist ohne ausweis erlaubt", True),
        ("Darf ich parken?", "parken ist hier nicht gestattet", False),
        ("Is a helmet mandatory?", "helmets are optional", False),
        ("Evcil hayvan getirilebilir mi?", "evcil hayvan getirilemez", False),
        ("Há estacionamento gratuito?", "não há estacionamento gratuito", False),
        ("هل التدخين مسموح؟", "التدخين غير مسموح", False),
    ],
)
def test_a_statement_affirms_or_denies(question: str, words: str, yes: bool) -> None:
    assert affirms(words.split(), read_question(question)) is yes


def test_a_statement_that_affirms_goes_with_yes() -> None:
    assert relation("Darf ich Hunde mitbringen?", "Ja", "Hunde sind willkommen.").same > 0.5
