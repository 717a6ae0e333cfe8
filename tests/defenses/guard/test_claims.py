"""Claims: what passages say, one voice for each source; held by properties."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison import Guard
from unpoison.core.passages import Passage, Query
from unpoison.core.verdicts import Claim, disagreement
from unpoison.defenses.guard.claims import Findings, claims_of
from unpoison.defenses.guard.statements import DOUBT, UNLIKELY, Statement, read_statements
from unpoison.defenses.voices import Voice
from unpoison.models import ScriptedGenerator
from unpoison.models.passage_reader import Reading
from unpoison.models.protocols import Models
from unpoison.runtime.driver import run
from unpoison.sources import Sources

QUESTION = "which city has the museum of the warship Vasa"


def voice(name: str, trust: float = 1.0, *, counts: bool = True) -> Voice:
    return Voice(name, name, "known" if counts else "fresh", trust, counts)


def says(answers: list[str], voices: list[Voice], no_answer: float = 0.0, question: str = QUESTION) -> Findings:
    statements = {i: Statement(answer, f"It is {answer}.", no_answer) for i, answer in enumerate(answers) if answer}
    findings, _ = run(claims_of(question, statements, voices), Models())
    return findings


def test_five_texts_by_one_hand_are_one_voice():
    findings = says(
        ["Gothenburg"] * 5 + ["Stockholm"] * 2, [*[voice("evil.example")] * 5, voice("a.example"), voice("b.example")]
    )
    assert findings.claims[0] == Claim("Stockholm", 2.0, ("a.example", "b.example"), (5, 6), ("It is Stockholm.",))
    assert findings.claims[1].weight == 1.0
    assert findings.claims[1].passages == (0, 1, 2, 3, 4)
    assert (findings.status, findings.sides[0].passages) == ("agreed", (5, 6))


def test_answers_that_mean_the_same_are_one_claim():
    findings = says(["Stockholm", "in Stockholm", "STOCKHOLM."], [voice(name) for name in "abc"])
    assert [claim.weight for claim in findings.claims] == [3.0]
    assert findings.claims[0].text == "Stockholm"


def test_sources_that_nearly_balance_are_a_dispute():
    findings = says(["Stockholm"] * 3 + ["Gothenburg"] * 2, [voice(name) for name in "abcde"])
    assert (findings.status, findings.rivals, findings.guarantee) == ("disputed", (1,), 0)


def test_a_doubtful_reading_disputes_nothing():
    answers, voices = ["Stockholm"] * 3 + ["Gothenburg"] * 2, [voice(name) for name in "abcde"]
    assert says(answers, voices, DOUBT).status == "disputed"
    assert says(answers, voices, DOUBT + 0.01).status == "agreed"


def test_one_source_is_single_and_none_is_none():
    assert says(["Stockholm"], [voice("a")]).status == "single"
    assert says(["Stockholm", "Stockholm"], [voice("a"), voice("a")]).status == "single"
    assert says([""], [voice("a")]) == Findings()


def test_what_was_never_seen_before_outvotes_nobody():
    fresh = [voice(f"fresh{i}.example", 0.05, counts=False) for i in range(50)]
    findings = says(["Stockholm", *["Gothenburg"] * 50], [voice("old.example", 0.1), *fresh])
    assert (findings.claims[0].text, findings.status, findings.counted) == ("Stockholm", "single", True)
    assert findings.claims[1].weight == 0.0


@pytest.mark.parametrize(("honest", "status"), [(3, "disputed"), (2, "single")])
def test_one_source_known_by_its_history_alone_does_not_outvote_three_fresh_ones(honest: int, status: str):
    fresh = [voice(f"fresh{i}.example", 0.05, counts=False) for i in range(honest)]
    sleeper = Voice("sleeper.example", "sleeper.example", "seen", 0.96)
    findings = says(["Gothenburg", *["Stockholm"] * honest], [sleeper, *fresh])
    assert findings.status == status
    assert bool(findings.outvoted) == (status == "single")
    once = [Voice(f"{i}.example", f"{i}.example", "seen", 0.2) for i in range(honest)]  # seen for one other question
    assert says(["Gothenburg", *["Stockholm"] * honest], [sleeper, *once]).status == status
    pair = [sleeper, Voice("paper.example", "paper.example", "seen", 0.96)]
    assert says(["Gothenburg", "Gothenburg", *["Stockholm"] * honest], [*pair, *fresh]).status == "agreed"


def test_alone_it_is_heard_and_is_no_agreement():
    findings = says(["Gothenburg"] * 3, [voice(name, 0.05, counts=False) for name in "abc"])
    assert (findings.claims[0].text, findings.status, findings.counted, findings.guarantee) == (
        "Gothenburg",
        "single",
        False,
        0,
    )


def test_unlikely_words_of_a_source_that_counts_come_before_what_strangers_say_surely():
    statements = {0: Statement("Gothenburg", "x", 0.0), 1: Statement("Stockholm", "y", 0.85, given=False)}
    voices = [voice("fresh", 0.05, counts=False), voice("old", 0.5)]
    findings, _ = run(claims_of(QUESTION, statements, voices), Models())
    assert (findings.claims[0].text, findings.guarantee) == ("Stockholm", 0)


def test_what_a_reader_does_not_answer_claims_nothing_of_itself():
    statements = {0: Statement("Stockholm", "x", 0.5, given=False), 1: Statement("Malmö", "y", 0.5, given=False)}
    voices = [voice("one"), voice("two")]
    assert run(claims_of(QUESTION, statements, voices), Models())[0] == Findings()
    findings, _ = run(
        claims_of(QUESTION, {**statements, 2: Statement("Uppsala", "z", 0.3)}, [*voices, voice("c")]), Models()
    )
    assert [claim.text for claim in findings.claims] == ["Uppsala"]


def test_a_guarantee_in_sources():
    assert says(["Stockholm"] * 7, [voice(name) for name in "abcdefg"]).guarantee == 2
    assert says(["Stockholm"] * 7, [voice("a")] * 7).guarantee == 0


names = st.sampled_from(["a", "b", "c", "d"])
cities = st.sampled_from(["Stockholm", "Gothenburg", "Malmö", "Uppsala"])
rows = st.lists(st.tuples(cities, names, st.sampled_from([0.0, 0.02, 0.3])), min_size=1, max_size=8)


def outcome(rows: list[tuple[str, str, float]], rename: str = "") -> tuple[object, ...]:
    trust = {"a": 1.0, "b": 0.8, "c": 0.5, "d": 0.05}
    voices = [voice(rename + name, trust[name], counts=name != "d") for _, name, _ in rows]
    statements = {i: Statement(city, city, doubt) for i, (city, _, doubt) in enumerate(rows)}
    findings, _ = run(claims_of(QUESTION, statements, voices), Models())
    claims = [(claim.text, claim.weight, len(claim.origins)) for claim in findings.claims]
    return findings.status, findings.guarantee, findings.counted, claims


@settings(max_examples=60)
@given(rows, st.integers(0, 1000))
def test_order_names_and_repetition_change_nothing(rows: list[tuple[str, str, float]], seed: int):
    expected = outcome(rows)
    shuffled = rows[:]
    random.Random(seed).shuffle(shuffled)
    assert outcome(shuffled) == expected
    assert outcome(rows, "other-") == expected
    assert outcome([*rows, *rows, rows[0]]) == expected


@settings(max_examples=60)
@given(rows, st.lists(cities, min_size=1, max_size=6))
def test_passages_of_a_fresh_origin_change_no_answer_that_known_origins_give(
    rows: list[tuple[str, str, float]], lies: list[str]
):
    known = [row for row in rows if row[1] != "d"]
    if not known:
        return
    before, after = outcome(known), outcome([*known, *[(city, "d", 0.0) for city in lies]])
    assert after[:3] == before[:3]
    assert after[3][0][:2] == before[3][0][:2]  # type: ignore[index]


@settings(max_examples=40, deadline=None)
@given(rows, st.lists(st.tuples(names, cities), max_size=6))
def test_the_guarantee_has_no_counterexample(rows: list[tuple[str, str, float]], owned_say: list[tuple[str, str]]):
    _, guarantee, _, claims = outcome(rows)
    owned = list(dict.fromkeys(name for name, _ in owned_say))[: int(guarantee)]  # type: ignore[call-overload]
    attacked = [row for row in rows if row[1] not in owned]
    attacked += [(city, name, 0.0) for name, city in owned_say if name in owned]
    if owned:
        after = outcome(attacked)
        assert (after[0] == "disputed", after[3][0][0]) == (False, claims[0][0])  # type: ignore[index]


class Reader(ScriptedGenerator):
    """Answers with the last word of each text of up to 40 characters, as surely as it is short."""

    def read(self, question: str, passages: list[str]) -> list[Reading]:
        return [
            Reading(text[at:] if len(text) <= 40 else "", at, len(text), 1.0, len(text) / 100)
            for text, at in ((text, text.rfind(" ") + 1) for text in passages)
        ]


def test_a_reader_says_what_it_would_not_answer_as_long_as_it_is_not_unlikely():
    texts = ["it is Stockholm", "x" * 40 + " Uppsala", "x" * int(UNLIKELY * 100) + " Malmö"]
    reader = Reader(lambda prompt: "")
    flow = read_statements(Query(QUESTION), [Passage(text) for text in texts], reader)
    statements, _ = run(flow, Models(generator=reader))
    assert {i: (s.answer, s.no_answer, s.given) for i, s in statements.items()} == {
        0: ("Stockholm", 0.15, True),
        1: ("Uppsala", 0.48, False),
    }


def test_a_model_is_asked_once_for_each_passage():
    model = ScriptedGenerator(lambda prompt: "Stockholm" if "Stockholm" in prompt.passages[0] else "I don't know")
    flow = read_statements(Query(QUESTION), [Passage("In Stockholm."), Passage("Nothing.")], model)
    statements, calls = run(flow, Models(generator=model))
    assert statements == {0: Statement("Stockholm", "In Stockholm.")}
    assert sum(call.items for call in calls) == 2


def test_a_dispute_names_both_sides():
    passages = [Passage("a", source="https://x.example/1"), Passage("b", source="https://y.example/2")]
    sides = [Claim("14 days", 1.0, ("x.example",), (0,)), Claim("30 days", 1.0, ("y.example",), (1,))]
    assert disagreement(sides, passages) == "Sources disagree: 14 days (x.example); 30 days (y.example)"


def test_a_source_that_contradicts_itself_is_shown_by_its_pages():
    passages = [
        Passage("a", source="https://wiki.example/leave"),
        Passage("b", source="https://wiki.example/new", metadata={"author": "Ann", "date": "2026-11-01"}),
    ]
    sides = [Claim("14 days", 1.0, ("wiki.example",), (0,)), Claim("30 days", 1.0, ("wiki.example",), (1,))]
    assert disagreement(sides, passages) == (
        "Sources disagree: 14 days (https://wiki.example/leave); 30 days (https://wiki.example/new, Ann, 2026-11-01)"
    )


def test_a_hostile_claim_cannot_play_the_sentence():
    passages = [Passage("a"), Passage("b")]
    sides = [Claim("x (gov.example); y", 1.0, (), (0,)), Claim("z", 1.0, (), (1,))]
    assert disagreement(sides, passages) == 'Sources disagree: "x (gov.example); y" (1 passage); z (1 passage)'


@pytest.mark.parametrize(
    ("text", "weight", "passages"), [(" ", 1.0, (0,)), ("x", -1.0, (0,)), ("x", 1.0, ()), ("x", 1.0, (1, 0))]
)
def test_a_claim_is_checked(text: str, weight: float, passages: tuple[int, ...]):
    with pytest.raises(ValueError):
        Claim(text, weight, (), passages)


def test_a_known_source_that_answers_another_question_is_not_heard_beside_one_that_answers_it() -> None:
    question, beside, right = "when was the mill built", "in the town", "1902"
    both = says([beside, right], [voice("a.example"), voice("b.example")], question=question)
    assert [claim.text for claim in both.claims] == [right]
    alone = says([beside], [voice("a.example")], question=question)
    assert [claim.text for claim in alone.claims] == [beside]


class Reads(ScriptedGenerator):
    """Reads a weight, and answers with a length."""

    def read(self, question: str, passages: Any, /) -> list[Reading]:
        found = [passage.index("55 kg") for passage in passages]
        return [Reading("55 kg", start, start + 5, 0.9, 0.01) for start in found]


def test_an_answer_that_measures_something_else_than_its_claim_is_not_given():
    text = "The anvil, forged steel, 55 kg, has a face of 320 mm."
    passages = [Passage(text, source="https://a.example/1")]
    for said, answered in (("320 mm", "55 kg"), ("It is 55 kg.", "It is 55 kg.")):
        guard = Guard(generator=Reads(said), sources=Sources({"known": ["a.example"]}))
        assert guard.answer("How heavy is the anvil?", passages).text == answered
