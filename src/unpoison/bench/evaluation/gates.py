"""Gates: conditions under which an evaluation or a test fails, such as in a pipeline.

`asr > 5%` fails where the attack success rate is above 5 %; `upper(asr) > 10%` where the upper end of its interval is.
With `clean(...)` a gate is checked only where nothing is planted, with `attacked(...)` only elsewhere.
`worse(last.json)` fails where a figure is significantly worse than in that earlier run. Cells without a defense are
left out wherever a defense was measured too.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, Self
from xml.etree import ElementTree

import numpy as np

from unpoison.algorithms.intervals import Estimate, holm
from unpoison.bench.evaluation.measures import Measure
from unpoison.errors import InputError, OptionError, UnknownNameError, clip
from unpoison.report.sarif import Alert

__all__ = ["Gate", "GateResult", "MeasuredCell", "Worse", "as_junit", "check_gates", "gate_alerts", "read_gate"]

_COMPARED: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_WORDS = ("upper", "lower", "clean", "attacked")
_FORM = re.compile(r"\s*([a-z0-9_()]{1,100})\s*(>=|<=|>|<)\s*(-?[0-9]{1,9}(?:\.[0-9]{1,9})?)(?:\s*(%))?\s*")
_CALL = re.compile(r"([a-z]{1,20})\(([a-z0-9_()]{1,100})\)")
_WORSE = re.compile(r"\s*worse\((.+)\)\s*")


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """One cell of a table, as gates and comparisons see it.

    Attributes:
        id: The same in every run of the same scenario.
        caption: What it is called in messages.
        figures: By the measure's name.
        clean: Whether nothing was planted.
        baseline: Whether no defense was in place, where others are measured for comparison.
    """

    id: str
    caption: str
    figures: Mapping[str, Estimate]
    clean: bool = False
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a gate for one cell.

    Attributes:
        rule: The gate as written.
        measure: The figure's name.
        cell: The caption of the cell.
        failed: Whether the gate failed.
        message: One sentence with the numbers.
    """

    rule: str
    measure: str
    cell: str
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
            raise OptionError(
                f"{clip(text)} is no gate; write a measure, > or <, and a number, such as 'asr > 5%', or "
                "'worse(last.json)'"
            )
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

    def check(self, cells: Sequence[MeasuredCell]) -> list[GateResult]:
        """The findings for every cell in scope that has the figure.

        Raises:
            InputError: No cell has it, so the gate could never fail.
        """
        results = []
        for cell in cells:
            value = self._figure(cell)
            if not isnan(value) and self.scope in ("", "clean" if cell.clean else "attacked"):
                failed = _COMPARED[self.sign](value, self.bound)
                sentence = f"{cell.caption}: {self.measure} is {_with_interval(cell.figures[self.measure], self.unit)}"
                results.append(GateResult(self.text, self.measure, cell.caption, failed, sentence))
        if not results:
            raise InputError(
                f"the gate {clip(self.text)} applies to nothing: no cell has {self.measure}; answers need a generator "
                "(-g), and attacks an answer that they want"
            )
        return results

    def _figure(self, cell: MeasuredCell) -> float:
        estimate = cell.figures.get(self.measure)
        if estimate is None:
            return nan
        return {"value": estimate.value, "upper": estimate.high, "lower": estimate.low}[self.end]


COMPARED = ("poisoned", "asr", "accuracy", "asr_after", "gold_kept", "clean_kept")
"""The measures in which a run is compared with an earlier one, where both have them."""

SIGNIFICANT = 0.05
"""The corrected p-value below which a figure is worse."""

MAX_BYTES = 1 << 29
"""Of the JSON of an earlier run, which is read whole."""


@dataclass(frozen=True, slots=True)
class Worse:
    """A comparison with an earlier run.

    Yes and no are compared by Fisher's exact test, other figures by their intervals as if they were normal; the
    p-values are corrected together (Holm).

    Attributes:
        text: As written.
        earlier: The figures of the earlier run by the id of the cell.
        measures: All measures by name.
    """

    text: str
    earlier: Mapping[str, Mapping[str, Estimate]]
    measures: Mapping[str, Measure[Any]]

    @classmethod
    def of(cls, path: str, measures: Mapping[str, Measure[Any]]) -> Self:
        """Read the JSON that `--json` or `--report FILE.json` wrote.

        Raises:
            InputError: It cannot be read, or is no such document.
        """
        try:
            if Path(path).stat().st_size > MAX_BYTES:
                raise InputError(f"{path} is larger than {MAX_BYTES:,} bytes; give the JSON of an earlier run")
            cells = json.loads(Path(path).read_bytes())["cells"]
            figures = {
                str(cell["id"]): {str(name): _estimate(figure) for name, figure in cell["figures"].items()}
                for cell in cells
            }
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}; give the JSON of an earlier run") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise InputError(f"{path} is no run: {clip(str(error))}; give the JSON of an earlier run") from None
        return cls(f"worse({path})", figures, measures)

    def check(self, cells: Sequence[MeasuredCell]) -> list[GateResult]:
        """Every figure that both runs have, and whether it is significantly worse now.

        Raises:
            InputError: The runs have no figure in common.
        """
        pairs = [
            (cell, name, self.earlier[cell.id][name], cell.figures[name])
            for cell in cells
            if cell.id in self.earlier
            for name in COMPARED
            if name in self.measures and _has(self.earlier[cell.id], name) and _has(cell.figures, name)
        ]
        if not pairs:
            raise InputError(f"{self.text} has no cell in common with this run, so nothing can be compared")
        tested = holm([_probability(old, now, yes_no=self.measures[name].yes_no) for _, name, old, now in pairs])
        results = []
        for (cell, name, old, now), probability in zip(pairs, tested, strict=True):
            down = now.value < old.value
            worse = now.value != old.value and down == (self.measures[name].better == "higher")
            was, is_now = f"{100 * old.value:.1f} %", f"{100 * now.value:.1f} %"
            sentence = f"{cell.caption}: {name} was {was} and is {is_now} (p = {probability:.2g})"
            results.append(GateResult(self.text, name, cell.caption, worse and probability < SIGNIFICANT, sentence))
        return results


