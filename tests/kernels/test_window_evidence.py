from __future__ import annotations

import numpy as np
import pytest

from unpoison.defenses.guard.windows import WindowModel
from unpoison.kernels.window_evidence import COLUMNS, window_signs

QUESTION = "where is the refund desk of the shop"
STYLE = WindowModel.load().style


def column(name, texts, question=QUESTION):
    return window_signs(question, texts, STYLE).columns[:, COLUMNS.index(name)]


def test_coverage_is_the_share_of_the_questions_telling_words() -> None:
    texts = ["The refund desk stands in Lyon. It is big and blue and new."]
    # refund, desk, shop are telling: two in the first sentence, none in the second, two in both together.
    assert column("coverage", texts).tolist() == pytest.approx([2 / 3, 0, 2 / 3])


def test_a_word_that_both_sentences_of_a_window_have_counts_once() -> None:
    texts = ["The refund desk is open. A refund desk is here."]
    coverage, news = column("coverage", texts), column("news", texts)
    assert coverage.tolist() == pytest.approx([2 / 3] * 3)
    assert np.expm1(news[2]) == pytest.approx(np.expm1(news[0]) + np.expm1(news[1]))


def test_density_is_the_questions_share_of_the_telling_words() -> None:
    assert column("density", ["Refund desk: Lyon, Paris, Rome."]).tolist() == pytest.approx([2 / 5])


def test_echo_counts_runs_of_three_words_of_the_question() -> None:
    assert column("echo", [f"{QUESTION}. Lyon is where you will find it."]).max() == pytest.approx(1)
    assert column("echo", ["The refund desk, they say, is in Lyon."]).max() == pytest.approx(1 / 6)


def test_a_passage_without_a_word_of_the_question_is_looked_at_all_the_same() -> None:
    signs = window_signs(QUESTION, ["Lyon has been the seat since 1974.", "The refund desk is here today."], STYLE)
    assert set(signs.owner.tolist()) == {0, 1}


def test_nothing_but_the_window_and_the_question_counts() -> None:
    """Company and surroundings change no number: the proof of two properties of the threat model."""
    text = "The refund desk of the shop has been in Lyon since 1974."
    alone = window_signs(QUESTION, [text], STYLE)
    company = ["The shop is nice, and the refund desk too.", f"{QUESTION}. Rome.", text]
    together = window_signs(QUESTION, [*company, text], STYLE)
    padded = window_signs(QUESTION, [f"A shop is a place where people buy. {text} Roses and tulips are red."], STYLE)
    assert (together.columns[together.owner == 3] == alone.columns).all()
    assert any((row == alone.columns[0]).all() for row in padded.columns)


def test_a_stop_word_elsewhere_makes_none_of_its_relatives() -> None:
    """ "interest" is a stop word, "interests" is none, and the stem is one: no other text may decide which it is."""
    question, text = "what are the interests of the bank", "The bank called its interests moving since 1974."
    alone = window_signs(question, [text], STYLE)
    together = window_signs(question, [text, "An interest of mine is to call and to move."], STYLE)
    assert (together.columns[together.owner == 0] == alone.columns).all()


@pytest.mark.parametrize("texts", [[""], ["."], ["", "The refund desk."], [" \n "]])
def test_texts_without_words_have_no_window(texts) -> None:
    signs = window_signs(QUESTION, texts, STYLE)
    assert 0 not in signs.owner.tolist()
    assert np.isfinite(signs.columns).all()
