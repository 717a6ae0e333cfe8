"""InstructRAG and AstuteRAG: order and number of calls, what each prompt holds, what becomes the answer."""

from __future__ import annotations

import pytest

from unpoison.core.answers import Reply
from unpoison.errors import OptionError
from unpoison.models import ScriptedGenerator
from unpoison_lab.baselines.astuterag import AstuteRag
from unpoison_lab.baselines.instructrag import InstructRag, extract_tagged

FIVE = [f"d{i}" for i in range(5)]


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("x <ANSWER> Paris </ANSWER>", "Paris"),
        ("<answer>\nNew\nYork</Answer> and <ANSWER>later</ANSWER>", "New\nYork"),
        ("<ANSWER></ANSWER>", ""),
        ("Paris", None),
    ],
)
def test_answer_tags(reply: str, answer: str | None) -> None:
    assert extract_tagged(reply) == answer


def test_instructrag_lists_the_worst_passage_first() -> None:
    generator = ScriptedGenerator("Passage 3 says so. <ANSWER>Paris</ANSWER>")
    answer = InstructRag(generator).answer("What is the capital of France", ["d0", "d1", "d2"])
    (prompt,) = generator.prompts
    assert prompt.passages == ("d2", "d1", "d0")
    assert prompt.question == "what is the capital of France?"
    assert "<passage 1" in prompt.text()
    assert prompt.text().index("d2") < prompt.text().index("d0")
    assert (answer.text, answer.details["rationale"]) == ("Paris", "Passage 3 says so. <ANSWER>Paris</ANSWER>")
    assert answer.screening.kept_indices == (0, 1, 2)


def test_instructrag_has_two_demonstrations_before_anything_hostile() -> None:
    generator = ScriptedGenerator("x")
    InstructRag(generator).answer("q", ["d0"])
    system, user = (message["content"] for message in generator.prompts[0].messages())
    assert system.count("Rationale:") == 2
    assert "d0" not in system
    assert "<passage 1" in user


@pytest.mark.parametrize(
    ("extract", "replies", "text", "calls"),
    [
        ("tags", ["no tags here"], "no tags here", 1),
        ("rationale", ["It is <ANSWER>Paris</ANSWER>"], "It is <ANSWER>Paris</ANSWER>", 1),
        ("call", ["a long story", "<ANSWER>Paris</ANSWER>"], "Paris", 2),
        ("call", ["a long story", "nothing of the kind"], "", 2),
    ],
)
def test_where_instructrags_answer_comes_from(extract: str, replies: list[str], text: str, calls: int) -> None:
    generator = ScriptedGenerator(replies)
    answer = InstructRag(generator, extract=extract).answer("q", ["d0"])  # type: ignore[arg-type]
    assert (answer.text, len(answer.calls)) == (text, calls)
    assert answer.abstained == (text == ""), "an empty answer must never count as correct, nor as the attacker's"
    assert answer.details["rationale"] == replies[0]


def test_instructrag_needs_no_passages() -> None:
    assert InstructRag(ScriptedGenerator("x")).answer("q", []).text == "x"
    with pytest.raises(OptionError, match="extract"):
        InstructRag(extract="guess")  # type: ignore[arg-type]


def test_astuterag_asks_for_memory_and_then_for_everything() -> None:
    generator = ScriptedGenerator(["what I recall", "x <ANSWER> Paris </ANSWER>"])
    answer = AstuteRag(generator).answer("q", FIVE)
    assert (answer.text, len(answer.calls)) == ("Paris", 2)
    memory, final = generator.prompts
    assert memory.passages == ()
    assert all(f"<passage {i}" in final.text() for i in range(1, 6))
    assert "Memorized document" in final.text()
    assert "what I recall" in final.text()
    assert final.passages == tuple(FIVE)
    assert answer.details == {"internal_knowledge": "what I recall", "selection": "x <ANSWER> Paris </ANSWER>"}


def test_astuterag_consolidates_apart() -> None:
    generator = ScriptedGenerator(["I don't know", "group 1 ...", "Paris"])
    answer = AstuteRag(generator, merged=False).answer("q", FIVE)
    assert (answer.text, len(answer.calls)) == ("Paris", 3)
    assert [prompt.task for prompt in generator.prompts] == ["knowledge", "consolidate", "decide"]
    assert "I don't know" in generator.prompts[1].messages()[1]["content"], "said or not, it is appended"
    assert generator.prompts[2].passages == ()
    assert "group 1 ..." in generator.prompts[2].text()


def test_astuterag_without_passages_has_its_memory() -> None:
    generator = ScriptedGenerator(["what I recall", "Paris"])
    assert AstuteRag(generator).answer("q", []).text == "Paris"
    assert "what I recall" in generator.prompts[1].text()


@pytest.mark.parametrize("defense", [AstuteRag(), InstructRag()])
def test_screening_drops_nothing_and_needs_no_model(defense: AstuteRag | InstructRag) -> None:
    assert defense.screen("q", FIVE).dropped == ()


def test_an_unfinished_step_is_said() -> None:
    """What an answer rests on may have been refused or cut without the last reply showing it."""
    cut = Reply("one of several", finish="length")
    answer = AstuteRag(ScriptedGenerator([cut, "groups", "<ANSWER>a</ANSWER>"]), merged=False).answer("q", ["p"])
    assert answer.details["unfinished"] == {"internal knowledge": "length"}
    assert answer.screening.evidence.notes[-1] == "the internal knowledge was truncated at its length limit"
    answer = InstructRag(ScriptedGenerator([cut, "<ANSWER>a</ANSWER>"]), extract="call").answer("q", ["p"])
    assert answer.details["unfinished"] == {"rationale": "length"}
    answer = InstructRag(ScriptedGenerator([cut])).answer("q", ["p"])
    assert answer.details["finish"] == "length"


def test_the_order_of_instructrag_and_the_extraction_of_astuterag_are_options() -> None:
    generator = ScriptedGenerator("<ANSWER>a</ANSWER>")
    InstructRag(generator, order="best-first").answer("q", ["p", "q"])
    assert generator.prompts[0].passages == ("p", "q")
    generator = ScriptedGenerator(["memory", "It is a, not b.", "<ANSWER>a</ANSWER>"])
    answer = AstuteRag(generator, extract="call").answer("q", ["p"])
    assert (answer.text, answer.details["selection"]) == ("a", "It is a, not b.")
    assert AstuteRag(ScriptedGenerator(["m", "s", "no tags"]), extract="call").answer("q", ["p"]).text == ""
    for defense, option in ((InstructRag, "order"), (AstuteRag, "extract")):
        with pytest.raises(OptionError, match=option):
            defense(**{option: "other"})  # type: ignore[arg-type]
