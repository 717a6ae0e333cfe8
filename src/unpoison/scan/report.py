"""What a scan found, as a page to work through and as SARIF 2.1.0 for code hosts and security dashboards.

On the page each document is kept, quarantined, or unsure; decisions stay in the browser and are exported as JSON. It is
self-contained. Everything a document holds is escaped; the page's policy lets one script run, ours, known by its hash,
and lets nothing be loaded or sent anywhere.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import blake2b, sha256
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from unpoison import __version__
from unpoison.report.rendering import excerpt, plain
from unpoison.scan.findings import Finding, Scan

__all__ = ["MAX_DOCUMENTS", "page", "sarif"]

MAX_DOCUMENTS = 500
"""Documents on a page, the most suspicious ones."""

MAX_TEXT = 4_000
"""Characters of a document that are shown."""


def page(scan: Scan, source: str) -> str:
    """The flagged documents, and behind them the most suspicious others, at most `MAX_DOCUMENTS`, and at least ten.

    Args:
        scan: What was found.
        source: What was scanned, as it may be shown.
    """
    shown = scan.findings[: min(MAX_DOCUMENTS, max(10, 2 * len(scan.flagged)))]
    style, script = (
        files("unpoison").joinpath("data", name).read_text(encoding="utf-8") for name in ("scan.css", "scan.js")
    )
    digests = {name: b64encode(sha256(text.encode()).digest()).decode() for name, text in (("s", style), ("j", script))}
    policy = (
        f"default-src 'none'; style-src 'sha256-{digests['s']}'; script-src 'sha256-{digests['j']}'; base-uri 'none'; "
        "form-action 'none'"
    )
    name = blake2b(
        f"{source} {[finding.id for finding in scan.findings[:MAX_DOCUMENTS]]}".encode("utf-8", "replace"),
        digest_size=8,
    )
    notes = "".join(f"<p class='note'>{escape(plain(note))}</p>" for note in scan.notes)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>unpoison scan: {escape(excerpt(source, 80))}</title><style>{style}</style></head>
<body data-scan="{name.hexdigest()}">
<header><h1>Scan of {escape(excerpt(source, 120))}</h1>
<p>{len(scan.flagged):,} of {len(scan.findings):,} judged documents are flagged; {scan.documents:,} documents in all.
{len(shown):,} are shown, the most suspicious first.</p>{notes}
<div class="bar"><span id="progress" role="status"></span>
<label>Show <select id="filter"><option value="all">all</option><option value="open">undecided</option>
<option value="flagged">flagged</option><option value="quarantine">quarantine</option><option value="keep">keep</option>
<option value="unsure">unsure</option></select></label>
<button id="export" type="button">Export decisions</button>
<button id="clear" type="button">Forget decisions</button></div>
<p class="help">Keys: <kbd>j</kbd> next, <kbd>p</kbd> previous, <kbd>q</kbd> quarantine, <kbd>k</kbd> keep,
<kbd>u</kbd> unsure. Decisions stay in this browser; export them for <code>unpoison quarantine</code>.</p></header>
<main>{"".join(_article(finding) for finding in shown) or "<p>No documents were judged.</p>"}</main>
<script>{script}</script></body></html>
"""


def _article(finding: Finding) -> str:
    reasons = "".join(f"<li>{escape(plain(reason))}</li>" for reason in finding.reasons)
    about = [f"group {finding.group}" if finding.group else "", finding.source or "", finding.author or "",
             finding.added_at.isoformat() if finding.added_at else ""]  # fmt: skip
    origin = " · ".join(escape(excerpt(part, 100)) for part in about if part)
    near = ", ".join(escape(excerpt(name, 60)) for name in finding.neighbours)
    state = "flagged" if finding.flagged else "not flagged"
    name = escape(finding.id.encode("utf-8", "replace").decode(), quote=True)
    field = blake2b(finding.id.encode("utf-8", "replace"), digest_size=8).hexdigest()
    choices = "".join(
        f'<label><input type="radio" name="{field}" value="{value}"> {value}</label>'
        for value in ("keep", "quarantine", "unsure")
    )
    return f"""<article tabindex="0" data-id="{name}" data-flagged="{str(finding.flagged).lower()}">
<h2><span class="suspicion">{finding.suspicion:.2f}</span> {escape(excerpt(finding.id, 100))}
<small>{state}</small></h2>
{f"<p class='origin'>{origin}</p>" if origin else ""}<ul>{reasons}</ul>
<pre>{_mark_spans(finding)}</pre>{f"<p class='near'>Compare with: {near}</p>" if near else ""}
<fieldset><legend>Decision</legend>{choices}</fieldset></article>
"""


def _mark_spans(finding: Finding) -> str:
    """The text with its spans marked, as far as it is shown."""
    text, parts, at = finding.text[:MAX_TEXT], list[str](), 0
    whole = [span for span in finding.spans if span.end - span.start >= 0.9 * len(finding.text)]
    for span in finding.spans:
        start, end = max(span.start, at), min(span.end, len(text))
        if span in whole or start >= end:
            continue
        parts += [_plain(text[at:start]), f"<mark>{_plain(text[start:end])}</mark>"]
        at = end
    rest = f"… and {len(finding.text) - MAX_TEXT:,} characters more" if len(finding.text) > MAX_TEXT else ""
    return "".join([*parts, _plain(text[at:]), rest])


def _plain(text: str) -> str:
    """Lines of a hostile text, each as `plain` has it."""
    lines = (plain(line) for line in text.split("\n"))
    edges = (" " if text[:1] == " " else "", " " if text[-1:] == " " else "")
    return edges[0] + escape("\n".join(lines)) + edges[1]


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
