"""SARIF 2.1.0, the format of alerts that code hosts and security dashboards read, and the rules of a scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from unpoison import __version__

__all__ = ["CHANGED", "LEVEL", "PLANTED", "location", "sarif_log", "sarif_result"]

URI_CHARACTERS = "/:?=&%#@+,;~!$'()*"
"""Characters of an address that are not quoted, beside letters and digits: an address may be a whole URL."""

PLANTED, CHANGED = "planted-document", "changed-in-near-copy"
RULES = {
    PLANTED: (
        "A document of the index is probably planted",
        "Its content, hidden text or repetitions are typical of planted documents.",
    ),
    CHANGED: (
        "A document differs from a near-copy in one or two numbers or names",
        "One of the two was changed: the one of the less trusted source, the newer, or the one that fewer others say.",
    ),
}
"""Title and meaning of every rule."""

TAGS = ("security", "OWASP-LLM-2026:LLM05", "OWASP-LLM-2026:LLM09", "MITRE-ATLAS:AML.T0070")
"""The risks that the rules fall under. OWASP counts anew in each edition, so the edition is in the tag."""

LEVEL = "warning"
"""The usual level of an alert."""


def location(
    file: str, *, line: int | None = None, span: tuple[int, int] | None = None, name: str = "", message: str = ""
) -> dict[str, Any]:
    """Where a result is shown.

    Args:
        file: A URL, or a path relative to the repository, quoted if it has characters such as `#`.
        line: From 1.
        span: First character and the one behind the last, from 0.
        name: The id of the enclosing resource, such as a database record.
        message: Its content.
    """
    region: dict[str, int] = {} if line is None else {"startLine": line}
    if span is not None:
        region |= {"charOffset": span[0], "charLength": span[1] - span[0]}
    address = {"uri": quote(file, safe=URI_CHARACTERS, errors="replace")}
    return {
        "physicalLocation": {"artifactLocation": address, **({"region": region} if region else {})},
        **({"logicalLocations": [{"name": name, "kind": "resource"}]} if name else {}),
        **({"message": {"text": message}} if message else {}),
    }


def sarif_result(
    rule: str, level: str, message: str, locations: Sequence[Mapping[str, Any]], **more: Any
) -> dict[str, Any]:
    """One alert.

    Args:
        rule: A key of `RULES`.
        level: error, warning or note.
        message: The finding.
        locations: The first is the primary location, the others are related.
        **more: Further fields of the result object, such as `rank`.
    """
    first, *others = locations
    related = {"relatedLocations": [{"id": i, **place} for i, place in enumerate(others, 1)]} if others else {}
    return {
        "ruleId": rule,
        "ruleIndex": list(RULES).index(rule),
        "level": level,
        "message": {"text": message},
        "locations": [first],
        **related,
        **more,
    }


def sarif_log(results: Sequence[Mapping[str, Any]], properties: Mapping[str, Any]) -> dict[str, Any]:
    """A SARIF log with one run of this package, JSON-ready.

    Args:
        results: In the order in which they are shown.
        properties: Further values of the run.
    """
    rules = [
        {
            "id": name,
            "name": "".join(word.capitalize() for word in name.split("-")),
            "shortDescription": {"text": title},
            "fullDescription": {"text": meaning},
            "defaultConfiguration": {"level": LEVEL},
            "properties": {"tags": list(TAGS)},
        }
        for name, (title, meaning) in RULES.items()
    ]
    run = {
        "tool": {"driver": {"name": "unpoison", "semanticVersion": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": list(results),
        "properties": dict(properties),
    }
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
