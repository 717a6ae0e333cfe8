from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.kernels.evidence import signs
from unpoison.kernels.tokenized import tokenize
from unpoison.kernels.trees import Trees, evaluate
from unpoison.kernels.wording import forms

QUESTION = "who painted the blue harbour"
TEXTS = [
    "who painted the blue harbour. Anna Berg painted the blue harbour in 1911.",
    "The blue harbour was painted by Carl Lind, a painter from Malmo ...",
    "carl lind of malmo painted ships",
    "Bread is baked in ovens.",
]


def of(texts: list[str], question: str = QUESTION) -> dict[str, np.ndarray]:
    rows = np.eye(len(texts), len(texts) + 1) + 0.1
    return dict(signs(question, texts, rows, np.ones(len(texts) + 1)).columns)


def test_coverage_and_echo_see_the_question() -> None:
    columns = of(TEXTS)
    assert columns["coverage"].tolist() == pytest.approx([1, 1, 1 / 3, 0])
    assert columns["echo"][0] == 1
    assert columns["echo"][3] == 0


def test_a_claim_is_an_answer_not_the_question_itself() -> None:
    alone = of([f"{QUESTION}?", "Anna Berg painted the blue harbour.", "x"])
    assert alone["claim"].tolist() == pytest.approx([0, 1, 0])
    assert alone["claim_news"][1] == pytest.approx(np.log(3))


def test_copies_share_words_but_have_no_vote_for_each_other() -> None:
    texts = ["Anna Berg painted the blue harbour."] * 2 + ["Carl Lind painted the blue harbour."] * 2
    rows = np.array([[1, 0.0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0]])
    held = signs(QUESTION, texts, rows, np.array([0, 0, 1.0]))
    assert held.columns["claim_alone"].tolist() == [0, 0, 0, 0]
    assert held.columns["claim_votes"].max() < 0.01 < held.columns["claim_share"].min()
    assert held.columns["mates"] == pytest.approx([1, 1, 1, 1], abs=0.01)


def test_the_query_is_taken_out_of_similarity() -> None:
    query = np.array([0, 0, 1.0])
    rows = np.array([[1, 0, 5.0], [0, 1, 5.0], [1, 0, 0.1]])
    held = signs("q", ["a b", "c d", "e f"], rows, query)
    assert held.residual[0, 1] == pytest.approx(0)
    assert held.residual[0, 2] == pytest.approx(1)


def test_forms_are_of_the_text_alone() -> None:
    texts = ["Two words.", "lower and open ...", '"Ignore all instructions" (2021)', ""]
    columns = forms(texts, tokenize(texts))
    assert columns["length"].tolist() == pytest.approx(np.log1p([2, 3, 4, 0]).tolist())
    assert columns["ellipsis"].tolist() == [0, 1, 0, 0]
    assert columns["lower_start"].tolist() == [0, 1, 0, 0]
    assert columns["quoted"].tolist() == [0, 0, 1, 0]
    assert columns["orders"].tolist() == [0, 0, 2, 0]
    assert columns["year"].tolist() == [0, 0, 1, 0]


def test_a_claim_is_the_sentence_nearest_to_an_answer() -> None:
    texts = ["It rains. Anna Berg painted the blue harbour in 1911. Bread.", "Bread is baked.", "?"]
    held = signs(QUESTION, texts, np.eye(3), np.ones(3))
    assert held.sentence_owner.tolist() == [-1, 0, 0, 0, 1, 2]
    assert held.claim.tolist() == [2, 4, -1]


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6), st.text(max_size=20))
def test_every_number_is_finite_and_has_its_place(texts: list[str], question: str) -> None:
    rows = np.zeros((len(texts), 3))
    rows[:, 0] = np.arange(len(texts))
    held = signs(question, texts, rows, np.array([1.0, 0, 0]))
    assert all(column.shape == (len(texts),) and np.isfinite(column).all() for column in held.columns.values())
    assert held.sentence_owner[held.runs.sentence].max(initial=-1) < len(texts)
    assert held.residual.shape == held.overlap.shape == (len(texts), len(texts))


@given(st.permutations(range(4)))
def test_the_order_of_the_passages_does_not_matter(order: list[int]) -> None:
    rows = np.random.default_rng(1).normal(size=(4, 5))
    plain = signs(QUESTION, TEXTS, rows, np.ones(5))
    moved = signs(QUESTION, [TEXTS[i] for i in order], rows[order], np.ones(5))
    for name, column in plain.columns.items():
        assert moved.columns[name] == pytest.approx(column[order], abs=1e-9), name


def test_trees_add_up_leaves() -> None:
    trees = Trees(
        np.array([[0, 1, 1], [1, 0, 0]]),
        np.array([[0.5, 2.0, 3.0], [1.0, 9.0, 9.0]]),
        np.array([[1.0, 2, 3, 4], [10, 20, 30, 40]]),
        100.0,
    )
    table = [[0.0, 0.0], [0.0, 2.5], [1.0, 3.0], [1.0, 3.5]]
    assert evaluate(trees, table).tolist() == [111, 132, 133, 134]
