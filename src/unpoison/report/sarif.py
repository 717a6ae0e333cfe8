"""SARIF 2.1.0, the format of alerts that code hosts and security dashboards read, and the rules of every command."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from unpoison import __version__
from unpoison.utils.plain_text import excerpt

__all__ = ["RULES", "Alert", "Location", "Result", "SarifRule", "alerts_log", "sarif_log"]

URI_CHARACTERS = "/:?=&%#@+,;~!$'()*"
"""Characters of an address that are not quoted, beside letters and digits: an address may be a whole URL."""


@dataclass(frozen=True, slots=True)
class SarifRule:
    """A kind of alert.

    Attributes:
        id: Such as `planted-document`; its name is `PlantedDocument`.
        title, meaning: What it says, short and long.
        tags: Such as `security`.
        level: The usual level of its results; "" for none.
    """

    id: str
    title: str
    meaning: str
    tags: tuple[str, ...] = ()
    level: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The reportingDescriptor object."""
        return {
            "id": self.id,
            "name": "".join(word.capitalize() for word in self.id.split("-")),
            "shortDescription": {"text": self.title},
            "fullDescription": {"text": self.meaning},
            **({"defaultConfiguration": {"level": self.level}} if self.level else {}),
            "properties": {"tags": list(self.tags)},
        }


@dataclass(frozen=True, slots=True)
class Location:
    """Where a result is shown.

    Attributes:
        file: A URL, or a path relative to the repository, quoted where it holds characters such as `#`.
        line: From 1; None for none.
        span: First character and the one behind the last, from 0; None for none.
        name: The id of what it is part of, such as a record of a database; "" for none.
        message: What is there; "" for nothing.
    """

    file: str
    line: int | None = None
    span: tuple[int, int] | None = None
    name: str = ""
    message: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The location object."""
        region: dict[str, int] = {} if self.line is None else {"startLine": self.line}
        if self.span is not None:
            region |= {"charOffset": self.span[0], "charLength": self.span[1] - self.span[0]}
        address = {"uri": quote(self.file, safe=URI_CHARACTERS, errors="replace")}
        return {
            "physicalLocation": {"artifactLocation": address, **({"region": region} if region else {})},
            **({"logicalLocations": [{"name": self.name, "kind": "resource"}]} if self.name else {}),
            **({"message": {"text": self.message}} if self.message else {}),
        }


@dataclass(frozen=True, slots=True)
class Result:
    """One alert.

    Attributes:
        rule: The id of its rule.
        level: error, warning or note.
        message: What happened.
        locations: The first is where it is shown, the others are related to it.
        fingerprints: By name, what makes it the same alert in another run.
        rank: Its priority, 0 to 100; None for none.
        properties: Further JSON-ready values.
    """

    rule: str
    level: str
    message: str
    locations: Sequence[Location] = ()
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    rank: float | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self, rule_index: int) -> dict[str, Any]:
        """The result object."""
        places = [location.to_dict() for location in self.locations]
        values: dict[str, Any] = {
            "rank": self.rank,
            "locations": places[:1],
            "relatedLocations": [{"id": i, **place} for i, place in enumerate(places[1:], 1)],
            "partialFingerprints": dict(self.fingerprints),
            "properties": dict(self.properties),
        }
        return {
            "ruleId": self.rule,
            "ruleIndex": rule_index,
            "level": self.level,
            "message": {"text": self.message},
            **{name: value for name, value in values.items() if value not in (None, [], {})},
        }


def sarif_log(
    results: Sequence[Result], rules: Sequence[SarifRule], version: str, properties: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A SARIF log with one run of this package, JSON-ready.

    Args:
        results: In the order in which they are shown.
        rules: At least the rules of all results.
        version: Of this package.
        properties: What else is told of the run.
    """
    index = {rule.id: number for number, rule in enumerate(rules)}
    driver = {"name": "unpoison", "semanticVersion": version, "rules": [rule.to_dict() for rule in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [result.to_dict(index[result.rule]) for result in results],
        **({"properties": dict(properties)} if properties else {}),
    }
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


_POISONING = ("security", "OWASP-LLM-2026:LLM05", "OWASP-LLM-2026:LLM09", "MITRE-ATLAS:AML.T0070")
_INJECTION = ("security", "OWASP-LLM-2026:LLM01", "MITRE-ATLAS:AML.T0080", "MITRE-ATLAS:AML.T0110.002")

RULES = {
    rule.id: rule
    for rule in (
        SarifRule(
            "planted-document",
            "A document of the index is probably planted",
            "What it says, hides or repeats is what planted documents say, hide or repeat.",
            _POISONING,
            "warning",
        ),
        SarifRule(
            "changed-in-near-copy",
            "A document differs from a near-copy in one or two numbers or names",
            "One of the two was changed: the one of the less trusted source, the newer one, or the one that fewer "
            "others say.",
            _POISONING,
            "warning",
        ),
        SarifRule(
            "poisoned-answer",
            "A planted document changed an answer",
            "The system gave the answer that an attacker wants after documents were planted into what it retrieves.",
            _POISONING,
        ),
        SarifRule(
            "obeyed-order",
            "An agent obeyed an instruction in what it read",
            "The agent called a tool that nobody asked for, gave a secret away, or answered as an attacker wants.",
            _INJECTION,
        ),
        SarifRule(
            "document-remains",
            "A planted document may remain",
            "A document of the test could not be removed; clean up with 'unpoison redteam clean' or by its canary.",
            ("security",),
        ),
        SarifRule(
            "gate",
            "A bound was not kept",
            "A figure passed the bound of --fail-if, or became significantly worse.",
            ("security",),
        ),
        SarifRule("incomplete", "The test is incomplete", "Something could not be measured, so the figures say less."),
    )
}
"""Every rule, with the risks that it falls under. OWASP counts anew in each edition, so the edition is in the tag."""

MAX_ALERTS = 5000
"""GitHub takes 25,000 results of a run and shows 5,000."""


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


def alerts_log(alerts: Sequence[Alert], artifact: str) -> str:
    """Alerts as the text of a SARIF file.

    Args:
        alerts: At most the first 5,000 are written.
        artifact: The file that they are shown at, relative to the repository: the configuration, or the questions.
    """
    shown_at = Location(PurePath(artifact).as_posix(), line=1)
    results = [
        Result(alert.rule, alert.level, excerpt(alert.message, 1000), [shown_at], {"unpoison/v1": _digest(alert)})
        for alert in alerts[:MAX_ALERTS]
    ]
    rules = [RULES[name] for name in dict.fromkeys(alert.rule for alert in alerts)]
    return json.dumps(sarif_log(results, rules, __version__), indent=2, ensure_ascii=True) + "\n"


def _digest(alert: Alert) -> str:
    return blake2b(f"{alert.rule}\0{alert.key}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
