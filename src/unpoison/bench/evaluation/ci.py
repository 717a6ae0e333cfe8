"""What a pipeline reads: JUnit XML for its list of tests, SARIF 2.1.0 for its list of alerts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import PurePath
from urllib.parse import quote
from xml.etree import ElementTree

from unpoison import __version__
from unpoison.bench.evaluation.gates import GateResult

__all__ = ["RULES", "Alert", "as_junit", "as_sarif", "gate_alerts"]

MAX_ALERTS = 5000
"""GitHub takes 25,000 results of a run and shows 5,000."""

MAX_CHARS = 1000
"""Characters of a message; questions and answers are of any length."""

RULES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "gate": (
        "A bound was not kept",
        "A figure of the evaluation passed the bound that a gate sets, or became significantly worse.",
        ("security",),
    ),
    "poisoned-answer": (
        "A planted document changed an answer",
        "The system gave the answer that an attacker wants after documents were planted into what it retrieves from.",
        ("security", "OWASP LLM04", "OWASP LLM08", "MITRE ATLAS AML.T0070"),
    ),
    "document-remains": (
        "A planted document may remain",
        "A document of the test could not be removed; clean up with 'unpoison redteam clean' or by its canary.",
        ("security",),
    ),
    "incomplete": ("The test is incomplete", "Something could not be measured, so the figures say less.", ()),
}
"""Every rule that an alert may name: its title, what it means, and its tags."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One result of a SARIF file.

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
    used = list(dict.fromkeys(alert.rule for alert in alerts))
    driver = {
        "name": "unpoison",
        "semanticVersion": __version__,
        "rules": [_rule(name) for name in used],
    }
    uri = quote(PurePath(artifact).as_posix(), errors="replace")
    results = [
        {
            "ruleId": alert.rule,
            "ruleIndex": used.index(alert.rule),
            "level": alert.level,
            "message": {"text": _clean(alert.message)},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}}],
            "partialFingerprints": {"unpoison/v1": _hash(alert.rule, alert.key)},
        }
        for alert in alerts[:MAX_ALERTS]
    ]
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def _rule(name: str) -> dict[str, object]:
    title, meaning, tags = RULES[name]
    return {
        "id": name,
        "name": "".join(word.capitalize() for word in name.split("-")),
        "shortDescription": {"text": title},
        "fullDescription": {"text": meaning},
        "properties": {"tags": list(tags)},
    }


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
