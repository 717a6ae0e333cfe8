"""Screenings as people read them: plain text for a terminal, and one self-contained page.

Passages are hostile: `plain` removes control characters and marks of direction, and the templates escape.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from unpoison.core.passages import Passage
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Claim, Contest, Span, Verdict
from unpoison.report.document import render
from unpoison.sources.sources import Standing
from unpoison.utils.plain_text import excerpt, first_of, plain

__all__ = ["STATUS", "claim_line", "explain", "preview", "sources_of"]


MAX_MARKED = 20
"""Spans of one passage that are highlighted."""


def explain(screening: Screening) -> str:
    """A screening in plain text: kept passages, best first, and dropped ones, with reasons.

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
            lines.append(f"{'':>6}{plain(str(verdict.reason))}")
            lines += [f"{'':>6}{_span_line(span, screening.passages[index], verdict)}" for span in verdict.spans]
    if screening.contested:
        lines += ["", "contested", *(f"  {excerpt(str(c), 600)} {sides(c)}" for c in screening.contested)]
    if screening.claims:
        lines += ["", "claims", *(f"  {claim_line(claim)}" for claim in screening.claims)]
    if screening.evidence.notes:
        lines += ["", "notes", *(f"  {plain(note)}" for note in screening.evidence.notes)]
    return "\n".join(lines)


def table(screening: Screening, answer: str = "") -> str:
    """The text of `explain` as an HTML table for a notebook, everything escaped.

    Args:
        screening: The screening.
        answer: A sentence above it.
    """
    kept, total = len(screening.kept_indices), len(screening.passages)
    rows = []
    for index in (*screening.kept_indices, *screening.dropped_indices):
        verdict, passage = screening.verdicts[index], screening.passages[index]
        fate = "dropped" if verdict.rank is None else f"kept, {verdict.rank + 1}."
        cells = (str(index), fate, excerpt(passage.text, 200), passage.origin, plain(str(verdict.reason)))
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    heading = "".join(f"<th>{name}</th>" for name in ("passage", "verdict", "text", "source", "reason"))
    caption = escape(f"{screening.defense}: kept {kept} of {total} passages")
    above = f"<p>{escape(plain(answer))}</p>" if answer else ""
    return f"{above}<table><caption>{caption}</caption><tr>{heading}</tr>{''.join(rows)}</table>"


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
"""Meanings of the status of an answer."""

MAX_ORIGINS = 5
"""Sources of a claim that are named."""


def claim_line(claim: Claim) -> str:
    """Such as "Stockholm, weight 2.4: museum.example, city.example (passages 1, 3)"."""
    named = first_of(claim.origins, MAX_ORIGINS)
    where = f"passage{'s' * (len(claim.passages) > 1)} {', '.join(map(str, claim.passages[:20]))}"
    return excerpt(f"{claim.text}, weight {claim.weight:.3g}: {f'{named} ({where})' if named else where}", 400)


def sides(contest: Contest) -> str:
    """Passages of rival answers: "[0, 2] against [5]"."""
    return excerpt(" against ".join(str(list(rival.passages)) for rival in contest.rivals), 300)


class SourceRow(NamedTuple):
    """One source of a screening.

    Attributes:
        name: The origin, "" for a passage without one.
        level: Its standing (`sources.Standing`).
        trust: The weight of its word, in [0, 1].
        passages: Positions of its passages, ascending.
    """

    name: str
    level: str
    trust: float
    passages: tuple[int, ...]


def sources_of(standings: Sequence[Standing]) -> tuple[SourceRow, ...]:
    """The sources in the order in which they first speak; a passage without an origin is a source of its own."""
    rows: dict[str | int, SourceRow] = {}
    for i, one in enumerate(standings):
        key: str | int = one.origin or i
        before = rows.get(key, SourceRow(one.origin, one.level, one.trust, ()))
        strongest = max(before, SourceRow(one.origin, one.level, one.trust, ()), key=lambda row: row.trust)
        rows[key] = strongest._replace(passages=(*before.passages, i))
    return tuple(rows.values())


def preview(screening: Screening, sources: Sequence[SourceRow], **more: object) -> str:
    """One screening with every number, in pieces for the slots of the playground.

    Args:
        screening: The screening.
        sources: Who says it.
        more: `answer` and `undefended`, or None; `threshold` and `probability` (shape (k,)), or None for both;
            `status`, `trust` and `reads` (`serve.playground`).
    """
    return render("preview.html", screening=screening, sources=sources, **HELPERS, **more)


class Piece(NamedTuple):
    """A stretch of a passage as it is shown: in a span `mark` is "cut" or "suspicious", and `title` says why."""

    text: str
    mark: str = ""
    title: str = ""
    length: int = 0


def pieces_of(text: str, verdict: Verdict, limit: int) -> list[Piece]:
    """The beginning of a text with the verdict's spans, or the text around them.

    A span is `cut` where the passage is kept without it. All its characters may be invisible: then its text is empty.

    Args:
        text: The passage's.
        verdict: Of it.
        limit: Approximate characters shown outside spans, and of every span.
    """
    spans = [span for span in verdict.spans if span.field == "text"][:MAX_MARKED]
    if not spans:
        return [Piece(excerpt(text, limit))]
    pieces, end = list[Piece](), 0
    around = max(limit // (2 * len(spans)), 40)
    for span in spans:
        before = text[end : span.start]
        pieces.append(Piece(_with_edges(before, _between(before, around, first=end == 0))))
        mark, title = "cut" if span in verdict.cuts else "suspicious", f"{span.probability:.2f}: {span.reason}"
        shown = excerpt(text[span.start : span.end], limit)
        pieces.append(Piece(shown, mark, excerpt(title, 400), span.end - span.start))
        end = span.end
    return [*pieces, Piece(_with_edges(text[end:], excerpt(text[end:], around) if text[end:].strip() else ""))]


def _with_edges(text: str, shown: str) -> str:
    """The excerpt of a segment, with its leading and trailing space, because spans may split words."""
    begin, end = (" " if edge.isspace() else "" for edge in (text[:1], text[-1:]))
    return f"{begin}{shown.strip()}{end}" if shown.strip() else begin


def _between(text: str, limit: int, *, first: bool) -> str:
    """The text before a span: its end, and after another span its beginning too."""
    if len(text) <= 2 * limit:
        return plain(text)
    start = "" if first else plain(text[:limit])
    return f"{start} … {plain(text[-limit:])}".strip()


def cuts_of(verdict: Verdict) -> str:
    """The spans cut from a kept passage: ", without 1 span", or nothing."""
    count = len(verdict.cuts)
    return f", without {count} {'span' if count == 1 else 'spans'}" if count else ""


HELPERS = {"claim_line": claim_line, "sides": sides, "pieces_of": pieces_of, "cuts_of": cuts_of}
"""The functions that the templates of a screening call."""
