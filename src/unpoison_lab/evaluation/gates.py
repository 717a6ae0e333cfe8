"""Gates: bounds on figures, such as `asr > 5%`, under which a run fails.

`upper(asr) > 10%` bounds the upper end of the interval. `clean(...)` is checked only where nothing is planted,
`attacked(...)` only elsewhere. Cells without a defense are left out wherever a defense was measured too.
"""

from __future__ import annotations

import operator
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, Self

from unpoison.algorithms.intervals import Estimate, wilson
from unpoison.errors import InputError, OptionError, UnknownNameError, clip
from unpoison.utils.plain_text import count_noun
from unpoison_lab.evaluation.measures import Measure

__all__ = ["Gate", "GateResult", "MeasuredCell", "check_gates", "conclude", "need_answers"]

_COMPARED: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_WORDS = ("upper", "lower", "clean", "attacked")
_FORM = re.compile(r"\s*([a-z0-9_()]{1,100})\s*(>=|<=|>|<)\s*(-?[0-9]{1,9}(?:\.[0-9]{1,9})?)(?:\s*(%))?\s*")
_CALL = re.compile(r"([a-z]{1,20})\(([a-z0-9_()]{1,100})\)")

OF_ANSWERS = ("asr", "accuracy", "exact_match", "em_within", "abstained", "judged_", "graded")
"""Prefixes of the figures that need answers."""


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """One cell of a table, as gates see it.

    Attributes:
        caption: Its name in messages.
        figures: By the measure's name.
        clean: Whether nothing was planted.
        baseline: Whether no defense was in place, where others are measured for comparison.
    """

    caption: str
    figures: Mapping[str, Estimate]
    clean: bool = False
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a gate for one cell: the gate as written, whether it failed, and one sentence with the numbers."""

    rule: str
    failed: bool
    message: str


@dataclass(frozen=True, slots=True)
class Gate:
    """One bound.

    Attributes:
        text: As written.
        measure: The figure's name.
        unit: Of the figure.
        end: `value`, `upper` or `lower` end of its interval.
        scope: `clean`, `attacked`, or "" for both.
        sign: One of > >= < <=.
        bound: In the figure's unit; percent are hundredths.
    """

    text: str
    measure: str
    unit: str
    end: str
    scope: str
    sign: str
    bound: float

    @classmethod
    def of(cls, text: str, measures: Mapping[str, Measure[Any]]) -> Self:
        """Read a gate.

        Raises:
            OptionError: Another form.
            UnknownNameError: No such measure; the message names the nearest.
        """
        match = _FORM.fullmatch(text)
        if match is None:
            raise OptionError(f"{clip(text)} is no gate; write a measure, > or <, and a number, such as 'asr > 5%'")
        name, end, scope = match[1], "value", ""
        while call := _CALL.fullmatch(name):
            word, name = call.groups()
            if word in ("upper", "lower") and end == "value":
                end = word
            elif word in ("clean", "attacked") and not scope:
                scope = word
            else:
                raise OptionError(f"{clip(text)}: {clip(word)} cannot stand there; the words are {', '.join(_WORDS)}")
        if name not in measures:
            raise UnknownNameError("measure", name, measures)
        unit = measures[name].unit
        if match[4] and unit != "share":
            raise OptionError(f"{clip(text)}: {name} is measured in {unit}, not in percent")
        bound = float(match[3]) / (100 if match[4] else 1)
        if unit == "share" and not -1 <= bound <= 1:
            raise OptionError(f"{clip(text)}: {name} is a share; write {bound:g}% or {bound / 100:g}")
        return cls(" ".join(text.split()), name, unit, end, scope, match[2], bound)

    def check(self, cells: Iterable[MeasuredCell]) -> list[GateResult]:
        """The results for every cell in scope that has the figure.

        Raises:
            InputError: No cell has it, so the gate could never fail.
        """
        results = []
        for cell in cells:
            value = self._figure(cell)
            if not isnan(value) and self.scope in ("", "clean" if cell.clean else "attacked"):
                failed = _COMPARED[self.sign](value, self.bound)
                sentence = f"{cell.caption}: {self.measure} is {_with_interval(cell.figures[self.measure], self.unit)}"
                hint = self._hint(cell.figures[self.measure].count) if failed else ""
                results.append(GateResult(self.text, failed, sentence + hint))
        if not results:
            raise InputError(
                f"the gate {clip(self.text)} applies to nothing: no cell has {self.measure}; answers need a generator "
                "(-g), and attacks an answer that they want"
            )
        return results

    def _hint(self, count: int) -> str:
        """What the gate needs, where no result of so few questions could pass it; "" otherwise."""
        upper = self.end == "upper" and self.sign in (">", ">=")
        if self.unit != "share" or not (upper or (self.end == "lower" and self.sign in ("<", "<="))):
            return ""

        def passes(questions: int) -> bool:
            best = wilson(0 if upper else questions, questions)
            return not _COMPARED[self.sign](best.high if upper else best.low, self.bound)

        if passes(count) or not passes(MAX_NEEDED):
            return ""
        needed = bisect_left(range(MAX_NEEDED), True, key=passes)
        return f"; no result of {count_noun(count, 'question')} can pass, it takes {needed:,} at least"

    def _figure(self, cell: MeasuredCell) -> float:
        estimate = cell.figures.get(self.measure)
        if estimate is None:
            return nan
        return {"value": estimate.value, "upper": estimate.high, "lower": estimate.low}[self.end]


def check_gates(gates: Iterable[Gate], cells: Sequence[MeasuredCell]) -> list[GateResult]:
    """The results of every gate for the cells to which it applies.

    Raises:
        InputError: A gate applies to none.
    """
    guarded = [cell for cell in cells if not cell.baseline] or list(cells)
    return [result for gate in gates for result in gate.check(guarded)]


MAX_NEEDED = 1_000_000
"""Questions at which an interval of a share is as narrow as anybody needs."""

MAX_GATES = 20
"""Failed gates that are named."""


def conclude(gates: Sequence[Gate], cells: Sequence[MeasuredCell], status: int) -> tuple[list[str], int]:
    """Check the gates of `--fail-if`.

    Returns:
        What is to be said; and 1 if a gate failed, 2 if anything else went wrong, without gates `status`.

    Raises:
        InputError: A gate that applies to nothing.
    """
    if not gates:
        return [], status
    results = check_gates(gates, cells)
    failed = [f"gate failed: {result.rule}: {result.message}" for result in results if result.failed]
    if len(failed) > MAX_GATES:
        return [*failed[:MAX_GATES], f"and {len(failed) - MAX_GATES:,} more"], 1
    return failed or [f"all {len(results):,} checks passed"], 1 if failed else 2 if status else 0


def need_answers(gates: Iterable[Gate], generators: Iterable[str | None]) -> None:
    """Refuse gates on answers if no scenario has a generator.

    Raises:
        OptionError: There is such a gate.
    """
    if any(generators):
        return
    for gate in gates:
        if gate.measure.startswith(OF_ANSWERS):
            raise OptionError(
                f"--fail-if {gate.text!r} needs answers, and no generator gives any; add -g, such as -g reader"
            )


def _with_interval(estimate: Estimate, unit: str) -> str:
    def format_value(value: float) -> str:
        return f"{100 * value:.1f} %" if unit == "share" else f"{value:.3g}"

    interval = "" if isnan(estimate.low) else f" [{format_value(estimate.low)} to {format_value(estimate.high)}]"
    return f"{format_value(estimate.value)}{interval}{' s' if unit == 'seconds' else ''} in {estimate.count:,}"
