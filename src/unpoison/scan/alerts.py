"""Rules that make an audit raise an alarm, such as documents>=1 or drop-rate>0.05."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Self

from unpoison.errors import OptionError, clip

__all__ = ["MEASURES", "AlertRule"]

MEASURES = ("documents", "questions", "sources", "drop-rate", "rise")
"""What a rule may name; see `Report.measures`."""

_COMPARE = {">=": operator.ge, ">": operator.gt}
_RULE = re.compile(r"([a-z-]{1,20})(>=|>)([0-9.]{1,20})")


@dataclass(frozen=True, slots=True)
class AlertRule:
    """A measure and what it must not reach.

    Attributes:
        measure: One of `MEASURES`.
        comparison: ">=" or ">".
        limit: Finite, 0 or more.
    """

    measure: str
    comparison: str
    limit: float

    @classmethod
    def of(cls, text: str) -> Self:
        """Read "documents>=1".

        Raises:
            OptionError: No such rule.
        """
        match = _RULE.fullmatch("".join(text.split()))
        try:
            if match is not None and match[1] in MEASURES and isfinite(limit := float(match[3])):
                return cls(match[1], match[2], limit)
        except ValueError:  # two points
            pass
        raise OptionError(
            f"alert must be a measure, > or >=, and a number, such as documents>=1, got {clip(text)}; "
            f"measures: {', '.join(MEASURES)}"
        )

    def holds(self, measures: Mapping[str, float]) -> bool:
        """Whether the rule raises an alarm."""
        return bool(_COMPARE[self.comparison](measures[self.measure], self.limit))

    def describe(self, measures: Mapping[str, float]) -> str:
        """Such as "documents is 5, and the rule is documents >= 1"."""
        return f"{self.measure} is {measures[self.measure]:g}, and the rule is {self}"

    def __str__(self) -> str:
        return f"{self.measure} {self.comparison} {self.limit:g}"
