"""Reports of a scan: a page for review, and SARIF 2.1.0 for code hosts and security dashboards.

On the page each document is marked as keep, quarantine, or unsure; decisions are stored in the browser and exported as
JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from unpoison import __version__
from unpoison.core.verdicts import Span
from unpoison.report.pages import render
from unpoison.report.rendering import plain
from unpoison.scan.findings import Finding, Scan

__all__ = ["page", "sarif"]

MAX_DOCUMENTS = 500
"""Maximum number of documents on a page, the most suspicious first."""

MAX_TEXT = 4_000
"""Maximum characters of a document on a page."""

RULE = "planted-document"

TAGS = ("security", "OWASP-LLM-2026:LLM05", "OWASP-LLM-2026:LLM09", "MITRE-ATLAS:AML.T0070")
"""The risks that the rule falls under. OWASP counts anew in each edition, so the edition is in the tag."""

URI_CHARACTERS = "/:?=&%#@+,;~!$'()*"
"""Characters of an address that are not quoted, beside letters and digits: an address may be a whole URL."""


def page(scan: Scan, source: str) -> str:
    """The flagged documents, then the most suspicious others, at most `MAX_DOCUMENTS`, at least ten.

    Args:
        scan: The result of the scan.
        source: The name of the source for display.
    """
    shown = scan.findings[: min(max(10, 2 * len(scan.flagged)), MAX_DOCUMENTS)]
    ids = [finding.id for finding in scan.findings[:MAX_DOCUMENTS]]
    name = blake2b(f"{source} {ids}".encode("utf-8", "replace"), digest_size=8).hexdigest()
    findings = [(finding, list(_pieces(finding))) for finding in shown]
    return render("scan.html", scan=scan, source=source, name=name, findings=findings)


def _pieces(finding: Finding) -> Iterator[tuple[str, bool]]:
    """Pieces of the displayed text, and whether each is a span; spans over nearly the whole text are left out."""
    text, at = finding.text[:MAX_TEXT], 0
    for span in finding.spans:
        start, end = max(span.start, at), min(span.end, len(text))
        if start < end and span.end - span.start < 0.9 * len(finding.text):
            yield from ((text[at:start], False), (text[start:end], True))
            at = end
    yield text[at:], False
    if len(finding.text) > MAX_TEXT:
        yield f"… and {len(finding.text) - MAX_TEXT:,} characters more", False


def sarif(scan: Scan, source: str, folder: str = "") -> dict[str, Any]:
    """Flagged documents as results with their spans as character regions, JSON-ready.

    Args:
        scan: The result of the scan.
        source: The name of the source for display.
        folder: The scanned folder, which stands before the names of its files; "" for other sources.
    """
    rule = {
        "id": RULE,
        "name": "PlantedDocument",
        "shortDescription": {"text": "A document of the index is probably planted"},
        "fullDescription": {"text": "Its content, hidden text or repetitions are typical of planted documents."},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": list(TAGS)},
    }
    run = {
        "tool": {"driver": {"name": "unpoison", "semanticVersion": __version__, "rules": [rule]}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, folder) for finding in scan.flagged],
        "properties": {"source": source, "documents": scan.documents, "notes": list(scan.notes)},
    }
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, folder: str) -> dict[str, Any]:
    """One alert; the first location is the primary one, the others are related."""
    first, *others = [_location(finding, folder, span) for span in finding.spans or (None,)]
    return {
        "ruleId": RULE,
        "ruleIndex": 0,
        "level": "error" if finding.suspicion >= 0.9 else "warning",
        "message": {"text": "; ".join(map(plain, finding.reasons))},
        "locations": [first],
        **({"relatedLocations": [{"id": i, **place} for i, place in enumerate(others, 1)]} if others else {}),
        "rank": round(100 * finding.suspicion, 2),
        "partialFingerprints": {"unpoisonDocument/v1": finding.id},
        "properties": {"suspicion": finding.suspicion, "group": finding.group, "neighbours": list(finding.neighbours)},
    }


def _location(finding: Finding, folder: str, span: Span | None) -> dict[str, Any]:
    """Where a result is shown: an address, or a path relative to the repository, and the region."""
    file = finding.source or finding.id
    if folder and "://" not in file:
        file = (PurePosixPath(folder) / file).as_posix()
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(file, safe=URI_CHARACTERS, errors="replace")}}
    location = {"physicalLocation": place, "logicalLocations": [{"name": finding.id, "kind": "resource"}]}
    if span is not None:
        line = finding.text.count("\n", 0, span.start) + 1
        place["region"] = {"startLine": line, "charOffset": span.start, "charLength": span.end - span.start}
        location["message"] = {"text": plain(span.reason)}
    return location