def read_gate(text: str, measures: Mapping[str, Measure[Any]]) -> Gate | Worse:
    """A condition of `--fail-if`.

    Raises:
        OptionError: Another form.
        UnknownNameError: No such measure; the message names the nearest.
        InputError: The earlier run cannot be read.
    """
    worse = _WORSE.fullmatch(text)
    return Gate.of(text, measures) if worse is None else Worse.of(worse[1].strip(), measures)


def check_gates(gates: Iterable[Gate | Worse], cells: Sequence[MeasuredCell]) -> list[GateResult]:
    """The findings of every gate for the cells to which it applies.

    Raises:
        InputError: A gate applies to none.
    """
    guarded = [cell for cell in cells if not cell.baseline] or list(cells)
    return [result for gate in gates for result in gate.check(guarded)]


def _has(figures: Mapping[str, Estimate], name: str) -> bool:
    return name in figures and figures[name].defined


def _probability(old: Estimate, now: Estimate, *, yes_no: bool) -> float:
    """The two-sided p-value of no difference."""
    if yes_no:
        from scipy.stats import fisher_exact

        return float(fisher_exact(np.array([[e.hits, e.count - e.hits] for e in (old, now)])).pvalue)
    widths = [(estimate.high - estimate.low) / 3.92 for estimate in (old, now)]  # 95 % are 3.92 standard errors wide
    error, distance = sqrt(sum(width**2 for width in widths)), abs(old.value - now.value)
    if not error:
        return 1.0 if not distance else 0.0
    return 2 * (1 - NormalDist().cdf(distance / error))


def _with_interval(estimate: Estimate, unit: str) -> str:
    def format_value(value: float) -> str:
        return f"{100 * value:.1f} %" if unit == "share" else f"{value:.3g}"

    interval = "" if isnan(estimate.low) else f" [{format_value(estimate.low)} to {format_value(estimate.high)}]"
    return f"{format_value(estimate.value)}{interval}{' s' if unit == 'seconds' else ''} in {estimate.count:,}"


def _estimate(row: Mapping[str, Any]) -> Estimate:
    """A figure as JSON holds it; null stands for nan."""
    value, low, high = (nan if row[name] is None else float(row[name]) for name in ("value", "low", "high"))
    return Estimate(value, low, high, int(row["count"]))


def gate_alerts(findings: Sequence[GateResult], problems: Sequence[str] = ()) -> list[Alert]:
    """An alert for every gate that failed and for every problem."""
    failed = [Alert("gate", "error", f"{f.message}; {f.rule}", f"{f.rule}|{f.cell}") for f in findings if f.failed]
    return failed + [Alert("incomplete", "warning", problem, problem) for problem in problems]


MAX_CHARS = 1000
"""Characters of a message; questions and answers are of any length."""


def as_junit(findings: Sequence[GateResult], problems: Sequence[str] = ()) -> str:
    """JUnit XML: every gate of every cell as a test, and one that fails where something could not be measured.

    Args:
        findings: What the gates say.
        problems: What went wrong, as sentences.
    """
    counts = {
        "tests": len(findings) + 1,
        "failures": sum(finding.failed for finding in findings),
        "errors": int(bool(problems)),
    }
    attributes = {"name": "unpoison", **{name: str(count) for name, count in counts.items()}}
    root = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(root, "testsuite", attributes)
    for finding in findings:
        case = _case(suite, finding.cell, finding.rule)
        if finding.failed:
            ElementTree.SubElement(case, "failure", {"message": _xml_text(finding.message), "type": "gate"})
    case = _case(suite, "unpoison", "everything was measured")
    if problems:
        error = ElementTree.SubElement(case, "error", {"message": _xml_text(problems[0]), "type": "incomplete"})
        error.text = "\n".join(map(_xml_text, problems[:100]))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _case(suite: ElementTree.Element, owner: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", {"classname": _xml_text(owner), "name": _xml_text(name), "time": "0"}
    )


_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _xml_text(text: str) -> str:
    """A text without characters that XML forbids, truncated to `MAX_CHARS`."""
    kept = _NOT_XML.sub("?", text)
    return kept if len(kept) <= MAX_CHARS else f"{kept[: MAX_CHARS - 1]}…"
