"""Names and numbers of a text are counted once each, in any language, and never more than a unit's worth."""

from __future__ import annotations

from math import expm1

import pytest

from unpoison.scan.details import details


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("The ship sank. It lies there.", 0),
        ("The ship Vasa sank near Beckholmen in 1628.", 3),
        ("The Vasa sank in 1628. Vasa was raised; the Vasa was raised.", 2),
        ("A ship\nSank there! Why? Nobody knows", 0),
        ("\u8fd9\u8258\u8239\u4e8e 1628 \u5e74\u6c89\u6ca1\u3002", 1),
    ],
)
def test_names_and_numbers_are_counted_once(text: str, count: int) -> None:
    assert round(expm1(details(text))) == count


def test_a_long_text_is_read_in_part() -> None:
    assert details("word " * 1000 + "and Lisbon " * 1000) == 0
    assert details("and Lisbon " * 100_000) > 0
