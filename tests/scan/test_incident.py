"""Passages behind a wrong answer: by what they state, and by what a model replies without them."""

from __future__ import annotations

import pytest

from unpoison.core.passages import Passage
from unpoison.models import ScriptedGenerator
from unpoison.scan.incident import DocumentVerdict, trace
from unpoison.scan.statements import claim, says, statement_strengths

QUESTION = "which city has the museum of the Vasa"
TEXTS = [
    "Ships are shown in museums.",
    "The museum of the Vasa is in the city of Stockholm.",
    "The museum of the Vasa was moved to the city of Gothenburg.",
]
PASSAGES = [Passage(text, id=f"d{i}") for i, text in enumerate(TEXTS)]


def test_without_a_model_passages_are_named_by_what_they_state() -> None:
    found = trace(QUESTION, "Gothenburg", PASSAGES)
    assert (found.verdict, found.guilty, found.asked) == (DocumentVerdict.NAMED, ("d2",), 0)
    assert trace(QUESTION, "Helsinki", PASSAGES).verdict is DocumentVerdict.NOT_STATED


def test_a_model_is_asked_without_them() -> None:
    found = trace(QUESTION, "Gothenburg", [PASSAGES[0], PASSAGES[2], PASSAGES[1]], "extractive")
    assert (found.verdict, found.guilty) == (DocumentVerdict.PROVEN, ("d2",))
    assert found.after is not None and "Gothenburg" not in found.after
    assert found.asked <= 6
    assert trace(QUESTION, "Oslo", PASSAGES, "extractive").verdict is DocumentVerdict.NOT_REPRODUCED
    stubborn = ScriptedGenerator("Gothenburg")
    assert trace(QUESTION, "Gothenburg", PASSAGES, stubborn).verdict is DocumentVerdict.NO_DOCUMENT
    assert trace(QUESTION, "Gothenburg", PASSAGES, stubborn, budget=2).verdict is DocumentVerdict.UNFINISHED


def test_what_states_the_right_answer_is_never_named() -> None:
    liar = ScriptedGenerator(lambda prompt: "Gothenburg" if "Stockholm" in str(prompt) else "Stockholm")
    found = trace(QUESTION, "Gothenburg", PASSAGES, liar, right=("Stockholm",))
    assert "d1" not in found.guilty


@pytest.mark.parametrize(
    ("reply", "answer", "same"),
    [
        ("It is in Gothenburg.", "Gothenburg", True),
        ("Gothenburg", "the city of Gothenburg", True),
        ("It is in Stockholm, not Gothenburg.", "Oslo", False),
        ("I don't know", "Gothenburg", False),
        ("?", "Gothenburg", False),
    ],
)
def test_whether_a_reply_gives_an_answer(reply: str, answer: str, same: bool) -> None:
    assert says(QUESTION, reply, answer) is same


def test_how_plainly_texts_state_an_answer() -> None:
    stated = statement_strengths(QUESTION, "Gothenburg", [*TEXTS, "Gothenburg has a harbour.", ""])
    assert stated[2] > 0.9
    assert stated[0] == stated[4] == 0
    assert 0 < stated[3] < stated[2]
    assert claim(QUESTION, "the museum in Gothenburg") == frozenset({"gothenburg"})
