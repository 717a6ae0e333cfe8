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
    passages_of,
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


def sections_of(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(section.heading, section.paragraphs) for section in document_of("a.md", text).sections]


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        ("", []),
        ("One\ntwo\n\nthree", [("", ("One two", "three"))]),
        ("# A #\none\n###### B {#anchor}\ntwo", [("A", ("one",)), ("B", ("two",))]),
        ("## A { #anchor }\none", [("A", ("one",))]),
        ("####### A\n#B", [("", ("####### A #B",))]),
        ("# A\n# B\none", [("A", ()), ("B", ("one",))]),
        ("Title\n===\none", [("Title", ("one",))]),
        ("Title\n---\none", [("Title", ("one",))]),
        ("no title\n==\none", [("", ("no title == one",))]),
        ("no title\n=-=\none", [("", ("no title", "one"))]),
        ("(no title)\n---\none", [("", ("(no title)", "one"))]),
        (f"{'x' * 119}\n---\none", [("x" * 119, ("one",))]),
        (f"{'x' * 120}\n---\none", [("", ("x" * 120, "one"))]),
        ("one\n***\ntwo\n**\nthree", [("", ("one", "two ** three"))]),
        ("one\n- two\nmore\n* three\n+ four\n> five", [("", ("one", "two more", "three", "four", "five"))]),
        ("1. one\n2) two\n3 three\nfour 4", [("", ("1. one", "2) two", "3 three four 4"))]),
        ("one\n| a | b |\n| c | d |\ntwo", [("", ("one", "| a | b |", "| c | d |", "two"))]),
        ("one\n```\n# code\n```\n~~~\ncode\n~~~\ntwo", [("", ("one two",))]),
        ("one\n/// note\n::: note\n<!-- note -->\n.. note\n{* x *}\n{% x %}\n{{ x }}\ntwo", [("", ("one two",))]),
    ],
)
def test_a_text_is_cut_at_headings_and_into_paragraphs(text: str, sections: list[tuple[str, tuple[str, ...]]]) -> None:
    assert sections_of(text) == sections


def test_the_title_is_what_was_given_or_else_the_first_heading() -> None:
    text = "Before.\n\n# First\n\n# Second\n"
    assert (document_of("a", text).title, document_of("a", text, "Given").title) == ("First", "Given")
    assert document_of("a", "No heading.").title == ""


def test_paragraphs_are_joined_to_passages_of_at_most_1200_characters() -> None:
    def lengths(*paragraphs: int) -> list[list[int]]:
        text = "\n\n".join("x" * count for count in paragraphs)
        return [[len(part) for part in passage.text.split("\n")] for passage in passages_of(document_of("a", text))]

    assert lengths(700, 500, 10) == [[700, 500], [10]]
    assert lengths(700, 501) == [[700], [501]]
    assert lengths(10, 5000, 10) == [[10], [5000], [10]], "a longer paragraph stands alone"
    assert lengths(5000) == [[5000]]


def test_a_passage_has_its_place_and_the_headings_above_it() -> None:
    name = "x" * 301
    document = document_of(name, "Before.\n\n# Title\n\none\n\n## Part\n\ntwo\n")
    passages = passages_of(document)
    assert [(p.id, p.title, p.text) for p in passages] == [
        (f"{name}#0", "Title", "Before."), (f"{name}#1", "Title", "one"), (f"{name}#2", "Title: Part", "two"),
    ]  # fmt: skip
    assert all(p.source is not None and len(p.source) <= 300 and p.source != name for p in passages)
    (bare,) = passages_of(document_of("x" * 300, "No heading."))
    assert (bare.title, bare.source) == (None, "x" * 300)


def falses(answer: str, text: str = "") -> set[str | None]:
    """Every false answer that some seed draws."""
    fact = Fact("gap", "q?", answer, answer)
    return {false_answer(fact, text, [], np.random.default_rng(seed)) for seed in range(200)}


@pytest.mark.parametrize("year", [1500, 1993, 2100])
def test_a_false_year_is_a_few_years_off(year: int) -> None:
    off = {abs(int(str(false)) - year) for false in falses(str(year))}
    assert (min(off), max(off)) == (2, 9)


