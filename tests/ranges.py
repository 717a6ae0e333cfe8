"""The range of a numeric option: its ends are taken, and what lies just beyond them is refused."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nextafter
from typing import Any

import pytest

from unpoison.errors import OptionError

MAX = 2**31 - 1


def assert_range(
    make: Callable[..., Any], name: str, least: float, most: float = MAX, *, open_end: bool = False, **others: Any
) -> None:
    """Whole numbers are options for whole numbers only.

    Args:
        make: What takes the option; what it makes has an attribute of its name.
        name: Of the option.
        least, most: The ends.
        open_end: Whether `most` itself is refused.
        others: Further options.
    """
    whole = isinstance(least, int)
    below, above = (least - 1, most + 1) if whole else (nextafter(least, -inf), nextafter(most, inf))
    for value in (least, *([] if open_end else [most])):
        assert getattr(make(**{name: value}, **others), name) == value
    for value in (
        below,
        most if open_end else above,
        True,
        str(least),
        float("nan"),
        *([least + 0.5] if whole else []),
    ):
        with pytest.raises(OptionError, match=name):
            make(**{name: value}, **others)
