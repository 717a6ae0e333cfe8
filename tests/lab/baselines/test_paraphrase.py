"""The paraphrasing defense: calls, majority, retrieval for each paraphrase."""

from __future__ import annotations

import asyncio

import pytest

from ranges import assert_range
from unpoison import Passage
from unpoison.errors import InputError, ModelError
from unpoison.models import ExtractiveReader, ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison_lab.baselines.paraphrase import Paraphrasing, read_paraphrases

WRITTEN = '1. Which city is the capital?\n- Name the capital.\n\n"What city governs?"'


def generator(answers: dict[str, str]) -> ScriptedGenerator:
    def reply(prompt: Prompt) -> str:
        return WRITTEN if prompt.task == "free" else answers.get(prompt.question, "I don't know")

    return ScriptedGenerator(reply)


@pytest.mark.parametrize(
    ("reply", "count", "paraphrases"),
    [
        (WRITTEN, 3, ["Which city is the capital?", "Name the capital.", "What city governs?"]),
        (WRITTEN, 2, ["Which city is the capital?", "Name the capital."]),
        (WRITTEN, 4, ["Which city is the capital?", "Name the capital.", "What city governs?", "q"]),
        ("", 2, ["q", "q"]),
        ("I don't know", 1, ["q"]),
        ("1984 in what country?", 1, ["1984 in what country?"]),
    ],
)
def test_paraphrases_are_read_line_by_line(reply: str, count: int, paraphrases: list[str]) -> None:
    assert read_paraphrases(reply, count, "q") == paraphrases


def test_the_majority_answers() -> None:
    model = generator(
        {"Which city is the capital?": "Lyon", "Name the capital.": "Paris", "What city governs?": "paris."}
    )
    answer = Paraphrasing(model, paraphrases=3).answer("q", ["a", "b"])
    assert answer.text == "Paris"
    assert len(model.prompts) == 1 + 3
    assert all(prompt.passages == ("a", "b") for prompt in model.prompts[1:])
    assert answer.details["answers"] == ["Lyon", "Paris", "paris."]


def test_a_tie_goes_to_the_first_and_abstentions_have_no_vote() -> None:
    model = generator({"Name the capital.": "Lyon", "What city governs?": "Paris"})
    assert Paraphrasing(model, paraphrases=3).answer("q", ["a"]).text == "Lyon"
    assert Paraphrasing(generator({}), paraphrases=3).answer("q", ["a"]).abstained


def test_one_paraphrase_takes_two_calls() -> None:
    model = generator({})
    Paraphrasing(model, paraphrases=1).answer("q", ["a"])
    assert len(model.prompts) == 2


def test_each_paraphrase_retrieves_for_itself() -> None:
    questions_asked: list[str] = []

    def retriever(question: str) -> list[object]:
        questions_asked.append(question)
        return [] if "Name" in question else [f"about {question}", {"text": "shared"}, Passage("third")]

    model = generator({"Name the capital.": "from memory"})
    answer = Paraphrasing(model, paraphrases=2, retriever=retriever).answer("q", ["poison"])
    assert sorted(questions_asked) == ["Name the capital.", "Which city is the capital?"]
    assert [call.kind for call in answer.calls] == ["generate", "retrieve", "retrieve", "generate", "generate"]
    first, second = sorted(model.prompts[1:], key=lambda prompt: prompt.task)
    assert first.passages == ("about Which city is the capital?", "shared", "third")
    assert second.task == "answer-alone", "nothing was retrieved for it"
    asynchronous = asyncio.run(Paraphrasing(model, paraphrases=2, retriever=retriever).aanswer("q", ["poison"]))
    assert asynchronous.text == answer.text == "from memory"


def test_a_failing_retriever_is_a_model_error_and_a_strange_one_an_input_error() -> None:
    def broken(question: str) -> list[str]:
        raise KeyError(question)

    with pytest.raises(ModelError, match=r"'broken' raised KeyError"):
        Paraphrasing(generator({}), retriever=broken).answer("q", ["a"])
    with pytest.raises(InputError, match="no text"):
        Paraphrasing(generator({}), retriever=lambda question: [7]).answer("q", ["a"])


def test_the_extractive_reader_writes_no_paraphrase_so_the_question_stands() -> None:
    answer = Paraphrasing(ExtractiveReader()).answer(
        "What is the capital of France?", ["The capital of France is Paris."]
    )
    assert answer.details["paraphrases"] == ["What is the capital of France?"] * 5
    assert "Paris" in answer.text
    assert len(answer.calls) == 2, "equal prompts are asked once"


def test_paraphrases_have_a_range():
    assert_range(Paraphrasing, "paraphrases", 1, 100)


@pytest.mark.parametrize(("count", "asked"), [(1, "1 paraphrase "), (3, "3 paraphrases ")])
def test_as_many_are_asked_for_as_are_wanted_with_room_for_each(count: int, asked: str) -> None:
    model = generator({})
    Paraphrasing(model, paraphrases=count).answer("q", ["a"])
    prompt = model.prompts[0]
    assert asked in prompt.text() and prompt.max_tokens == 64 * count


def test_marks_before_a_line_are_no_part_of_it_and_a_long_one_is_cut() -> None:
    reply = f"12) one?\n3: two?\n* three?\n\u2022 'four?'\n-five?\n1234. six?\n{'x' * 1001}"
    lines = ["one?", "two?", "three?", "four?", "-five?", "1234. six?", "x" * 1000]
    assert read_paraphrases(reply, 7, "q") == lines


def test_all_passages_are_kept_because_the_question_is_rephrased() -> None:
    answer = Paraphrasing(generator({}), paraphrases=2).answer("q", ["a", "b"])
    assert answer.screening.kept_indices == (0, 1)
    assert {str(v.reason) for v in answer.screening.verdicts} == {"no passage is dropped: the question is rephrased"}
    assert answer.details["paraphrases"] == ["Which city is the capital?", "Name the capital."]
