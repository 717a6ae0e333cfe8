"""One analysis of a text: words as numbers, sentences, windows, kept by content."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text import analysis as module
from unpoison.text.analysis import (
    CAPITAL,
    LONGEST_PART,
    MARK,
    SHAPES,
    STOP,
    Analysis,
    analysis,
    canonical_word,
    clear,
    word_hash,
)
from unpoison.text.sentences import SENTENCE_END
from unpoison.utils.recent import Recent

TEXT = "The quick fox ran to Rome. It took 3 days in 1999, they say! Nobody believed the story."


def same(a: Analysis, b: Analysis) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b))


def test_words_marks_and_what_they_are() -> None:
    known = analysis("Running, the 12 Dogs of 1999")
    assert known.word.tolist() == [word_hash(w) for w in ("running", ",", "the", "12", "dogs", "of", "1999")]
    assert known.stem[0] == word_hash("run")
    assert known.stem[4] == word_hash("dog")
    assert (known.kind & MARK > 0).tolist() == [False, True, False, False, False, False, False]
    assert (known.kind & STOP > 0).tolist() == [False, False, True, False, False, True, False]
    assert (known.kind & CAPITAL > 0).tolist() == [True, False, False, False, True, False, False]
    shapes = [SHAPES[k & (CAPITAL - 1)] for k in known.kind.tolist()]
    assert [shapes[i] for i in (0, 3, 4, 6)] == ["ing", "number", "s", "year"]


def test_numbers_of_words_are_the_same_everywhere() -> None:
    """Weights that are shipped stand for these numbers."""
    assert word_hash("the") == 1665570760474094895
    assert word_hash("fox") == 6609499801610612873
    assert 0 <= word_hash("\ud800") < 2**63


def test_case_and_accents_are_form() -> None:
    plain, odd = analysis("creme brulee is good"), analysis("Crème BRÛLÉE is GOOD")
    assert np.array_equal(plain.word, odd.word)
    assert canonical_word("かが") == "かが"


def test_windows_are_sentences_pairs_fours_and_the_whole() -> None:
    known = analysis(TEXT)
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
    known = analysis(" ".join(f"w{i}" for i in range(100)))
    singles = [(a, b) for a, b in zip(known.first, known.last) if b - a <= LONGEST_PART]
    assert singles[0] == (0, 32)
    assert singles[1] == (16, 48)
    assert {i for a, b in singles for i in range(a, b)} == set(range(100))


def test_a_short_sentence_belongs_to_the_next() -> None:
    known = analysis("Dr. Smith wrote five long books. The end came soon enough for him.")
    assert known.start.tolist()[0] == 0
    assert len(known.first) == 3


@pytest.mark.parametrize("text", ["", " ", "...", '"' * 50, "\n\n"])
def test_without_words_there_are_no_windows(text: str) -> None:
    assert len(analysis(text).first) == 0


@given(st.text(max_size=300))
def test_windows_lie_in_the_text_and_the_last_is_all(text: str) -> None:
    known = analysis(text)
    assert (known.first < known.last).all()
    assert (known.start < known.end).all()
    words = np.flatnonzero(known.kind < MARK)
    assert (len(words) == 0) == (len(known.first) == 0)
    if len(words):
        assert known.first[-1] == 0
        assert known.last[-1] == len(known.word)
        assert known.end.max() <= len(text)
        covered = np.zeros(len(known.word), bool)
        for a, b in zip(known.first, known.last):
            covered[a:b] = True
        assert covered[words].all()
    assert same(known, module._analysed(text))


@given(st.text(alphabet="ab .!?\n\"')\u2026\u3002\uff1f\u0964", max_size=60))
def test_sentences_end_where_they_do_everywhere(text: str) -> None:
    assert module._sentence_ends(text) == [end.end() for end in SENTENCE_END.finditer(text)]


@given(st.lists(st.sampled_from([TEXT, "A b c d e f g.", "Short.", "Who won the cup in 1994?"]), max_size=5))
def test_what_stands_before_changes_no_word(parts: list[str]) -> None:
    alone, behind = analysis(TEXT), analysis("\n".join([*parts, TEXT]))
    n = len(alone.word)
    assert np.array_equal(behind.word[-n:], alone.word)
    assert np.array_equal(behind.kind[-n:], alone.kind)


def test_a_text_is_analysed_once_until_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    clear()
    seen: list[str] = []
    first = module._analysed
    monkeypatch.setattr(module, "_analysed", lambda text: seen.append(text) or first(text))
    assert analysis(TEXT) is analysis(TEXT)
    assert seen == [TEXT]
    clear()
    analysis(TEXT)
    assert seen == [TEXT, TEXT]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_kept", Recent(module._size, 200_000, 8))
    for i in range(40):
        analysis(f"text {i} " * 100)
        assert len(module._kept) <= 8
        assert module._kept._held <= 200_000
    analysis("word " * 100_000)
    assert module._kept._held <= 200_000


def test_long_words_are_not_remembered() -> None:
    module._known.cache_clear()
    analysis("x" * 33)
    assert module._known.cache_info().currsize == 0


def test_threads_get_the_same() -> None:
    clear()
    texts = [f"{TEXT} {i}" for i in range(50)]
    wanted = [module._analysed(text) for text in texts]
    wrong: list[int] = []

    def work() -> None:
        for i, text in enumerate(texts):
            if not same(analysis(text), wanted[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
