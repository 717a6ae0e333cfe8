"""Screenings as people read them: plain text for a terminal, and one self-contained page with the picture of the graph.

Passages are hostile. `plain` takes out what could steer a terminal or turn text around; the page escapes everything
and forbids itself scripts, requests and foreign styles.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from unpoison.core.passages import Passage
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Claim, Contest, Span, Verdict
from unpoison.report.graph_picture import counts, figure
from unpoison.report.html_page import html_page, resource
from unpoison.utils.plain_text import escape_html, excerpt, plain

__all__ = [
    "STATUS",
    "claim_line",
    "cut_of",
    "excerpt",
    "explain",
    "figure",
    "highlight_spans",
    "page",
    "plain",
    "sides",
]

MAX_MARKED = 20
"""Spans of one passage that are highlighted."""


def explain(screening: Screening) -> str:
    """A screening in plain text: what was kept, best first, what was dropped, and why.

    Passages are called by their position in the input, from 0, as in every reason.
    """
    kept, total = len(screening.kept_indices), len(screening.passages)
    lines = [f"{screening.defense}: kept {kept} of {total} passages", f"query: {excerpt(screening.query, 200)}"]
    for heading, indices in (("kept, best first", screening.kept_indices), ("dropped", screening.dropped_indices)):
        if indices:
            lines += ["", heading]
        for index in indices:
            verdict = screening.verdicts[index]
            rank = "" if verdict.rank is None else f"{verdict.rank + 1}."
            lines.append(f"{rank:>5} [{index}] {verdict.score:.4g}  {excerpt(screening.passages[index].text)}")
            lines.append(f"{'':>6}{plain(verdict.reason)}")
            lines += [f"{'':>6}{_span_line(span, screening.passages[index], verdict)}" for span in verdict.spans]
    if screening.contested:
        lines += ["", "contested", *(f"  {excerpt(str(c), 600)} {sides(c)}" for c in screening.contested)]
    if screening.claims:
        lines += ["", "claims", *(f"  {claim_line(claim)}" for claim in screening.claims)]
    if screening.evidence.notes:
        lines += ["", "notes", *(f"  {plain(note)}" for note in screening.evidence.notes)]
    return "\n".join(lines)


def _span_line(span: Span, passage: Passage, verdict: Verdict) -> str:
    whole = (passage.text if span.field == "text" else passage.title) or ""
    state = "cut" if span in verdict.cuts else "suspicious"
    where = f"{span.start}-{span.end}" if span.field == "text" else f"{span.start}-{span.end} of the title"
    return f"{state} {where} ({span.probability:.2f}): {excerpt(whole[span.start : span.end])}"


STATUS = {
    "agreed": "agreed: two or more sources say so",
    "disputed": "disputed: sources contradict each other",
    "single": "single: one source says so",
    "none": "none: no passage says so by itself",
}
"""What the status of an answer means."""

MAX_ORIGINS = 5
"""Sources of a claim that are named."""


def claim_line(claim: Claim) -> str:
    """Such as "Stockholm, weight 2.4: museum.example, city.example (passages 1, 3)"."""
    more = len(claim.origins) - MAX_ORIGINS
    named = ", ".join(claim.origins[:MAX_ORIGINS]) + (f" and {more} more" if more > 0 else "")
    where = f"passage{'s' * (len(claim.passages) > 1)} {', '.join(map(str, claim.passages[:20]))}"
    return excerpt(f"{claim.text}, weight {claim.weight:.3g}: {f'{named} ({where})' if named else where}", 400)


def sides(contest: Contest) -> str:
    """Which passages stand against which: "[0, 2] against [5]"."""
    return excerpt(" against ".join(str(list(rival.passages)) for rival in contest.rivals), 300)


def page(screenings: Sequence[Screening], remark: str = "", kinds: Sequence[Sequence[str]] = ()) -> str:
    """One HTML page that needs nothing else: for each screening the picture of its graph, every verdict and the notes.

    Args:
        screenings: Any number; more than one get an index.
        remark: A sentence under the heading, such as how many screenings were left out.
        kinds: For each screening what its passages are, where that is known: "gold" holds the truth, "poison" was
            planted.
    """
    links = "".join(
        f'<li><a href="#screening-{number}" dir="auto">{escape_html(screening.query, 120)}</a> '
        f"<small>{escape_html(screening.defense)}: {counts(screening)}</small></li>"
        for number, screening in enumerate(screenings, 1)
    )
    index = f'<nav aria-label="Screenings"><ol>{links}</ol></nav>' if len(screenings) > 1 else ""
    remarks = f"<p>{escape_html(remark, 1000)}</p>" if remark else ""
    if kinds:
        remarks += f"<p>{LEGEND}</p>"
    body = "\n".join(
        _section(screening, number, kinds[number - 1] if kinds else ())
        for number, screening in enumerate(screenings, 1)
    )
    return html_page(
        "which passages to trust",
        f"<header><h1>Which passages to trust</h1>{remarks}</header>\n{index}\n<main>\n{body}\n</main>",
        style=resource("page.css"),
    )


LEGEND = (
    'Texts with the truth are <span class="truth">green</span>, planted ones are <span class="poison">red and crossed '
    "out</span>. What matters is the edge of each box: a planted text should be dropped (red edge), the truth kept "
    "(green edge)."
)


def _section(screening: Screening, number: int, kinds: Sequence[str] = ()) -> str:
    owner = f"screening-{number}"
    order = (*screening.kept_indices, *screening.dropped_indices)
    cards = "\n".join(
        _card(screening.verdicts[i], screening.passages[i], owner, kinds[i] if kinds else "") for i in order
    )
    claims = "".join(f"<li>{escape_html(claim_line(claim), 500)}</li>" for claim in screening.claims)
    contested = "".join(
        f"<li>{escape_html(str(contest), 600)} <small>{sides(contest)}</small></li>" for contest in screening.contested
    )
    notes = "".join(f"<li>{escape_html(note)}</li>" for note in screening.evidence.notes)
    return (
        f'<section id="{owner}" aria-labelledby="{owner}-query">\n'
        f'<h2 id="{owner}-query" dir="auto">{escape_html(screening.query)}</h2>\n'
        f'<p class="counts"><strong>{escape_html(screening.defense)}</strong> '
        f'<span class="kept">{len(screening.kept_indices)} kept</span> '
        f'<span class="dropped">{len(screening.dropped_indices)} dropped</span></p>\n'
        + (f'<ul class="notes contested" dir="auto">{contested}</ul>\n' if contested else "")
        + (f'<ol class="notes claims" dir="auto" aria-label="Claims">{claims}</ol>\n' if claims else "")
        + (f'<ul class="notes">{notes}</ul>\n' if notes else "")
        + f'<div class="columns">\n{figure(screening, owner)}\n<ol class="verdicts">\n{cards}\n</ol>\n</div>\n'
        + "</section>"
    )


def _card(verdict: Verdict, passage: Passage, owner: str, kind: str = "") -> str:
    numbers = ""
    if verdict.reason.code:
        numbers = f'<details class="numbers"><summary>the numbers</summary>{escape_html(verdict.reason)}</details>'
    emphasis = {"gold": ' class="truth"', "poison": ' class="poison"'}.get(kind, "")
    state = "dropped" if verdict.rank is None else f"kept, place {verdict.rank + 1}{cut_of(verdict)}"
    origin = " · ".join(escape_html(text, 120) for text in (passage.title, passage.source, passage.id) if text)
    return (
        f'<li id="{owner}-passage-{verdict.index}" class="{"kept" if verdict.kept else "dropped"}">'
        f'<p class="verdict"><b>{verdict.index}</b> <strong>{state}</strong> <span>score {verdict.score:.4g}</span></p>'
        f'<p class="reason">{escape_html(verdict.reason.plain)}</p>{numbers}'
        + (f'<p class="origin" dir="auto">{origin}</p>' if origin else "")
        + "".join(
            f'<p class="reason"><mark class="suspicious">the title</mark> {escape_html(span.reason)}</p>'
            for span in verdict.spans
            if span.field == "title"
        )
        + f'<blockquote dir="auto"{emphasis}>{highlight_spans(passage.text, verdict, 400)}</blockquote></li>'
    )


def highlight_spans(text: str, verdict: Verdict, limit: int) -> str:
    """The beginning of a hostile text as HTML, escaped, the verdict's spans highlighted; with spans, what is near them.

    A span is a `mark` element: `cut` where the passage is kept without it, with probability and reason as its title.

    Args:
        text: The passage's.
        verdict: Of it.
        limit: About so many characters are shown of what is in no span, and of every span.
    """
    spans = [span for span in verdict.spans if span.field == "text"][:MAX_MARKED]
    if not spans:
        return escape(excerpt(text, limit))
    pieces, end = list[str](), 0
    around = max(limit // (2 * len(spans)), 40)
    for span in spans:
        pieces.append(_between(text[end : span.start], around, first=end == 0))
        name = "cut" if span in verdict.cuts else "suspicious"
        title = f"{span.probability:.2f}: {escape_html(span.reason)}"
        shown = _span_excerpt(text[span.start : span.end], limit)
        pieces.append(f'<mark class="{name}" title="{title}">{shown}</mark>')
        end = span.end
    pieces.append(escape(excerpt(text[end:], around)) if text[end:].strip() else "")
    return " ".join(filter(None, pieces))


def _between(text: str, limit: int, *, first: bool) -> str:
    """What stands before a span: its end, and behind another span its beginning too."""
    if len(text) <= 2 * limit:
        return escape(plain(text))
    start = "" if first else plain(text[:limit])
    return escape(f"{start} … {plain(text[-limit:])}".strip())


def _span_excerpt(text: str, limit: int) -> str:
    """A span whose characters may all be invisible."""
    return escape(excerpt(text, limit)) or f"<i>{len(text):,} characters that nobody sees</i>"


def cut_of(verdict: Verdict) -> str:
    """What a kept passage is read without: ", without 1 span", or nothing."""
    count = len(verdict.cuts)
    return f", without {count} {'span' if count == 1 else 'spans'}" if count else ""
