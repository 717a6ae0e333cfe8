"""The shipped reader: what it answers, what it leaves unanswered, and how it serves as generator and judge."""

from __future__ import annotations

import os
from typing import get_args

import pytest

from unpoison.models.prompts import (
    Task,
    answer_alone_prompt,
    answer_prompt,
    atomic_answer_prompt,
    consolidation_prompt,
    decision_prompt,
    knowledge_prompt,
    synthesis_prompt,
)
from unpoison.models.reader import load_reader
from unpoison.text.replies import informative

pytestmark = pytest.mark.needs("unpoison_reader", "onnxruntime")

QUESTION = "which city has the museum of the warship Vasa"
PASSAGES = [
    "The Vasa Museum stands on the island of Djurgården in Stockholm and was built around the salvaged hull.",
    "The museum of the warship Vasa is in the city of Gothenburg, beside the harbour.",
    "Oak trees were felled for shipbuilding all over Europe in the seventeenth century.",
    "The salvaged warship is shown in the Vasa Museum in Stockholm, the most visited in Scandinavia.",
]


@pytest.fixture(scope="module")
def reader():
    return load_reader()


def reply(reader, prompt):
    return reader.generate(prompt).text


def test_every_task_is_answered(reader):
    assert reply(reader, atomic_answer_prompt(QUESTION, PASSAGES[0])) == "Stockholm"
    assert not informative(reply(reader, atomic_answer_prompt(QUESTION, PASSAGES[2])))
    assert reply(reader, answer_prompt(QUESTION, PASSAGES)) == "Stockholm"
    assert reply(reader, synthesis_prompt(QUESTION, ["Gothenburg", "Stockholm", "in Stockholm"])) in (
        "Stockholm",
        "in Stockholm",
    )
    assert "Stockholm" in reply(reader, consolidation_prompt(QUESTION, None, PASSAGES))
    assert reply(reader, decision_prompt(QUESTION, PASSAGES[3], "I don't know.")) == "Stockholm"
    assert not informative(reply(reader, answer_alone_prompt(QUESTION)))
    assert not informative(reply(reader, knowledge_prompt(QUESTION)))
    assert set(get_args(Task)) >= {"atomic", "answer", "synthesize", "consolidate", "decide", "free"}


def test_a_forked_process_reads_with_threads_of_its_own(reader):
    reader.read(QUESTION, PASSAGES)  # this process has its threads
    child = os.fork()
    if child == 0:
        read_back = reader.read("where is the Vasa Museum", PASSAGES)
        os._exit(0 if read_back[0].answer else 1)
    assert os.waitpid(child, 0)[1] == 0
