"""Pairs of values in twelve languages: equal, compatible or rivals; the held half of the first 200 made no rule."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from unpoison.core.passages import Query, as_passages
from unpoison.defenses.guard.claims import claims_of
from unpoison.defenses.guard.statements import (
    DOUBT,
    GUESSED,
    UNLIKELY,
    Statement,
    completed,
    find_by_words,
    read_statements,
    taken_back,
    with_noun,
)
from unpoison.defenses.voices import Voice
from unpoison.models import ExtractiveReader, ScriptedGenerator
from unpoison.models.passage_reader import Reading
from unpoison.models.protocols import Models
from unpoison.runtime.driver import run
from unpoison.text.answer_forms import form
from unpoison.text.answers import LIKELY, SAME, Relation, relation, relation_by_value
from unpoison.text.questions import wanted

LINES = (Path(__file__).parents[2] / "data" / "value_pairs.jsonl").read_text(encoding="utf-8").splitlines()
PAIRS = [pair for pair in map(json.loads, LINES) if not pair.get("read")]
PASSAGES = [pair for pair in map(json.loads, LINES) if pair.get("read")]
"""Pairs of passages of two known sources, which are read before they are compared; rules were mended on both halves."""
EQUAL = 0.75
"""Minimum probability of equal answers; compatible ones are less sure."""


def related(pair: dict[str, Any]) -> Relation:
    question, left, right = pair["question"], pair["a"], pair["b"]
    return relation_by_value(question, left, right, relation(question, left, right))


def judged(pair: dict[str, Any]) -> str:
    found = related(pair)
    return "rival" if found.rival >= LIKELY else "equal" if found.same >= EQUAL else "compatible"


@pytest.mark.parametrize("held", [False, True])
def test_pairs_of_values_are_judged_right(held: bool) -> None:
    pairs = [pair for pair in PAIRS if pair["held"] == held]
    wrong = [(pair, judged(pair)) for pair in pairs if judged(pair) != pair["relation"]]
    assert len(wrong) <= 0.05 * len(pairs), wrong


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair["relation"] == "rival"], ids=lambda pair: pair["a"])
def test_no_contradiction_agrees(pair: dict[str, Any]) -> None:
    assert related(pair).same < LIKELY
    assert form(pair["question"], pair["a"]) != form(pair["question"], pair["b"])
    assert status_of(pair["question"], [pair["a"], pair["b"]]) == "disputed"


def status_of(question: str, answers: list[str], no_answer: float = 0.0) -> str:
    findings, _ = run(claims_of(question, *said(answers, no_answer)), Models())
    return findings.status


def said(answers: list[str], no_answer: float = 0.0) -> tuple[dict[int, Statement], list[Voice]]:
    statements = {i: Statement(answer, answer, no_answer) for i, answer in enumerate(answers)}
    return statements, [Voice(name, name, "known", 0.8) for name in "abcdefg"[: len(answers)]]


@pytest.mark.parametrize("pair", PAIRS[::5], ids=lambda pair: pair["a"])
def test_a_pair_is_judged_in_both_orders_alike(pair: dict[str, Any]) -> None:
    assert related(pair) == related({**pair, "a": pair["b"], "b": pair["a"]})
    assert related({**pair, "b": pair["a"]}) == SAME


def test_what_goes_with_both_sides_joins_one_and_hides_no_dispute() -> None:
    question, sides = "When is the meeting?", ["Tuesday at 7 pm", "Thursday at 7 pm"]
    assert status_of(question, ["7 pm", *sides]) == "disputed"
    assert status_of(question, ["7 pm", sides[0], "19:00"]) == "agreed"


def test_a_rival_read_with_doubt_is_named_and_does_not_dispute() -> None:
    question = "When does it open?"
    statements, voices = said(["7 am", "7 pm"])
    statements[1] = statements[1]._replace(no_answer=DOUBT + 0.05)
    findings, _ = run(claims_of(question, statements, voices), Models())
    assert (findings.status, findings.rivals, findings.doubtful) == ("single", (), (1,))
    findings, _ = run(claims_of(question, statements, voices[:1] * 2), Models())
    assert (findings.status, findings.rivals) == ("disputed", (1,)), "one source says both"


PARKING = {
    "Was kostet ein Stellplatz in der Tiefgarage?": ("Ein Stellplatz in der Tiefgarage kostet {} Euro.", "disputed"),
    "Combien coûte une place de parking ?": ("Une place de parking coûte {} euros.", "disputed"),
    "¿Cuánto cuesta una plaza de aparcamiento?": ("Una plaza de aparcamiento cuesta {} euros.", "disputed"),
    "Ile kosztuje miejsce parkingowe?": ("Miejsce parkingowe kosztuje {} zł.", "disputed"),
    "Otopark ücreti ne kadar?": ("Otopark ücreti {} lira.", "disputed"),
    "How much is a parking space?": ("A parking space is {} euros.", "single"),
}


@pytest.mark.parametrize("question", PARKING)
def test_a_rival_read_with_some_doubt_disputes_where_the_reader_is_never_sure_and_the_subject_is_the_same(
    question: str,
) -> None:
    sentence, status = PARKING[question]
    statements, voices = said([sentence.format(45), sentence.format(60)], no_answer=DOUBT + 0.03)
    texts = [statement.answer for statement in statements.values()]
    findings, _ = run(claims_of(question, statements, voices, texts=texts), Models())
    assert (findings.status, len(findings.claims)) == (status, 2)
    findings, _ = run(claims_of(question, statements, voices, texts=[texts[0], "60"]), Models())
    assert findings.status == "single", "about something else"


@pytest.mark.parametrize(
    ("text", "claim", "value"),
    [
        ("The warranty is 36 months. That is no longer true: now it is 60.", "36 months", "60"),
        ("The fee is 20 euros. This is outdated. Pay 35 euros.", "20 euros", "35 euros"),
        ("Die Garantie beträgt 36 Monate. Das gilt nicht mehr: jetzt sind es 60 Monate.", "36 Monate", "60 Monate"),
        ("La garantie est de 36 mois. Ce n'est plus vrai : désormais 60 mois.", "36 mois", "60 mois"),
        ("La garantía es de 36 meses. Ya no es cierto: ahora son 60 meses.", "36 meses", "60 meses"),
    ],
)
def test_what_takes_a_claim_back_is_a_claim(text: str, claim: str, value: str) -> None:
    found = taken_back(text, claim)
    assert found is not None and found.answer == value


def test_an_ordinary_second_value_takes_nothing_back() -> None:
    assert taken_back("The warranty is 36 months. Returns are free for 60 days.", "36 months") is None
    assert taken_back("That is no longer true: now it is Bob.", "Alice") is None


class Reads(ScriptedGenerator):
    """A reader that finds in each passage what it is told."""

    def __init__(self, *readings: Reading) -> None:
        super().__init__("")
        self.readings = readings

    def read(self, question: str, passages: Any, /) -> list[Reading]:
        return list(self.readings)


def reading(text: str, words: str, no_answer: float, *, answer: bool = True, language: str | None = None) -> Reading:
    start = text.index(words)
    return Reading(words if answer else "", start, start + len(words), 0.9, no_answer, language=language)


def read(question: str, texts: list[str], generator: Any) -> dict[int, Statement]:
    found, _ = run(read_statements(Query(question), as_passages(texts), generator), Models(generator=generator))
    return found


TOWER = "The tower stands in Lyon. It was built in 1890."


@pytest.mark.parametrize(
    ("no_answer", "given", "said"),
    [(0.2, True, "Lyon"), (0.95, True, "Lyon"), (UNLIKELY - 0.01, False, "Lyon"), (UNLIKELY, False, None)],
)
def test_what_a_reader_does_not_give_counts_unless_it_is_unlikely(no_answer: float, given: bool, said: str) -> None:
    found = read("Where does the tower stand?", [TOWER], Reads(reading(TOWER, "Lyon", no_answer, answer=given)))
    assert [one.answer for one in found.values()] == ([said] if said else [])
    for one in found.values():
        assert (one.sentence, one.no_answer, one.given) == ("The tower stands in Lyon.", no_answer, given)


def test_where_the_reader_was_not_trained_the_words_of_the_question_find_the_answer() -> None:
    question, text = "Wie viel kostet das Ticket?", "Das Museum ist neu. Das Ticket kostet 35 Euro."
    german = reading(text, "neu", 0.99, answer=False, language="de")
    assert read(question, [text], Reads(german))[0].answer == "35 Euro"
    for unread in ("xx", None):  # a language that nobody reads, and one that the reader has read
        assert read(question, [text], Reads(replace(german, language=unread))) == {}


def test_a_value_of_another_kind_is_replaced_by_one_of_the_kind_that_is_asked_for() -> None:
    question, text = "How much does the ticket cost?", "The ticket of 2024 costs 35 euros."
    assert read(question, [text], Reads(reading(text, "2024", 0.1)))[0].answer == "35 euros"
    bare = "The ticket costs 35. The fee is 40 euros for the ticket."
    assert read(question, [bare], Reads(reading(bare, "35", 0.1)))[0].answer == "40 euros"
    none = "The ticket is red."
    assert read("When does it open?", ["It opens, they say, soon."], ScriptedGenerator("soon")).keys() <= {0}
    assert find_by_words(question, [none], [0], wanted(question)) == {}


def test_what_measures_something_else_is_no_answer() -> None:
    question, text = "How much does the tent weigh?", "The tent is for three persons and weighs 2.7 kg."
    assert read(question, [text], Reads(reading(text, "three persons", 0.1)))[0].answer == "2.7 kg"
    other = "The tent is for three persons."
    assert read(question, [other], Reads(reading(other, "three persons", 0.1))) == {}


def test_a_dose_in_milligrams_and_one_in_tablets_are_no_dispute() -> None:
    question = "How many tablets may an adult take at most?"
    texts = ["An adult may take 1,600 mg a day.", "An adult may take at most 4 tablets."]
    found = read(question, texts, Reads(reading(texts[0], "1,600 mg", 0.01), reading(texts[1], "4", 0.01)))
    findings, _ = run(claims_of(question, found, [Voice(n, n, "known", 0.8) for n in "ab"], texts=texts), Models())
    assert (findings.rivals, len(findings.claims)) == ((), 2)
    lie = {**found, 2: Statement("up to 12 tablets", "", 0.01)}
    voices = [*(Voice(n, n, "known", 0.8) for n in "ab"), Voice("c", "c", "fresh", 0.05, counts=False)]
    findings, _ = run(claims_of(question, lie, voices, texts=[*texts, ""]), Models())
    assert [findings.claims[n].text for n in findings.outvoted] == ["up to 12 tablets"]


def test_a_shape_is_recognised_where_the_reader_gives_nothing() -> None:
    question, text = "What is the phone number of the office?", "The phone number of the office is +49 30 1234567."
    found = read(question, [text], Reads(reading(text, "office", 0.99, answer=False)))
    assert found[0].answer.endswith("1234567")


def test_any_other_generator_answers_from_each_passage_alone() -> None:
    generator = ScriptedGenerator(lambda prompt: "Lyon" if "Lyon" in prompt.text() else "I don't know")
    found = read("Where does the tower stand?", [TOWER, "The mill is open."], generator)
    assert {i: one.answer for i, one in found.items()} == {0: "Lyon"}
    assert len(generator.prompts) == 2
    assert all(len(prompt.passages) == 1 for prompt in generator.prompts)


def test_a_value_far_from_the_question_is_no_statement_of_a_language_model() -> None:
    """Only what the extractive reader says is looked up by the words of the question."""
    question, text = "How much does the ticket cost?", "The ticket costs 35 euros."
    silent = ScriptedGenerator("I don't know")
    assert read(question, [text], silent) == {}
    assert read(question, [text], ExtractiveReader())[0].answer == "35 euros"
    assert read("Where does the tower stand?", [TOWER], ExtractiveReader())[0].no_answer == 0


def test_how_sure_a_statement_without_a_reader_is() -> None:
    question = "How much does the ticket cost?"
    near = find_by_words(question, ["The ticket does cost 35 euros."], [0], wanted(question))[0]
    question = "What is the price of the annual museum ticket for adults?"
    far = find_by_words(question, ["The fee: 35 euros for the museum"], [0], wanted(question))[0]
    assert (near.given, near.no_answer, far.given, far.no_answer) == (True, DOUBT, False, UNLIKELY / 2)
    plain = find_by_words("Where does the tower stand?", ["x", TOWER], [1], wanted("Where does the tower stand?"))
    assert [(i, one.no_answer) for i, one in plain.items()] == [(1, GUESSED)]
    assert Statement("a", "a", 0.5).confidence == 0.25
    assert Statement.found("Lyon", TOWER, 0.3) == Statement("Lyon", "The tower stands in Lyon.", 0.3)


TOLD = [
    ("Darf ich Hunde mitbringen?", "Hunde dürfen mitgebracht werden.", "Hunde dürfen nicht mitgebracht werden."),
    ("Gibt es Parkplätze am Haus?", "Am Haus gibt es Parkplätze.", "Am Haus gibt es keine Parkplätze."),
    ("How many tablets should adults take?", "Adults take 2 tablets a day.", "Adults take 2 tablets a week."),
    ("How old must drivers be?", "Drivers must be at least 21 years old.", "Drivers must be at most 21 years old."),
    ("How much did the rent rise?", "The rent rose by 5 %.", "The rent rose to 5 %."),
    (
        "What is the weight of the crate?",
        "The weight of the crate is 1.000 kg.",
        "The weight of the crate is 1,000 kg.",
    ),
]


@pytest.mark.parametrize(("question", "left", "right"), TOLD)
def test_two_known_sources_that_contradict_each_other_are_disputed_as_they_are_read(
    question: str, left: str, right: str
) -> None:
    assert status_of_texts(question, [left, right]) == "disputed"
    assert status_of_texts(question, [left, left]) == "agreed"


def status_of_texts(question: str, texts: list[str]) -> str:
    statements = read(question, texts, ExtractiveReader())
    findings, _ = run(claims_of(question, statements, said(texts)[1], texts=texts), Models())
    return findings.status


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("How many came to the museum?", "In June 1.000 came to the museum, in all 1.250.000.", "1,000"),
        ("How many came to the museum?", "In June 1.000 came to the museum.", "1.000"),
        ("Wie viele kamen in das Museum?", "Im Juni kamen 1.000 Gäste in das Museum.", "1.000"),
    ],
)
def test_an_english_question_is_answered_with_thousands_as_english_writes_them(
    question: str, text: str, answer: str
) -> None:
    assert read(question, [text], Reads(reading(text, "1.000", 0.1)))[0].answer == answer


UNTOLD = 0.15
"""Maximum share of pairs of passages about which the extractive reader does not tell that they agree or contradict."""


@pytest.mark.parametrize("held", [False, True])
def test_pairs_of_passages_are_read_and_judged_right(held: bool) -> None:
    pairs = [pair for pair in PASSAGES if pair["held"] == held]
    told = [status_of_texts(pair["question"], [pair["a"], pair["b"]]) for pair in pairs]
    right = {"equal": "agreed", "rival": "disputed"}
    wrong = [(pair, status) for pair, status in zip(pairs, told) if status != right[pair["relation"]]]
    assert len(wrong) <= UNTOLD * len(pairs), wrong
    assert all(status != "disputed" or pair["relation"] == "rival" for pair, status in zip(pairs, told))


@pytest.mark.parametrize("pair", [pair for pair in PASSAGES if pair["relation"] == "rival"], ids=lambda pair: pair["a"])
def test_no_contradiction_of_two_passages_agrees(pair: dict[str, Any]) -> None:
    assert status_of_texts(pair["question"], [pair["a"], pair["b"]]) != "agreed"


@pytest.mark.parametrize(
    ("answer", "sentence", "whole"),
    [
        ("2", "Adults take 2 tablets a day.", "2 tablets a day"),
        ("2", "See chapter 12: take 2 tablets a day.", "2 tablets a day"),
        ("21 years", "Drivers must be at least 21 years old.", "at least 21 years"),
        ("45 minutes", "La visite dure 1 heure et 45 minutes.", "1 heure et 45 minutes"),
        ("Lyon", "The tower stands in Lyon.", "Lyon"),
        ("5", "nothing", "5"),
        ("", "5 days", ""),
    ],
)
def test_an_answer_is_completed_with_what_belongs_to_its_values(answer: str, sentence: str, whole: str) -> None:
    assert completed(answer, sentence) == whole


def test_a_number_keeps_the_noun_that_the_question_names() -> None:
    sentence = "Take at most 4 tablets a day."
    assert with_noun("How many tablets may I take?", "at most 4", sentence) == "at most 4 tablets"
    assert with_noun("How many pills may I take?", "at most 4", sentence) == "at most 4"
    assert with_noun("How many tablets may I take?", "5", sentence) == "5"
    assert with_noun("How many tablets may I take?", "4", "4") == "4"
