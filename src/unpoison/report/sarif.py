"""SARIF 2.1.0, the format of alerts that code hosts and security dashboards read, and the rules of every command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

__all__ = ["RULES", "Location", "Result", "SarifRule", "sarif_log"]

URI_CHARACTERS = "/:?=&%#@+,;~!$'()*"
"""Characters of an address that are not quoted, beside letters and digits: an address may be a whole URL."""


@dataclass(frozen=True, slots=True)
class SarifRule:
    """A kind of alert.

    Attributes:
        id: Such as `planted-document`; its name is `PlantedDocument`.
        title, meaning: Short and long description.
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
        file: A URL, or a path relative to the repository, quoted if it has characters such as `#`.
        line: From 1; None for none.
        span: First character and the one behind the last, from 0; None for none.
        name: The id of the enclosing resource, such as a database record; "" for none.
        message: Its content; "" for none.
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
        message: The finding.
        locations: The first is the primary location, the others are related.
        fingerprints: By name; equal in another run for the same alert.
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
        properties: Further values of the run.
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

RULES = {
    rule.id: rule
    for rule in (
        SarifRule(
            "planted-document",
            "A document of the index is probably planted",
            "Its content, hidden text or repetitions are typical of planted documents.",
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
    )
}
"""Every rule, with the risks that it falls under. OWASP counts anew in each edition, so the edition is in the tag."""
