from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.kernels.style import (
    LONGEST_WORD,
    SHAPES,
    Runs,
    Style,
    known_to,
    resemblance,
    run_code,
    run_text,
    runs,
    word_code,
)
from unpoison.kernels.tokenized import tokenize


def texts_of(runs_found: Runs, sentence: int = 0) -> list[str]:
    return [run_text(int(code)) for code in runs_found.code[runs_found.sentence == sentence]]


def test_content_becomes_its_shape_and_the_rest_stays() -> None:
    texts = texts_of(runs(tokenize(["Paris, the loveliest city of 1999, slowly drew 42 visitors \u2192 home."])))
    singles = [run for run in texts if " " not in run and not run.startswith("=")]
    assert singles == ["|begin|", "Name", ",", "the", "~est", "word", "of", "year", ",", "~ly", "word", "number", "~s",
                       "mark", "word", ".", "|end|"]  # fmt: skip
    assert "|begin| Name ," in texts
    assert "word . |end|" in texts
    words = [run for run in texts if run.startswith("=")]
    assert words == ["=paris", "=the", "=loveliest", "=city", "=of", "=slowly", "=drew", "=visitors", "=home"]
    assert len(texts) == 17 + 16 + 15 + len(words)


def test_the_topic_does_not_matter() -> None:
    one, other = tokenize(["Rome is the capital of Italy."]), tokenize(["Lima is the capital of Peru."])
    shapes = [run for run in texts_of(runs(one)) if not run.startswith("=")]
    assert shapes == [run for run in texts_of(runs(other)) if not run.startswith("=")]


def test_runs_stay_inside_their_sentence() -> None:
    all_runs = runs(tokenize(["It is. Go!"]))
    assert not any("|end| |begin|" in run for i in (0, 1) for run in texts_of(all_runs, i))
    assert texts_of(all_runs, 1)[:4] == ["|begin|", "go", "!", "|end|"]


@given(st.lists(st.text(max_size=60), max_size=4))
def test_a_run_has_one_number_and_one_name(texts: list[str]) -> None:
    all_runs = runs(tokenize(texts))
    assert len(all_runs.code) == len(all_runs.sentence)
    assert all(run_code(run_text(int(code))) == code for code in all_runs.code)


@given(st.text(alphabet="abcXYZ", min_size=1, max_size=16))
def test_a_word_has_one_number_and_one_name(word: str) -> None:
    code = word_code(word)
    assert (code == 0) == (len(word) > LONGEST_WORD)
    assert code == 0 or (run_text(code) == f"={word.lower()}" and run_code(run_text(code)) == code)


@pytest.mark.parametrize("token", ["", "don't", "na\u00efve", "x2", "\u0130stanbul", " a", "=", "\u4e2d"])
def test_what_is_no_english_word_has_no_number(token: str) -> None:
    assert word_code(token) == 0


def test_the_mark_that_stands_before_words_is_a_shape_too() -> None:
    texts = texts_of(runs(tokenize(["= = a"])))
    assert {"=", "= =", "= = a", "=a"} < set(texts)
    assert len({run_code(run) for run in texts}) == len(set(texts))


def test_shapes_are_told_apart_and_have_no_space() -> None:
    assert len(set(SHAPES)) == len(SHAPES)
    assert not any(" " in shape for shape in SHAPES)


def style(weights: dict[str, float], base: float = 0.0) -> Style:
    codes = sorted((run_code(run), weight) for run, weight in weights.items())
    return Style(np.array([c for c, _ in codes]), np.array([w for _, w in codes]), base)


def test_resemblance_is_the_mean_direction_of_the_known_runs() -> None:
    known = style({"Name": 2.0, "the": -1.0}, base=0.5)
    known_runs = known_to(known, runs(tokenize(["Rome the Rome", "the", "bread"])))
    scores = resemblance(known, known_runs.code, known_runs.sentence, 3)
    names, articles = np.log1p(2), np.log1p(1)
    first = (2 * names - articles) / np.hypot(names, articles) + 0.5
    assert scores == pytest.approx([first, 0.5 - np.log1p(1), 0.5])


def test_words_are_scaled_apart_from_runs() -> None:
    """However many runs a text has, one word says the same, and the other way round."""
    known = style({"=bread": 3.0, "the": 1.0, "is": 0.0, "~ed": 0.0})
    for text in ("bread", "the bread is baked", "the bread is cooled is cooled is cooled"):
        known_runs = known_to(known, runs(tokenize([text])))
        only = known_runs.code == np.searchsorted(known.code, word_code("bread"))
        assert resemblance(known, known_runs.code[only], known_runs.sentence[only], 1) == pytest.approx(3 * np.log1p(1))
        both = resemblance(known, known_runs.code, known_runs.sentence, 1)
        rest = resemblance(known, known_runs.code[~only], known_runs.sentence[~only], 1)
        assert both - rest == pytest.approx(3 * np.log1p(1))


def test_nothing_known_says_nothing() -> None:
    known = style({"Name": 2.0}, base=-3.0)
    known_runs = known_to(known, runs(tokenize(["", "bread is baked"])))
    assert resemblance(known, known_runs.code, known_runs.sentence, 2).tolist() == [-3.0, -3.0]
