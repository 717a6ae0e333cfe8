"""Discern-and-Answer: the form of the reply, one call."""

from __future__ import annotations

import pytest

from unpoison.models import ScriptedGenerator
from unpoison_lab.baselines.discern import Discern, parse_reply

FIVE = [f"d{i}" for i in range(1, 6)]
REPLY = "Passage 2, 4 are perturbed. Deriving the answer based on Passage 1, 3, 5.\nanswer: Paris"


@pytest.mark.parametrize(
    ("reply", "perturbed", "answer"),
    [
        (REPLY, {2, 4}, "Paris"),
        ("Paris", set(), "Paris"),
        ("perturbed: Passage 3 is perturbed. Deriving the answer based on Passage 1.\nAnswer: Rome", {3}, "Rome"),
        ("Passages 1, 2 and 5 are perturbed.\nanswer: x", {1, 2, 5}, "x"),
        ("No passages are perturbed. Deriving the answer based on Passage 1, 2.\nanswer: 1963", set(), "1963"),
        ("In 1963", set(), "In 1963"),
        ("Passage 12 was written by Paul", set(), "Passage 12 was written by Paul"),
        ("answer: Passage 7", set(), "Passage 7"),
        ("", set(), ""),
    ],
)
def test_the_form_of_the_reply(reply: str, perturbed: set[int], answer: str) -> None:
    assert parse_reply(reply) == (perturbed, answer)


def test_one_call_finds_and_answers() -> None:
    generator = ScriptedGenerator(REPLY)
    answer = Discern(generator).answer("q", FIVE)
    assert (answer.text, len(answer.calls)) == ("Paris", 1)
    assert answer.screening.dropped_indices == (1, 3)
    assert str(answer.screening.verdicts[1].reason) == "the model says that it is perturbed"
    assert generator.prompts[0].messages()[1]["content"].endswith("perturbed:")
    assert Discern(generator).screen("q", FIVE).kept_indices == (0, 2, 4)


def test_numbers_of_no_passage_do_not_matter_and_all_may_be_perturbed() -> None:
    reply = "Passage 1, 2, 9 are perturbed. Deriving the answer ignoring all passages.\nanswer: from memory"
    answer = Discern(ScriptedGenerator(reply)).answer("q", ["a", "b"])
    assert answer.screening.kept == ()
    assert answer.text == "from memory"
    assert "every passage" in answer.screening.evidence.notes[0]


@pytest.mark.parametrize(
    ("reply", "perturbed"),
    [
        ("Passages 1, 2, and 3 are perturbed.\nanswer: x", {1, 2, 3}),
        ("PASSAGE 4 is perturbed\nAnswer: x", {4}),
        ("Nothing is perturbed.\nPassage 2 is fine.\nanswer: x", set()),
        ("Passage 3 was perturbed", {3}),
    ],
)
def test_only_the_first_sentence_names_the_perturbed(reply: str, perturbed: set[int]) -> None:
    assert parse_reply(reply).perturbed == perturbed


def test_what_is_perturbed_scores_nothing_and_only_then_something_is_noted() -> None:
    screening = Discern(ScriptedGenerator(REPLY)).screen("q", FIVE)
    assert [v.score for v in screening.verdicts] == [1, 0, 1, 0, 1]
    assert str(screening.verdicts[0].reason) == "the model says that it is not perturbed"
    assert screening.notes == () == Discern(ScriptedGenerator("Paris")).screen("q", []).notes
    assert Discern(ScriptedGenerator(REPLY)).answer("q", FIVE).details["reply"] == REPLY
