"""The built-in judge."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.models import LexicalNLI

JUDGE = LexicalNLI()
LABELS = ["entailment", "neutral", "contradiction"]
WHERE = "Where is the Eiffel Tower?"


def label(premise, hypothesis):
    return LABELS[int(JUDGE.judge([(premise, hypothesis)])[0].argmax())]


def answers(first, second, question=WHERE):
    return label(f"Question: {question} Answer: {first}", f"Question: {question} Answer: {second}")


@given(st.lists(st.tuples(st.text(max_size=80), st.text(max_size=80)), max_size=6))
def test_any_pairs_give_probabilities_and_every_text_entails_itself(pairs):
    judged = JUDGE.judge([*pairs, *((first, first) for first, _ in pairs)])
    assert judged.shape == (2 * len(pairs), 3)
    assert np.all(judged >= 0)
    assert np.allclose(judged.sum(axis=1), 1)
    assert np.all(judged[len(pairs) :].argmax(axis=1) == 0)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Paris", "paris.", "entailment"),
        ("Paris", "The Eiffel Tower is in Paris.", "entailment"),
        ("Paris, France", "Paris", "entailment"),
        ("Paris", "Paris, France", "entailment"),
        ("São Paulo", "Sao Paulo", "entailment"),
        ("Paris", "Rome", "contradiction"),
        ("The Eiffel Tower is in Paris.", "The Eiffel Tower is in Rome.", "contradiction"),
        ("It is not in Paris.", "It is in Paris.", "contradiction"),
        ("1889", "1,889", "entailment"),
        ("1889", "1890", "contradiction"),
        ("two", "2", "entailment"),
        ("two", "three", "contradiction"),
        ("Yes", "Yes.", "entailment"),
        ("Yes", "No", "contradiction"),
        ("東京", "東京", "entailment"),
        ("東京", "大阪", "contradiction"),
        (
            "It was assembled from puddled iron by a company of engineers for an exhibition",
            "Visitors praise its restaurants, its lifts, its lights at dusk and its view of the river",
            "neutral",
        ),
    ],
)
def test_answers_to_the_same_question(first, second, expected):
    assert answers(first, second) == expected


def test_answers_to_different_questions_are_compared_as_bare_statements():
    first, second = "Question: Where is the tower? Answer: Paris", "Question: Who built the bridge? Answer: Eiffel"
    assert label(first, second) == "neutral"


@pytest.mark.parametrize(
    ("premise", "hypothesis", "expected"),
    [
        ("Two dogs are playing in the garden", "Two dogs are playing", "entailment"),
        ("Two dogs are playing", "Two dogs are playing in the garden", "neutral"),
        ("Nobody came", "Nobody came late", "entailment"),
        ("Nobody came late", "Nobody came", "neutral"),
        ("A dog is barking", "There is no dog barking", "contradiction"),
        ("A dog isn't barking", "A dog is barking", "contradiction"),
        ("The bridge was opened in 1890", "The bridge was opened in 1894", "contradiction"),
        ("A tourist takes pictures in China", "A tourist takes pictures in Malaysia", "contradiction"),
        ("The capital of France is large", "A skilled cook slices onions", "neutral"),
    ],
)
def test_bare_statements(premise, hypothesis, expected):
    assert label(premise, hypothesis) == expected


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "accuracy"), [("sick", 0.66), ("med", 0.61), ("breaking", 0.70)])
def test_the_documented_accuracy_is_reached(shared_data, name, accuracy):
    rows = [json.loads(line) for line in (shared_data / f"nli_{name}.jsonl").read_text("utf-8").splitlines()]
    judged = JUDGE.judge([(row["premise"], row["hypothesis"]) for row in rows]).argmax(axis=1)
    assert np.mean([LABELS[i] == row["label"] for i, row in zip(judged, rows)]) > accuracy
