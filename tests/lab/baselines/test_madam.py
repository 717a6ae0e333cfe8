"""MADAM-RAG: rounds, convergence, calls, and the forms of its replies."""

from __future__ import annotations

import pytest

from meeting import Meeting
from ranges import assert_range
from unpoison.defenses.voices import MAX_ANSWER_CHARS
from unpoison.models import ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison_lab.baselines.madam import Madam, _is_same_answer, agents_answer, all_correct_answers


def scripted(*rounds: list[str]) -> ScriptedGenerator:
    """The agents' answers in each round; the n-th aggregation is "All Correct Answers: [n]"."""
    aggregations: list[str] = []

    def reply(prompt: Prompt) -> str:
        if prompt.task == "synthesize":
            aggregations.append(f'All Correct Answers: ["{len(aggregations) + 1}"]. Explanation: agents agree')
            return aggregations[-1]
        answer_given = rounds[len(aggregations)][int(prompt.passages[0][1:])]
        return f"Answer: {answer_given} Explanation: my passage says so."

    return ScriptedGenerator(reply)


def test_the_worked_example() -> None:
    generator = scripted(["1963", "1956"], ["1963.", "the 1956"])
    answer = Madam(generator).answer("q", ["p0", "p1"])
    assert answer.text == "1", "converged in round 2: the aggregation of round 1"
    assert len(answer.calls) == len(generator.prompts) == 2 + 1 + 2
    first, second = generator.prompts[0], next(p for p in generator.prompts[3:] if p.passages == ("p0",))
    assert first.notes == {}
    assert list(second.notes.values()) == ["Answer: 1956 Explanation: my passage says so."], "what the others said"
    assert answer.screening.evidence.notes == ("2 rounds",)


def test_five_agents_that_never_agree() -> None:
    generator = scripted(*([f"{round} {i}" for i in range(5)] for round in "xyz"))
    answer = Madam(generator).answer("q", [f"p{i}" for i in range(5)])
    assert len(generator.prompts) == 3 * (5 + 1)
    assert answer.text == "3"


def test_five_agents_that_converge_at_once() -> None:
    generator = scripted(["x"] * 5, ["x"] * 5)
    Madam(generator).answer("q", [f"p{i}" for i in range(5)])
    assert len(generator.prompts) == 6 + 5


def test_agents_speak_at_the_same_time() -> None:
    generator = Meeting("Answer: x Explanation: y", 5)
    Madam(generator, rounds=1).answer("q", [f"p{i}" for i in range(5)])
    assert generator.most_in_flight == 5


def test_a_single_round_has_its_aggregation() -> None:
    assert Madam(scripted(["a", "b"]), rounds=1).answer("q", ["p0", "p1"]).text == "1"


def test_without_passages_the_model_answers_from_memory() -> None:
    generator = ScriptedGenerator("Paris")
    assert Madam(generator).answer("q", []).text == "Paris"
    assert [prompt.task for prompt in generator.prompts] == ["answer-alone"]


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Answer: Paris Explanation: because", "Paris"),
        ("Answer: Paris", "Paris"),
        ("Paris it is", "Paris it is"),
        ("Answer:  Explanation: none", ""),
        ("Sure. Answer: in\n1963. Explanation", "in\n1963."),
    ],
)
def test_what_an_agent_answers(reply: str, answer: str) -> None:
    assert agents_answer(reply) == answer


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ('All Correct Answers: ["1962", "1950"]. Explanation: two places', ["1962", "1950"]),
        ("All Correct Answers: [Paris, Lyon]. Explanation: x", ["Paris", "Lyon"]),
        ("All Correct Answers: ['New York']", ["New York"]),
        ("All Correct Answers: Paris. Explanation: x", ["Paris"]),
        ("All Correct Answers: []. Explanation: none", []),
        ("All Correct Answers: [1963, 1956]", ["1963", "1956"]),
        ("Paris", ["Paris"]),
    ],
)
def test_what_the_aggregator_lists(reply: str, answers: list[str]) -> None:
    assert all_correct_answers(reply) == answers


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ("1963", "1963.", True),
        ("1956", "the 1956", True),
        ("1956", "1963", False),
        ("", "", True),
        ("", "Paris", False),
        ("Answer: The", "Paris", False),
    ],
)
def test_when_an_agent_has_not_changed_its_mind(before: str, now: str, same: bool) -> None:
    assert _is_same_answer(before, now) == same


@pytest.mark.parametrize("reply", ["All Correct Answers: [unknown]", "All Correct Answers: []"])
def test_no_answer_is_an_abstention(reply: str) -> None:
    assert Madam(ScriptedGenerator(reply), rounds=1).answer("q", ["a"]).abstained


def test_rounds_have_a_range():
    assert_range(Madam, "rounds", 1, 20)


def test_each_passage_is_kept_for_what_its_agent_said_last() -> None:
    answer = Madam(scripted(["1963", "1956"], ["1901", "1956"]), rounds=2).answer("q", ["p0", "p1"])
    assert [str(v.reason) for v in answer.screening.verdicts] == [
        "its agent answers '1901'",
        "its agent answers '1956'",
    ]
    assert answer.screening.kept_indices == (0, 1)
    assert answer.details["aggregation"].startswith("All Correct Answers")
    assert [len(said) for said in answer.details["rounds"]] == [2, 2]


def test_an_agent_sees_the_others_by_their_numbers_and_only_the_beginning_of_a_long_reply() -> None:
    long = "x" * (MAX_ANSWER_CHARS + 1)
    generator = scripted(["one", "two", long], ["one", "two", "three"])
    Madam(generator, rounds=2).answer("q", ["p0", "p1", "p2"])
    (seen,) = [p.notes for p in generator.prompts if p.notes and p.passages == ("p1",)]
    assert list(seen) == ["Another agent, 1", "Another agent, 2"]
    assert seen["Another agent, 1"].startswith("Answer: one")
    assert len(seen["Another agent, 2"]) == MAX_ANSWER_CHARS
    first, second = (next(p for p in generator.prompts[start:] if p.passages == ("p0",)) for start in (0, 4))
    assert "only" in first.text() and "the notes" not in first.text() and "the notes" in second.text()


def test_a_list_that_is_nested_too_deeply_is_read_as_words() -> None:
    assert all_correct_answers(f"All Correct Answers: {'[' * 50_000}") == ["[" * 50_000]
