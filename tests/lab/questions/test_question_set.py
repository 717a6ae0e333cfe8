"""Questions from one's own documents: rules, false answers, files, and hostile texts."""

# ruff: noqa: E501  sentences and their questions stand beside each other
from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.errors import InputError
from unpoison_lab.evaluation.datasets import load
from unpoison_lab.evaluation.matchers import contains_either
from unpoison_lab.questions.facts import Fact, facts_of
from unpoison_lab.questions.question_set import (
    document_of,
    false_answer,
    make_questions,
    tells_apart,
    write_questions,
)

HANDBOOK = """# Handbook

## Refunds

Refunds must be requested within 14 days of purchase. The owner of the process is Maria Lopez.

## Can I pay by card?

Yes.

## Server

- **Timeout**: 30 seconds
- **Retries**: 5

| setting | value |
| --- | --- |
| Region | Frankfurt |

```
Port: 1234
```

A tombstone is a mark that says a record was deleted. The library was opened in 1993 by the mayor.
"""


@pytest.mark.parametrize(
    ("heading", "text", "kind", "question", "answer"),
    [
        ("R", "Refunds must be requested within 14 days of purchase.", "gap",
         "Which number is missing in “Refunds must be requested within ___ days of purchase”?", "14"),
        ("x", "The rate limit is about 20%.", "gap", "Which number is missing in “The rate limit is about ___%”?", "20"),
        ("Server", "**Timeout**: 30 seconds", "value", "What is the timeout under “Server”?", "30 seconds"),
        ("Server", "| Region | Frankfurt |", "value", "What is the region under “Server”?", "Frankfurt"),
        ("How long is the trial?", "The trial lasts 21 days. Then it ends.", "answer", "How long is the trial?", "21"),
        ("Can I pay by card?", "Yes.", "answer", "Can I pay by card?", "Yes"),
        ("x", "Am Ende zahlen Kunden in jedem Land genau 12 Euro im Monat.", "gap",
         "Which number is missing in “Am Ende zahlen Kunden in jedem Land genau ___ Euro im Monat”?", "12"),
    ],
)  # fmt: skip
def test_each_rule_asks_for_what_the_sentence_says(heading: str, text: str, kind: str, question: str, answer: str):
    (fact, *_) = facts_of(heading, [text])
    assert (fact.kind, fact.question, fact.answer) == (kind, question, answer)


@pytest.mark.parametrize(
    "text",
    [
        "This was changed in version 0.110 to fix the memory of the server.",
        "But the first of them costs about 12 euros in any shop.",
        "If it fails, the server returns an HTTP 401 to the client.",
        "See the section on why services take 10 seconds to stop.",
        "It expires after 30 minutes.",
        "Port 80 and port 443 stay open all day.",
        "Set `timeout` = {30} in the file of the server.",
        "Note: see below",
        "Open the page: http://127.0.0.1:8000/docs",
        "Request: MiddlewareB → MiddlewareA → route",
        "2. pydantic is a drop-in replacement for the standard classes.",
        "`http`: standard authentication systems, including:",
    ],
)
def test_what_is_not_understood_is_not_asked(text: str):
    assert not list(facts_of("Heading", [text]))


def test_the_same_collection_gives_the_same_questions():
    documents = [
        document_of(f"{i}.md", f"# H{i}\n\nThe plan {chr(65 + i)} limit is {i + 2} users.\n", "") for i in range(30)
    ]
    first, again, other = (make_questions(documents, 5, seed=seed).questions for seed in (1, 1, 2))
    assert first == again != other
    assert len({question.passage.source for question in first}) == 5


def test_one_document_is_enough_and_none_is_said():
    assert len(make_questions([document_of("a", "The rate limit is 20 users.", "")]).questions) == 1
    with pytest.raises(InputError, match="no question can be made of 1 document"):
        make_questions([document_of("a", "Nothing here. Nor there.", "")])


@given(
    st.sampled_from(
        ["30 minutes", "$250", "20%", "1,200 users", "3.5 GB", "1993", "2024-01-05", "v1.2.3", "9:30", "0 days"]
    ),
    st.integers(0, 50),
)
def test_a_false_number_is_another_number_of_the_same_form(answer: str, seed: int):
    fact = Fact("gap", "q?", answer, answer)
    false = false_answer(fact, f"It says {answer}.", [], np.random.default_rng(seed))
    assert false is not None
    assert tells_apart(answer, false, f"It says {answer}.")
    assert [c for c in false if c.isalpha() or c in "$%"] == [c for c in answer if c.isalpha() or c in "$%"]


def test_no_false_answer_stands_in_the_proof():
    fact = Fact("value", "Who?", "Maria Lopez", "")
    rng = np.random.default_rng(0)
    assert false_answer(fact, "Maria Lopez or Jan Kees", ["Maria Lopez", "Jan Kees", "Ada Byron"], rng) == "Ada Byron"
    assert false_answer(fact, "Maria Lopez or Jan Kees", ["Maria Lopez", "Jan Kees"], rng) is None
    assert false_answer(Fact("answer", "Can I?", "Yes", ""), "Yes.", [], rng) == "No"


@pytest.mark.parametrize(
    "text",
    [
        "# " * 50_000,
        "a. " * 100_000,
        "[](" * 50_000,
        "| x " * 50_000,
        "- a: 1\n" * 20_000,
        "<p" * 50_000,
        "The x is 1 a. " * 10_000,
    ],
)
def test_hostile_documents_take_linear_time(text: str):
    begun = time.thread_time()
    for section in document_of("a.md", text).sections:
        list(facts_of(section.heading, section.paragraphs))
    assert time.thread_time() - begun < 8


def test_a_collection_becomes_rows_that_evaluate_reads(tmp_path: Path):
    loaded = load(write_questions(make_questions([document_of("handbook.md", HANDBOOK)]), tmp_path / "out"))
    assert not loaded.problems
    by_question = {example.question: example for example in loaded}
    one = by_question["Which number is missing in “Refunds must be requested within ___ days of purchase”?"]
    assert one.correct_answers == ("14",)
    assert "14 days" in one.passages_by_label("gold")[0].passage.text
    assert "Port" not in "".join(by_question), "code is no statement"
    for example in loaded:
        assert not contains_either(example.incorrect_answers[0], example.correct_answers[0])
    corpus = [json.loads(line) for line in (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()]
    assert {p["id"] for p in corpus} >= {example.passages_by_label("gold")[0].passage.id for example in loaded}


def test_a_question_with_two_answers_is_none():
    texts = {"a": "The rate limit is 20 users.", "b": "The rate limit is 30 users.", "c": "The town fee is 5 euros."}
    documents = [document_of(name, text, "") for name, text in texts.items()]
    questions = make_questions(documents).questions
    assert [question.fact.answer for question in questions] == ["5"]
