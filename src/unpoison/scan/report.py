"""What a scan found, as a page to work through and as SARIF 2.1.0 for code hosts and security dashboards.

On the page each document is kept, quarantined, or unsure; decisions stay in the browser and are exported as JSON. It is
self-contained. Everything a document holds is escaped; the page's policy lets one script run, ours, known by its hash,
and lets nothing be loaded or sent anywhere.
"""

from __future__ import annotations

from hashlib import blake2b
from html import escape
from typing import Any

from unpoison import __version__
from unpoison.report.html_page import html_page, resource
from unpoison.report.rendering import excerpt, plain
from unpoison.report.sarif import Location, Result, Rule, sarif_log
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
    name = blake2b(
        f"{source} {[finding.id for finding in scan.findings[:MAX_DOCUMENTS]]}".encode("utf-8", "replace"),
        digest_size=8,
    )
    notes = "".join(f"<p class='note'>{escape(plain(note))}</p>" for note in scan.notes)
    body = f"""<header><h1>Scan of {escape(excerpt(source, 120))}</h1>
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
<main>{"".join(_article(finding) for finding in shown) or "<p>No documents were judged.</p>"}</main>"""
    return html_page(
        f"scan of {escape(excerpt(source, 80))}",
        body,
        style=resource("scan.css"),
        script=resource("scan.js"),
        attributes=f' data-scan="{name.hexdigest()}"',
    )


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


RULE = Rule(
    "planted-document",
    "A document of the index is probably planted.",
    "What it says, hides or repeats is what planted documents say, hide or repeat.",
    ("security", "poisoning", "rag"),
    "warning",
)


def sarif(scan: Scan, source: str) -> dict[str, Any]:
    """The flagged documents as results, each with its spans as character regions of the document.

    Args:
        scan: What was found.
        source: What was scanned, as it may be shown.
    """
    run = {"source": source, "documents": scan.documents, "notes": list(scan.notes)}
    return sarif_log([_result(finding) for finding in scan.flagged], [RULE], __version__, run)


def _result(finding: Finding) -> Result:
    file = finding.source or finding.id
    spans = [Location(file, None, (span.start, span.end), finding.id, plain(span.reason)) for span in finding.spans]
    return Result(
        RULE.id,
        "error" if finding.suspicion >= 0.9 else "warning",
        "; ".join(map(plain, finding.reasons)),
        spans or [Location(file, name=finding.id)],
        {"unpoisonDocument/v1": finding.id},
        round(100 * finding.suspicion, 2),
        {"suspicion": finding.suspicion, "group": finding.group, "neighbours": list(finding.neighbours)},
    )
