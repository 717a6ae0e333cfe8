"""Each change of NFKC is known by its place, in every script."""

from __future__ import annotations

import pytest

from unpoison.text.invisible import recompose


@pytest.mark.parametrize(
    ("letters", "one"),
    [
        ("\u1112\u1161\u11ab", "\ud55c"),  # Hangul: consonant, vowel, final consonant
        ("\u1112\u1161", "\ud558"),
        ("e\u0301", "\u00e9"),
        ("\u304b\u3099", "\u304c"),
        ("\u00bd", "1\u20442"),
    ],
)
def test_letters_and_what_joins_them_are_one_change(letters: str, one: str) -> None:
    assert recompose(f"a {letters} b {letters}", 10, finely=True) == [
        (12, 12 + len(letters), one),
        (15 + len(letters), 15 + 2 * len(letters), one),
    ]
    assert recompose(f"a {letters}", finely=False) == [(0, 2 + len(letters), f"a {one}")]


def test_what_is_composed_already_changes_nothing() -> None:
    assert recompose("caf\u00e9 \ud55c", finely=True) == []
