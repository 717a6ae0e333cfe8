"""Two hundred pairs of values in twelve languages: equal, compatible or rivals; the held half made no rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from unpoison.defenses.guard.claims import claims_of
from unpoison.defenses.guard.statements import DOUBT, Statement, taken_back
from unpoison.defenses.voices import Voice
from unpoison.models.protocols import Models
from unpoison.runtime.driver import run
from unpoison.text.answer_forms import form
from unpoison.text.answers import LIKELY, SAME, Relation, relation, relation_by_value

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "value_pairs.jsonl").read_text(encoding="utf-8").splitlines()
]
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
