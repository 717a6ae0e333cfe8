"""Words, numbers and marks of many texts at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.pieces import BUCKETS, MAX_ODD, MAX_WORD_LETTERS, SHAPES, Tokens, hashes, tokens

NOTHING = np.zeros(2461, np.uint8)
"""No triple of letters is known."""


def cut(texts: list[str], triples: np.ndarray = NOTHING) -> tuple[list[str], Tokens]:
    found, whole = tokens(texts, triples), "\n".join(texts)
    return [whole[a:b] for a, b in zip(found.start, found.end)], found


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello, world...", ["Hello", ",", "world", "..."]),
        ("camelCase HTMLPage", ["camel", "Case", "HTMLPage"]),
        ("a1 22b", ["a", "1", "22", "b"]),
        ("!?--", ["!", "?", "--"]),
        ("e\u0301t\u00e9", ["e\u0301t\u00e9"]),
        ("\u6771\u4eac 5", ["\u6771\u4eac", "5"]),
        ("", []),
        (" \n\t", []),
    ],
)
def test_runs_of_letters_digits_and_marks(text: str, pieces: list[str]) -> None:
    assert cut([text])[0] == pieces


def test_of_each_token_its_text_and_whether_it_is_a_latin_word() -> None:
    pieces, found = cut(["a Bee", "", "c4 \u03b1\u03b2"])
    assert pieces == ["a", "Bee", "c", "4", "\u03b1\u03b2"]
    assert found.text.tolist() == [0, 0, 2, 2, 2]
    assert found.latin.tolist() == [False, True, False, False, False]  # two letters or more


def test_equal_words_have_one_hash_in_every_text_and_case() -> None:
    _, found = cut(["The boat, the boats", "BOAT"])
    the, boat, _, again, boats, large = found.word
    assert (the, boat) == (again, large)
    assert len({the, boat, boats}) == 3
    text = "xx boat"
    assert hashes(text, np.array([3]), np.array([7]))[0] == boat
    assert cut(["\U0001d41a\U0001d41b"])[1].word[0] == cut(["\U0001d41c\U0001d41d"])[1].word[0]  # beyond the plane


def test_beginnings_and_endings_are_of_three_letters() -> None:
    _, found = cut(["ferry ferries merry it"])
    assert found.first[0] == found.first[1] != found.first[2]
    assert found.last[0] == found.last[2] != found.last[1]
    assert ((found.first >= 0) & (found.first < BUCKETS) & (found.last >= 0) & (found.last < BUCKETS)).all()


def test_a_build_is_the_length_and_the_unknown_triples() -> None:
    def build(word: str, triples: np.ndarray = NOTHING) -> tuple[int, int]:
        return divmod(int(cut([word], triples)[1].build[0]), MAX_ODD + 1)

    assert build("at") == (2, 0)
    assert build("cat") == (3, 1)
    assert build("caterpillars") == (12, MAX_ODD)
    assert build("a" * 40) == (MAX_WORD_LETTERS - 1, MAX_ODD)
    known = NOTHING.copy()
    index = (2 * 27 + 0) * 27 + 19  # c, a, t
    known[index >> 3] |= 1 << (index & 7)
    assert build("cat", known) == (3, 0)
    assert build("cats", known) == (4, 1)
    assert build("caf\u00e9") == (4, 1)  # of plain letters alone
    assert build("123") == (0, 0)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("word Word WORD", [0 + 2 * SHAPES, 1 + SHAPES, 2 + SHAPES]),
        ("a A", [3 + 2 * SHAPES, 4 + SHAPES]),
        ("caf\u00e9", [5 + 2 * SHAPES]),
        ("1 12345678", [7 + 2 * SHAPES, 11 + SHAPES]),
        ("!", [12 + 2 * SHAPES]),
        ("x~", [3 + 2 * SHAPES, 43]),
        ("x\u2014", [3 + 2 * SHAPES, 45]),
        ("x.. --", [3 + 2 * SHAPES, 47, 46 + SHAPES]),
        ("\u6771 \u6771\u4eac\u90fd\u6771", [49 + 2 * SHAPES, 51 + SHAPES]),
        ("x\ny", [3 + 2 * SHAPES, 3 + 2 * SHAPES]),
    ],
)
def test_a_shape_is_the_kind_and_what_stands_before(text: str, shapes: list[int]) -> None:
    assert cut([text])[1].shape.tolist() == shapes


@given(st.lists(st.text("aB\u00e9 1.,\n\u4eac\U0001d41a", max_size=20), min_size=1, max_size=4))
def test_what_a_text_is_cut_into_hangs_on_no_other(texts: list[str]) -> None:
    together = cut(texts)[1]
    for number, text in enumerate(texts):
        alone, own = cut([text])[1], together.text == number
        for name in ("word", "first", "last", "build", "latin"):
            assert getattr(together, name)[own].tolist() == getattr(alone, name).tolist()


def test_what_the_detector_was_trained_on_is_what_it_sees() -> None:
    """Its weights belong to these numbers: other ones would make it judge at random."""
    _, found = cut(["Ferries, 12 to Zoé!"])
    assert found.word.tolist() == [
        5084010181293679761, 14336301672359367383, 10153888410244017145, 10547864526798671688, 15102889722632943436,
        10012017082506653062,
    ]  # fmt: skip
    assert found.first.tolist() == [123, 671, 712, 920, 362, 551]
    assert found.last.tolist() == [391, 671, 737, 990, 105, 551]


@pytest.mark.parametrize(
    ("sign", "pieces"),
    [
        ("\u2000", ["a", "b"]), ("\u200a", ["a", "b"]), ("\u200b", ["a", "\u200b", "b"]), ("\u2028", ["a", "b"]),
        ("\u3000", ["a", "b"]),
        ("\u2bff", ["a", "\u2bff", "b"]), ("\u3004", ["a", "\u3004", "b"]), ("\uf8ff", ["a", "\uf8ff", "b"]),
        ("\u1eff", ["a\u1effb"]),
        ("\ufe6f", ["a", "\ufe6f", "b"]), ("\uff0f", ["a", "\uff0f", "b"]), ("\u0300", ["a\u0300b"]),
        ("\u036f", ["a\u036fb"]),
        ("\u2c60", ["a\u2c60b"]), ("\u024f", ["a\u024fb"]), ("\u00b2", ["a", "\u00b2", "b"]), ("\x1f", ["a", "b"]),
        ("\x7f", ["a", "\x7f", "b"]),
    ],
)  # fmt: skip
def test_what_kind_a_character_is_at_the_ends_of_the_blocks(sign: str, pieces: list[str]) -> None:
    assert cut([f"a{sign}b"])[0] == pieces
