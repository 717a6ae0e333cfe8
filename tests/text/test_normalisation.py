"""How answers are written down for comparison."""

from __future__ import annotations

import pytest

from unpoison.text.normalisation import fold_text


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Café CRÈME", "cafe creme"),
        ("Αθήνα", "αθηνα"),
        ("Ϊος", "ιος"),
        ("Ёлкин йод", "елкин иод"),
        ("\u0662\u0660\u0662\u0664 \uff12\uff10", "2024 20"),
    ],
)
def test_accents_go_where_they_are_form_and_digits_are_european(text: str, plain: str) -> None:
    assert fold_text(text) == plain


@pytest.mark.parametrize(
    ("text", "other"), [("\u05e9\u05c1", "\u05e9\u05c2"), ("\u304c", "\u304b"), ("\u0939\u093f", "\u0939")]
)
def test_marks_stay_where_they_tell_letters_apart(text: str, other: str) -> None:
    assert fold_text(text) != fold_text(other)