@pytest.mark.parametrize("number", [1499, 2101])
def test_another_number_of_four_digits_is_no_year(number: int) -> None:
    assert all(int(str(false)) >= 2 * number for false in falses(str(number)))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("2 days", "1 days, 3 days, 4 days, 6 days, 8 days, 10 days, 20 days"),
        ("3 users", "6 users, 9 users, 12 users, 15 users, 30 users"),
        ("1.5 m", "0.4 m, 0.8 m, 2.2 m, 3.0 m, 4.5 m, 6.0 m, 7.5 m, 15.0 m"),
        (
            "about $250, net",
            "about $125, net; about $375, net; about $500, net; about $750, net; about $1,000, net; about $1,250, net; about $2,500, net",
        ),
        ("0 days", "1 days"),
        ("20m²", "5m², 10m², 30m², 40m², 60m², 80m², 100m², 200m²"),
        ("5²", "10², 15², 20², 50²"),
    ],
)
def test_a_false_number_is_a_plausible_multiple_as_exact_as_the_true_one(answer: str, expected: str) -> None:
    allowed = set(expected.split("; " if ";" in expected else ", "))
    assert falses(answer) <= allowed and len(falses(answer)) > len(allowed) / 2
    assert falses(answer, text="; ".join(allowed)).isdisjoint(allowed), "none stands in the passage"


@pytest.mark.parametrize("answer", ["v1.2.3", "1.2.9", "9:30", "2024-01-05", "10-20"])
def test_of_a_version_a_time_and_a_range_the_last_digit_is_false(answer: str) -> None:
    found = falses(answer)
    assert {str(false)[:-1] for false in found} == {answer[:-1]} and answer not in found
    assert all(str(false)[-1].isdigit() for false in found) and len(found) > 5


def test_yes_is_answered_with_no_however_it_is_written() -> None:
    for said, opposite in (("Yes!", "No"), ("no.", "Yes"), ("NO", "Yes")):
        assert falses(said) == {opposite}


def test_neither_nothing_nor_what_the_passage_says_in_other_letters_tells_apart() -> None:
    assert tells_apart("Ada", "Jan", "Ada")
    assert not tells_apart("Ada", " ", "Ada")
    assert not tells_apart("Ada", "Jan", "Ada and JAN")
    assert not tells_apart("Ada", "Ada Byron", "Ada")


def town(index: int, facts: int) -> str:
    return "\n\n".join(f"The town number of place {'abcdefgh'[index]}{'x' * i} is {100 + i}." for i in range(facts))


def test_one_document_gives_200_questions_at_most_and_100_are_made_by_default() -> None:
    documents = [document_of("a.md", town(0, 201))]
    assert len(make_questions(documents, 1000).questions) == 200
    assert len(make_questions(documents).questions) == 100
    assert make_questions(documents).questions == make_questions(documents, 100, seed=0).questions


def test_documents_take_turns_and_what_needs_no_gap_comes_first() -> None:
    entries = "# Ports {}\n\nWeb: {}\n\n# May I pay?\n\nYes.\n\n"
    texts = [
        entries.format(name, number) + town(index, 3) for index, (name, number) in enumerate([("A", 81), ("B", 82)])
    ]
    texts[1] = texts[1].replace("May I pay?", "May I leave?")
    made = make_questions([document_of(f"{i}.md", text) for i, text in enumerate(texts)]).questions
    assert [one.fact.kind for one in made] == ["answer"] * 2 + ["value"] * 2 + ["gap"] * 6
    sources = [str(one.passage.source) for one in made]
    assert all(sorted(sources[i : i + 2]) == ["0.md", "1.md"] for i in range(0, 10, 2)), "one of each in turn"


def test_a_question_is_a_row_with_its_rule_and_proof() -> None:
    (one, other) = make_questions([document_of("a.md", town(0, 2))], 2).questions
    row = one.row()
    assert row["id"].startswith("q-") and len(row["id"]) == 14 and row["id"] != other.row()["id"]
    assert (row["rule"], row["proof"]) == ("gap", one.fact.proof) and row["proof"] in one.passage.text
    (gold,) = row["passages"]
    assert (gold["label"], gold["text"], gold["source"]) == ("gold", one.passage.text, "a.md")


def test_what_cannot_be_asked_is_counted_in_the_error() -> None:
    with pytest.raises(InputError, match=r"of 2 documents with 3 passages: .*; give more documents"):
        make_questions([document_of("a", "Nothing.\n\n# Here\n\nNor there."), document_of("b", "Nor here.")])


def test_files_are_written_into_a_folder_that_may_be_there(tmp_path: Path) -> None:
    made = make_questions([document_of("a.md", town(0, 2))])
    for _ in range(2):
        path = write_questions(made, tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "questions.jsonl" and len(path.read_text().splitlines()) == 2
