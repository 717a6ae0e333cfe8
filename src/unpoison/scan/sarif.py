"""A scan as SARIF 2.1.0, the format that code hosts and security dashboards read."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from unpoison import __version__
from unpoison.report.rendering import plain
from unpoison.scan.findings import Finding, Scan

__all__ = ["sarif"]

RULE = "planted-document"


def sarif(scan: Scan, source: str) -> dict[str, Any]:
    """The flagged documents as results, each with its spans as character regions of the document.

    Args:
        scan: What was found.
        source: What was scanned, as it may be shown.
    """
    rule = {
        "id": RULE,
        "name": "PlantedDocument",
        "shortDescription": {"text": "A document of the index is probably planted."},
        "fullDescription": {"text": "What it says, hides or repeats is what planted documents say, hide or repeat."},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": ["security", "poisoning", "rag"]},
    }
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "unpoison", "semanticVersion": __version__, "rules": [rule]},
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding) for finding in scan.flagged],
                "properties": {"source": source, "documents": scan.documents, "notes": list(scan.notes)},
            }
        ],
    }


def _result(finding: Finding) -> dict[str, Any]:
    address = {"uri": quote(finding.source or finding.id, safe="/:?=&%#@+,;~!$'()*")}
    named = [{"name": finding.id, "kind": "resource"}]
    locations = [
        {
            "physicalLocation": {
                "artifactLocation": address,
                "region": {"charOffset": span.start, "charLength": span.end - span.start},
            },
            "logicalLocations": named,
            "message": {"text": plain(span.reason)},
        }
        for span in finding.spans
    ] or [{"physicalLocation": {"artifactLocation": address}, "logicalLocations": named}]
    return {
        "ruleId": RULE,
        "ruleIndex": 0,
        "level": "error" if finding.suspicion >= 0.9 else "warning",
        "rank": round(100 * finding.suspicion, 2),
        "message": {"text": "; ".join(map(plain, finding.reasons))},
        "locations": locations[:1],
        "relatedLocations": [{"id": i, **location} for i, location in enumerate(locations[1:], 1)],
        "partialFingerprints": {"unpoisonDocument/v1": finding.id},
        "properties": {
            "suspicion": finding.suspicion,
            "group": finding.group,
            "neighbours": list(finding.neighbours),
        },
    }
