"""Gates: conditions under which an evaluation fails, such as in a pipeline.

`asr > 5%` fails where the attack success rate is above 5 %; `upper(asr) > 10%` fails where the upper end of its
interval is above 10 %. A gate is checked against every cell to which its figure applies: with `clean(...)` only those
without an attack, with `attacked(...)` only the others. Cells of no defense are left out wherever a defense was
measured too.

A pipeline reads the results as JUnit XML, a list of tests, and as SARIF, a list of alerts.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import isnan
from pathlib import PurePath
from typing import Any, Self
from urllib.parse import quote
from xml.etree import ElementTree

from unpoison import __version__
from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.measures import Measure
from unpoison.errors import InputError, OptionError, UnknownNameError, clip
from unpoison.report.sarif import Location, Result, Rule, sarif_log

__all__ = ["RULES", "Alert", "Gate", "GateResult", "MeasuredCell", "as_junit", "as_sarif", "check_gates", "gate_alerts"]

_COMPARED: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_WORDS = ("upper", "lower", "clean", "attacked")
_FORM = re.compile(r"\s*([a-z0-9_()]{1,100})\s*(>=|<=|>|<)\s*(-?[0-9]{1,9}(?:\.[0-9]{1,9})?)(?:\s*(%))?\s*")
_CALL = re.compile(r"([a-z]{1,20})\(([a-z0-9_()]{1,100})\)")


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """One cell of a table, as gates and comparisons see it.

    Attributes:
        id: The same in every run of the same scenario.
        caption: What it is called in messages.
        figures: By the measure's name.
        clean: Whether nothing was planted.
        baseline: Whether no defense was in place, where others are measured for comparison.
        outcomes: What each question said, by measure and by the question's id, where it is kept.
    """

    id: str
    caption: str
    figures: Mapping[str, Estimate]
    clean: bool = False
    baseline: bool = False
    outcomes: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate or a comparison says of one cell.

    Attributes:
        rule: The gate as written, or the comparison.
        measure: The figure's name.
        cell: The caption of the cell.
        failed: Whether it must not be so.
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
        end: `value`, `upper` or `lower` end of its interval.
        scope: `clean`, `attacked`, or "" for both.
        sign: One of > >= < <=.
        bound: In the figure's unit; percent are hundredths.
    """

    text: str
    measure: str
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
        if match[4] and measures[name].unit != "share":
            raise OptionError(f"{clip(text)}: {name} is measured in {measures[name].unit}, not in percent")
        bound = float(match[3]) / (100 if match[4] else 1)
        if measures[name].unit == "share" and not -1 <= bound <= 1:
            raise OptionError(f"{clip(text)}: {name} is a share; write {bound:g}% or {bound / 100:g}")
        return cls(" ".join(text.split()), name, end, scope, match[2], bound)

    def applies(self, cell: MeasuredCell) -> bool:
        """Whether the cell has the figure, and is of the gate's scope."""
        wanted = {"": True, "clean": cell.clean, "attacked": not cell.clean}[self.scope]
        return wanted and not isnan(self._figure(cell))

    def evaluate(self, cell: MeasuredCell, unit: str) -> GateResult:
        """What it says of a cell to which it applies."""
        estimate = cell.figures[self.measure]
        failed = _COMPARED[self.sign](self._figure(cell), self.bound)
        figure = _with_interval(estimate, unit)
        return GateResult(self.text, self.measure, cell.caption, failed, f"{cell.caption}: {self.measure} is {figure}")

    def _figure(self, cell: MeasuredCell) -> float:
        estimate = cell.figures.get(self.measure)
        if estimate is None:
            return float("nan")
        return {"value": estimate.value, "upper": estimate.high, "lower": estimate.low}[self.end]


def check_gates(
    gates: Iterable[Gate], cells: Sequence[MeasuredCell], measures: Mapping[str, Measure[Any]]
) -> list[GateResult]:
    """What every gate says of every cell to which it applies.

    Raises:
        InputError: A gate applies to none: it would pass whatever happens.
    """
    guarded = [cell for cell in cells if not cell.baseline] or list(cells)
    findings = list[GateResult]()
    for gate in gates:
        own = [gate.evaluate(cell, measures[gate.measure].unit) for cell in guarded if gate.applies(cell)]
        if not own:
            what = gate.measure if gate.end == "value" else f"an interval of {gate.measure}"
            raise InputError(
                f"the gate {clip(gate.text)} applies to nothing: no cell has {what}; answers need a generator (-g), "
                "and attacks an answer that they want"
            )
        findings += own
    return findings


def _with_interval(estimate: Estimate, unit: str) -> str:
    def format_value(value: float) -> str:
        return f"{100 * value:.1f} %" if unit == "share" else f"{value:.3g}"

    interval = "" if isnan(estimate.low) else f" [{format_value(estimate.low)} to {format_value(estimate.high)}]"
    return f"{format_value(estimate.value)}{interval}{' s' if unit == 'seconds' else ''} in {estimate.count:,}"


