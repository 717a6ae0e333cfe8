"""One analysis of a text: words as numbers, sentences, windows, kept by content."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text import analysis as module
from unpoison.text.analysis import (
    CAPITAL,
    MARK,
    MAX_PART_WORDS,
    SHAPES,
    STOP,
    Words,
    analysis,
    clear,
    each,
    word_hash,
)

TEXT = "The quick fox ran to Rome. It took 3 days in 1999, they say! Nobody believed the story."


def words(text: str) -> Words:
    return analysis(text).words


def same(a: Words, b: Words) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b))


def test_words_marks_and_what_they_are() -> None:
    known = words("Running, the 12 Dogs of 1999")
    assert known.word.tolist() == [word_hash(w) for w in ("running", ",", "the", "12", "dogs", "of", "1999")]
    assert known.stem[0] == word_hash("run")
    assert known.stem[4] == word_hash("dog")
    assert (known.kind & MARK > 0).tolist() == [False, True, False, False, False, False, False]
    assert (known.kind & STOP > 0).tolist() == [False, False, True, False, False, True, False]
    assert (known.kind & CAPITAL > 0).tolist() == [True, False, False, False, True, False, False]
    shapes = [SHAPES[k & (CAPITAL - 1)] for k in known.kind.tolist()]
    assert [shapes[i] for i in (0, 3, 4, 6)] == ["ing", "number", "s", "year"]


def test_windows_are_sentences_pairs_fours_and_the_whole() -> None:
    known = words(TEXT)
    cut = [TEXT[a:b] for a, b in zip(known.start, known.end)]
    assert cut == [
        "The quick fox ran to Rome.",
        "It took 3 days in 1999, they say!",
        "Nobody believed the story.",
        "The quick fox ran to Rome. It took 3 days in 1999, they say!",
        "It took 3 days in 1999, they say! Nobody believed the story.",
        TEXT,
    ]
    assert known.sentence.max() == 2


def test_a_long_sentence_is_cut_into_pieces_that_overlap() -> None:
    known = words(" ".join(f"w{i}" for i in range(100)))
    singles = [(a, b) for a, b in zip(known.first, known.last) if b - a <= MAX_PART_WORDS]
    assert singles[0] == (0, 32)
    assert singles[1] == (16, 48)
    assert {i for a, b in singles for i in range(a, b)} == set(range(100))


@given(st.text(max_size=300))
def test_windows_lie_in_the_text_and_the_last_is_all(text: str) -> None:
    known = words(text)
    assert (known.first < known.last).all()
    assert (known.start < known.end).all()
    plain = np.flatnonzero(known.kind < MARK)
    assert (len(plain) == 0) == (len(known.first) == 0)
    if len(plain):
        assert known.first[-1] == 0
        assert known.last[-1] == len(known.word)
        assert known.end.max() <= len(text)
        covered = np.zeros(len(known.word), bool)
        for a, b in zip(known.first, known.last):
            covered[a:b] = True
        assert covered[plain].all()
    assert same(known, module._words_of([text])[0])


def lengths(seen: list[list[str]]) -> Callable[[Sequence[str]], list[int]]:
    """A judge that notes whom it was asked for."""

    def judge(texts: Sequence[str]) -> list[int]:
        seen.append(list(texts))
        return list(map(len, texts))

    return judge


def test_no_part_is_made_twice_and_the_order_is_the_callers() -> None:
    seen: list[list[str]] = []
    judge = lengths(seen)
    clear()
    assert each(["aa", "b"], judge) == [2, 1]
    assert each(["ccc", "b", "aa", "dddd"], judge) == [3, 1, 2, 4]
    assert each(["b", "b"], judge) == [1, 1]
    assert each(["e", "e"], judge) == [1, 1]
    assert each([], judge) == []
    assert seen == [["aa", "b"], ["ccc", "dddd"], ["e"]]
    clear()
    assert each(["b"], judge) == [1]
    assert seen[3:] == [["b"]]


def zeros(text: str) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(1000), np.zeros(4000)[::2]
