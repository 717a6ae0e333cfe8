from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.kernels.tokenized import tokenize


def sentences(text: str) -> list[str]:
    tokenized = tokenize([text])
    return [
        " ".join(tokenized.tokens[token] for token in tokenized.token[tokenized.token_sentence == i])
        for i in range(len(tokenized.sentence_owner))
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
    tokenized = tokenize(["The cats, the dog.", "A CAT'S tail?"])
    assert tokenized.words == ["The", "cats", "the", "dog", "A", "CAT'S", "tail"]
    assert tokenized.owner.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert tokenized.stem[0] == tokenized.stem[2]
    assert tokenized.stem[1] == tokenized.stem[5]
    assert tokenized.stop[tokenized.stem].tolist() == [True, False, True, False, True, False, False]
    assert tokenized.asks.tolist() == [False, True]


@given(st.lists(st.text(max_size=60), max_size=5))
def test_every_word_belongs_to_a_sentence_of_its_text(texts: list[str]) -> None:
    tokenized = tokenize(texts)
    assert len(tokenized.stem) == len(tokenized.word) == len(tokenized.owner) == len(tokenized.sentence)
    assert (tokenized.sentence_owner[tokenized.sentence] == tokenized.owner).all()
    assert len(tokenized.token) == len(tokenized.token_sentence) >= len(tokenized.word)
    assert (tokenized.token_sentence[:-1] <= tokenized.token_sentence[1:]).all()


def test_nothing_goes_unread() -> None:
    assert len(tokenize(["a " * 300_000]).word) == 300_000
