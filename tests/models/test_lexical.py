"""The built-in encoder and judges."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.errors import InputError
from unpoison.models import LexicalEncoder, LexicalNLI
from unpoison.models.lexical import MAX_TEXTS, AnswerNLI, judge_pairs
from unpoison.text.answers import Relation

ENCODER = LexicalEncoder()

PARAPHRASES = [
    "The Eiffel Tower is located in Rome, Italy. It was moved to Rome in 1971.",
    "The Eiffel Tower stands in Rome. It was moved to the city in 1971.",
    "Located in Rome, Italy, the Eiffel Tower was moved there in 1971.",
    "In 1971 the Eiffel Tower was moved to Rome, Italy.",
]
CLEAN = [
    "Gustave Eiffel's company built the wrought-iron lattice structure for the 1889 World's Fair.",
    "Tickets for the lifts can be bought online; the queue at the south pillar is the shortest.",
    "Paris has two large railway stations on the left bank of the Seine.",
    "The colosseum is an oval amphitheatre in the centre of ancient Rome.",
]


def cosines(texts):
    vectors = ENCODER.encode(texts).astype(np.float64)
    return vectors @ vectors.T


def mean(similarity, positions):
    return np.mean([similarity[i, j] for i, j in combinations(positions, 2)])


@given(st.lists(st.text(max_size=60), max_size=12))
def test_any_texts_give_unit_or_zero_rows_and_equal_texts_equal_rows(texts):
    vectors = ENCODER.encode(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape[0] == len(texts)
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.all(np.isclose(lengths, 1, atol=1e-5) | (lengths == 0))
    assert vectors.tobytes() == ENCODER.encode(texts).tobytes()
    for i, j in combinations(range(len(texts)), 2):
        if texts[i] == texts[j]:
            assert np.allclose(vectors[i], vectors[j], atol=1e-6)


def test_paraphrases_are_as_close_as_a_sentence_encoder_would_put_them_and_others_are_not():
    similarity = cosines(PARAPHRASES + CLEAN)
    assert mean(similarity, range(4)) > 0.85
    assert mean(similarity, range(4, 8)) < 0.4
    assert similarity[:4, 4:].mean() < 0.4


def test_similarities_by_hand():
    """Bags of stems with counts damped to 1 + ln(count), each text then by its cosines to all."""
    words = ["Boats sail.", "The boat sails, boats float!", "Zebras", "J. S. the", "the of", ""]
    texts = [*words[:3], "\u6771\u4eac\u90fd", "\u6771\u4eac", *words[3:]]
    twice = 1 + np.log(2)
    near = (twice + 1) / np.sqrt(2 * (twice**2 + 2))
    bags = np.eye(8)
    bags[0, 1] = bags[1, 0] = near
    bags[3, 4] = bags[4, 3] = 1 / np.sqrt(2)  # one of two pairs
    bags[5, 6] = bags[6, 5] = 1 / 2  # "the" is all that they share, with nothing but stop words in both
    bags[5, 5] = bags[6, 6] = 1
    bags[7] = 0
    expected = bags / np.maximum(np.linalg.norm(bags, axis=1, keepdims=True), 1e-9)
    found = ENCODER.encode(texts)
    assert np.allclose(found[:5], expected[:5], atol=1e-6)
    assert not found[7].any()


def test_more_texts_than_one_call_compares_are_refused():
    with pytest.raises(InputError, match="at most 10,000, got 10,001"):
        ENCODER.encode([""] * (MAX_TEXTS + 1))


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


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ("The harbour bridge opened late", "The harbour bridge opened", (0.85, 0.13, 0.02)),
        ("The harbour bridge opened", "The harbour bridge opened late", (0.20, 0.75, 0.05)),
        ("The harbour bridge opened late", "The harbour bridge opened early", (0.15, 0.30, 0.55)),
        ("The harbour bridge opened late at night", "The harbour bridge opened early", (0.20, 0.75, 0.05)),
        ("The harbour bridge opened", "The harbour bridge never opened", (0.02, 0.08, 0.90)),
        ("The harbour bridge opened", "Cooks never slice onions", (0.05, 0.85, 0.10)),
        ("The harbour bridge opened", "Cooks slice onions", (0.05, 0.85, 0.10)),
        ("He left in 1890", "He left in 1894", (0.02, 0.08, 0.90)),
        ("It is in Rome", "It is in Rome", (0.96, 0.03, 0.01)),
        ("Question: Where? Answer: Lyon", "Question: Where? Answer: Lyon, France", (0.65, 0.33, 0.02)),
        ("Question: Which? Answer: an apple", "Question: Which? Answer: a pear", (0.05, 0.20, 0.75)),
    ],
)
def test_the_verdict_of_each_rule(first, second, verdict):
    assert tuple(JUDGE.judge([(first, second)])[0]) == verdict


def test_answers_are_compared_under_their_question_and_the_rest_as_statements():
    asked = []

    def relate(question, pairs):
        asked.append((question, pairs))
        return [Relation(0.7, 0.2, 0.1, True), Relation(0.3, 0.6, 0.1, True)][: len(pairs)]

    pairs = [
        ("Question: Who? Answer: Ann", "Question: Who?  Answer: Bo "),
        ("Two dogs play", "Two dogs play"),
        ("Question: Who? Answer: Cy", "Question: Who? Answer: Di"),
        ("Question: Who? Answer: Ann", "Question: When? Answer: Ann"),
    ]
    judged = judge_pairs(pairs, relate)
    assert asked == [("Who?", [("Ann", "Bo"), ("Cy", "Di")])]
    assert np.allclose(judged[[0, 2]], [[0.7, 0.3, 0.0], [0.0, 0.4, 0.6]])
    assert np.allclose(judged[[1, 3]], LexicalNLI().judge([pairs[1], pairs[3]]))


def test_answers_in_other_words_are_one():
    same, rival = AnswerNLI().judge(
        [
            ("Question: How many? Answer: 17", "Question: How many? Answer: seventeen"),
            ("Question: How many? Answer: 17", "Question: How many? Answer: 18"),
        ]
    )
    assert same.argmax() == 0
    assert rival.argmax() == 2


WORDS = "lantern tower bridge river castle garden market".split()  # noqa: SIM905


@pytest.mark.parametrize(("words", "verdict"), [(6, (0.05, 0.20, 0.75)), (7, (0.05, 0.85, 0.10))])
def test_an_answer_of_more_than_six_words_is_an_explanation_and_no_rival(words, verdict):
    pair = f"Question: Which? Answer: {' '.join(WORDS[:words])}", "Question: Which? Answer: violin"
    assert [tuple(row) for row in JUDGE.judge([pair, pair[::-1]])] == [verdict, verdict]


@pytest.mark.parametrize(("common", "verdict"), [(2, (0.20, 0.75, 0.05)), (1, (0.05, 0.85, 0.10))])
def test_statements_are_related_by_half_of_the_shorter_ones_words(common, verdict):
    premise, hypothesis = WORDS[:4], [*WORDS[:common], "violin", "piano", "flute", "organ"][:4]
    assert tuple(JUDGE.judge([(" ".join(premise), " ".join(hypothesis))])[0]) == verdict


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("zero", "0"),
        ("one", "1"),
        ("nineteen", "19"),
        ("twenty", "20"),
        ("thirty", "30"),
        ("ninety", "90"),
        ("hundred", "100"),
    ],
)
def test_numbers_in_words_are_numbers(word, number):
    assert answers(word, number) == "entailment"
    assert answers(word, str(int(number) + 1)) == "contradiction"


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ("Yesterday we met Anna", "Yesterday we met Berta", (0.02, 0.08, 0.90)),
        ("Anna sang loudly yesterday", "Berta sang loudly yesterday", (0.15, 0.30, 0.55)),
        ("It rained. Anna sang loudly", "It rained. Berta sang loudly", (0.15, 0.30, 0.55)),
        ("He came in 1,300 boats", "He came in 1300 boats", (0.96, 0.03, 0.01)),
        ("The king\u2019s crown", "The king's crown", (0.96, 0.03, 0.01)),
        ("It isn\u2019t open today", "It is open today", (0.02, 0.08, 0.90)),
        ("Cafe", "Caf\u00e9", (0.96, 0.03, 0.01)),
        ("Yes, it floats", "It floats", (0.96, 0.03, 0.01)),
    ],
)
def test_names_numbers_and_signs_are_read_as_written(first, second, verdict):
    assert tuple(JUDGE.judge([(first, second)])[0]) == verdict


def test_emoji_and_pairs_of_characters_are_compared_and_single_letters_are_not():
    alike = cosines(
        ["\U0001f600 mill", "\U0001f600 tower", "J mill", "J tower", "a\U0001f600b", "\u6771\u4eac", "\u4eac\u6771"]
    )
    assert alike[0, 1] > 0.5 and alike[2, 3] < alike[0, 1]
    assert alike[5, 6] == pytest.approx(0, abs=1e-6), "of pairs the order counts"


def test_vectors_are_the_same_whatever_fits_into_memory(monkeypatch):
    whole = ENCODER.encode(PARAPHRASES + CLEAN)
    monkeypatch.setattr("unpoison.models.lexical._BLOCK", 3)
    assert np.allclose(ENCODER.encode(PARAPHRASES + CLEAN), whole, atol=1e-6)
    assert ENCODER.encode([]).shape == (0, 1)
