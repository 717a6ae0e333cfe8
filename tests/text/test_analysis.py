"""One analysis of a text: words as numbers, sentences, windows, kept by content."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
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
    groups,
    word_hash,
)
from unpoison.utils.lru_cache import LRUCache

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


def test_a_batch_holds_so_many_characters_or_one_longer_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOGETHER", 5)
    found = [groups(["x" * n for n in lengths]) for lengths in ([2, 3], [2, 3, 1], [6, 1, 6], [0, 6], [0, 0, 5, 0], [])]
    assert found == [[(0, 2)], [(0, 2), (2, 3)], [(0, 1), (1, 2), (2, 3)], [(0, 2)], [(0, 4)], []]
    seen: list[list[str]] = []
    clear()
    each(["aaa", "bbb", "cc"], lengths(seen))
    assert seen == [["aaa"], ["bbb", "cc"]]


SOME = ["", " ", "One.", TEXT, "Dr. A. No. Yes!", "\n\n", "w " * 40, "12 \u65e5\u672c\u8a9e\u3002 (fin)", "..."]


@given(st.lists(st.sampled_from(SOME) | st.text(max_size=60), max_size=6))
def test_texts_are_read_together_as_each_alone(texts: list[str]) -> None:
    found = module._words_of(texts) if texts else []
    assert all(same(one, module._words_of([text])[0]) for one, text in zip(found, texts, strict=True))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One two three. One two three four five.", ["One two three. One two three four five."]),
        ("One two three four. One two three four.", ["One two three four.", "One two three four."]),
        ("One two three four. One two three.", ["One two three four. One two three."]),
        ("A. B. C. D. One two three four.", ["A. B. C. D.", "One two three four."]),
        ("One. Two.", ["One. Two."]),
    ],
)
def test_a_sentence_of_fewer_than_four_words_joins_another(text: str, parts: list[str]) -> None:
    known = words(text)
    cut = [text[a:b] for a, b in zip(known.start, known.end)]
    assert cut[: len(parts)] == parts
    assert len(cut) == (1 if len(parts) == 1 else 3)


@pytest.mark.parametrize(("count", "pieces"), [(32, 1), (33, 2), (48, 2), (49, 3), (64, 3), (65, 4)])
def test_pieces_of_a_long_sentence_begin_every_sixteen_words(count: int, pieces: int) -> None:
    known = words(" ".join(f"w{i}" for i in range(count)))
    singles = [(a, b) for a, b in zip(known.first.tolist(), known.last.tolist()) if b - a <= MAX_PART_WORDS]
    assert singles == [(16 * i, min(16 * i + 32, count)) for i in range(pieces)]


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("sing", "word"), ("bring", "word"), ("string", "ing"), ("is", "word"), ("cats", "s"), ("nation", "word"),
        ("station", "tion"), ("1499", "number"), ("1500", "year"), ("2099", "year"), ("2100", "number"),
        ("19999", "number"), ("b2b", "number"), ("don't", "word"), ("houses", "s"), ("quickly", "ly"),
    ],
)  # fmt: skip
def test_the_shape_of_a_word_is_its_ending_behind_three_letters(word: str, shape: str) -> None:
    assert SHAPES[words(word).kind[0] & (CAPITAL - 1)] == shape


@pytest.mark.parametrize("length", [32, 33, 5000])
def test_a_word_of_any_length_is_read(length: int) -> None:
    assert words(f"a {'x' * length} b").word.tolist() == [word_hash(word) for word in ("a", "x" * length, "b")]


def zeros(text: str) -> tuple[np.ndarray, np.ndarray]:
    zeros.made.append(text)  # type: ignore[attr-defined]
    return np.zeros(1000), np.zeros(4000)[::2]


@pytest.mark.parametrize(("memory", "kept"), [(3 * 26_000, 3), (3 * 24_000, 2)])
def test_a_result_is_made_once_and_kept_while_there_is_memory(
    monkeypatch: pytest.MonkeyPatch, memory: int, kept: int
) -> None:
    made = zeros.made = list[str]()  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "_kept", LRUCache(lambda *_: 0, memory, 100))
    for text in ("a", "b", "c", *"cba"[:kept]):
        assert len(analysis(text).part(zeros)[0]) == 1000
    assert made == ["a", "b", "c"]
    assert len(module._kept) == kept