def figures_of(values: Any) -> dict[str, Estimate]:
    """Figures as JSON documents of this project hold them; null stands for nan.

    Raises:
        InputError: They are not figures.
    """
    try:
        return {
            str(name): Estimate(_number(row["value"]), _number(row["low"]), _number(row["high"]), int(row["count"]))
            for name, row in values.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        raise InputError("the figures of a cell cannot be read; give the JSON of an earlier run") from None


def _number(value: Any) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(value)
    return float(value)


MAX_ALERTS = 5000
"""GitHub takes 25,000 results of a run and shows 5,000."""

MAX_CHARS = 1000
"""Characters of a message; questions and answers are of any length."""

RULES = {
    rule.id: rule
    for rule in (
        Rule(
            "gate",
            "A bound was not kept",
            "A figure of the evaluation passed the bound that a gate sets, or became significantly worse.",
            ("security",),
        ),
        Rule(
            "poisoned-answer",
            "A planted document changed an answer",
            "The system gave the answer that an attacker wants after documents were planted into what it retrieves "
            "from.",
            ("security", "OWASP LLM04", "OWASP LLM08", "MITRE ATLAS AML.T0070"),
        ),
        Rule(
            "obeyed-order",
            "An agent obeyed an order in what it read",
            "The agent called a tool that nobody asked for, gave a secret away, or answered as an attacker wants, "
            "after an order was planted into a tool's result, a page or a memory.",
            ("security", "OWASP LLM01", "OWASP ASI06", "MITRE ATLAS AML.T0051.001"),
        ),
        Rule(
            "document-remains",
            "A planted document may remain",
            "A document of the test could not be removed; clean up with 'unpoison redteam clean' or by its canary.",
            ("security",),
        ),
        Rule("incomplete", "The test is incomplete", "Something could not be measured, so the figures say less."),
    )
}
"""Every rule that an alert may name."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert of a pipeline.

    Attributes:
        rule: One of `RULES`.
        level: error, warning or note.
        message: What happened.
        key: What it is about; the same in every run, so that it is one alert.
    """

    rule: str
    level: str
    message: str
    key: str


def gate_alerts(findings: Sequence[GateResult], problems: Sequence[str] = ()) -> list[Alert]:
    """An alert for every gate that failed and for every problem."""
    failed = [Alert("gate", "error", f"{f.message}; {f.rule}", f"{f.rule}|{f.cell}") for f in findings if f.failed]
    return failed + [Alert("incomplete", "warning", problem, problem) for problem in problems]


def as_junit(findings: Sequence[GateResult], cells: Sequence[str], problems: Sequence[str] = ()) -> str:
    """Every gate of every cell as a test, and every cell as one that fails where something could not be measured.

    Args:
        findings: What gates and comparisons say.
        cells: The captions of all cells.
        problems: What went wrong, as sentences.
    """
    failed = sum(finding.failed for finding in findings)
    counts = {"tests": len(findings) + 1, "failures": failed, "errors": 1 if problems else 0}
    root = ElementTree.Element("testsuites", {"name": "unpoison", **_texts(counts)})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "unpoison", **_texts({**counts, "skipped": 0})})
    for finding in findings:
        case = _case(suite, finding.cell, finding.rule)
        if finding.failed:
            element = ElementTree.SubElement(case, "failure", {"message": _clean(finding.message), "type": "gate"})
            element.text = _clean(f"{finding.message}; the gate is {finding.rule}")
    case = _case(suite, "unpoison", f"everything was measured ({len(cells)} cells)")
    if problems:
        element = ElementTree.SubElement(case, "error", {"message": _clean(problems[0]), "type": "incomplete"})
        element.text = _clean("\n".join(problems[:100]), 20_000)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def as_sarif(alerts: Sequence[Alert], artifact: str) -> str:
    """Alerts as SARIF.

    Args:
        alerts: At most the first 5,000 are written.
        artifact: The file that they are shown at: the configuration, or the questions; relative to the repository.
    """
    shown_at = Location(quote(PurePath(artifact).as_posix(), errors="replace"), line=1)
    results = [
        Result(
            alert.rule,
            alert.level,
            _clean(alert.message),
            [shown_at],
            {"unpoison/v1": _hash(alert.rule, alert.key)},
        )
        for alert in alerts[:MAX_ALERTS]
    ]
    rules = [RULES[name] for name in dict.fromkeys(alert.rule for alert in alerts)]
    return json.dumps(sarif_log(results, rules, __version__), indent=2, ensure_ascii=True) + "\n"


def _case(suite: ElementTree.Element, owner: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", {"classname": _clean(owner), "name": _clean(name), "time": "0"})


def _texts(counts: dict[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items()}


def _clean(text: str, longest: int = MAX_CHARS) -> str:
    """A text without what XML cannot hold: control characters, halves of surrogate pairs, two non-characters."""
    kept = (
        c if c in "\n\t" or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff") else "?"
        for c in text
    )
    cut = "".join(kept)
    return cut if len(cut) <= longest else f"{cut[: longest - 1]}…"


def _hash(*parts: str) -> str:
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
