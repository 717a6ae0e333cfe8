"""Reports of a scan: a page for review, and SARIF 2.1.0 for code hosts and security dashboards.

On the page each document is marked as keep, quarantine, or unsure; decisions are stored in the browser and exported as
JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any

from unpoison.report.pages import render
from unpoison.report.rendering import plain
from unpoison.report.sarif import CHANGED, LEVEL, PLANTED, location, sarif_log, sarif_result
from unpoison.scan.changed import Change
from unpoison.scan.findings import Finding, Scan

__all__ = ["page", "sarif"]

MAX_DOCUMENTS = 500
"""Maximum number of documents on a page, the most suspicious first."""

MAX_TEXT = 4_000
"""Maximum characters of a document on a page."""


def page(scan: Scan, source: str) -> str:
    """The flagged documents, then changed ones and the most suspicious others, at most `MAX_DOCUMENTS`, at least ten.

    Args:
        scan: The result of the scan.
        source: The name of the source for display.
    """
    first = scan.findings[: max(10, 2 * len(scan.flagged))]
    shown = dict.fromkeys((*first, *scan.changed))
    ids = [finding.id for finding in scan.findings[:MAX_DOCUMENTS]]
    name = blake2b(f"{source} {ids}".encode("utf-8", "replace"), digest_size=8).hexdigest()
    findings = [(finding, list(_pieces(finding))) for finding in list(shown)[:MAX_DOCUMENTS]]
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
    """Flagged documents as results with their spans as character regions, and differences between near-copies.

    A difference is a separate result; without evidence which document was changed, a note.

    Args:
        scan: The result of the scan.
        source: The name of the source for display.
        folder: The scanned folder, which stands before the names of its files; "" for other sources.
    """
    run = {"source": source, "documents": scan.documents, "notes": list(scan.notes)}
    changed = (
        _changed_result(finding, finding.changed, folder) for finding in scan.findings if finding.changed is not None
    )
    return sarif_log([*(_result(finding, folder) for finding in scan.flagged), *changed], run)


def _result(finding: Finding, folder: str) -> dict[str, Any]:
    file = _file(finding, folder)
    spans = [
        location(
            file,
            line=_line(finding, span.start),
            span=(span.start, span.end),
            name=finding.id,
            message=plain(span.reason),
        )
        for span in finding.spans
    ]
    return sarif_result(
        PLANTED,
        "error" if finding.suspicion >= 0.9 else LEVEL,
        "; ".join(map(plain, finding.reasons)),
        spans or [location(file, name=finding.id)],
        rank=round(100 * finding.suspicion, 2),
        partialFingerprints={"unpoisonDocument/v1": finding.id},
        properties={"suspicion": finding.suspicion, "group": finding.group, "neighbours": list(finding.neighbours)},
    )


def _changed_result(finding: Finding, change: Change, folder: str) -> dict[str, Any]:
    file = _file(finding, folder)
    places = [(span.start, span.end) for span in finding.spans if span.reason == str(change)]
    return sarif_result(
        CHANGED,
        LEVEL if change.suspect else "note",
        plain(str(change)),
        [location(file, line=_line(finding, place[0]), span=place, name=finding.id) for place in places]
        or [location(file, name=finding.id)],
        rank=round(100 * change.suspicion, 2),
        partialFingerprints={"unpoisonDocument/v1": finding.id},
        properties={"changed": change.to_dict()},
    )


def _file(finding: Finding, folder: str) -> str:
    """The address of a document, or the path of its file."""
    name = finding.source or finding.id
    return name if not folder or "://" in name else (PurePosixPath(folder) / name).as_posix()


def _line(finding: Finding, start: int) -> int:
    return finding.text.count("\n", 0, start) + 1
