from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.kernels.reading import read


def sentences(text: str) -> list[str]:
    found = read([text])
    return [
        " ".join(found.tokens[token] for token in found.token[found.token_sentence == i])
        for i in range(len(found.sentence_owner))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One is. Two are!  Three?", ["One is .", "Two are !", "Three ?"]),
        ('He said "so." Then he left.', ['He said " so .', "Then he left ."]),
        ("A title\n\nand a line", ["A title", "and a line"]),
        ("Wait\u2026 what?! Now.", ["Wait \u2026", "what ? !", "Now ."]),
        ("3.5 is no end", ["3 . 5 is no end"]),
        ("\u6771\u3002\u4eac", ["\u6771 \u3002", "\u4eac"]),
        ("  ", []),
    ],
)
def test_sentences_end_where_a_reader_sees_an_end(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_words_are_numbered_through_all_texts_and_marks_are_none() -> None:
    found = read(["The cats, the dog.", "A CAT'S tail?"])
    assert found.words == ["The", "cats", "the", "dog", "A", "CAT'S", "tail"]
    assert found.owner.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert found.stem[0] == found.stem[2]
    assert found.stem[1] == found.stem[5]
    assert found.stop[found.stem].tolist() == [True, False, True, False, True, False, False]
    assert found.asks.tolist() == [False, True]


@given(st.lists(st.text(max_size=60), max_size=5))
def test_every_word_belongs_to_a_sentence_of_its_text(texts: list[str]) -> None:
    found = read(texts)
    assert len(found.stem) == len(found.word) == len(found.owner) == len(found.sentence)
    assert (found.sentence_owner[found.sentence] == found.owner).all()
    assert len(found.token) == len(found.token_sentence) >= len(found.word)
    assert (found.token_sentence[:-1] <= found.token_sentence[1:]).all()


def test_nothing_goes_unread() -> None:
    assert len(read(["a " * 300_000]).word) == 300_000
