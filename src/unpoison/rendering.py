"""Screenings as people read them: plain text for a terminal, and one self-contained page with the picture of the graph.

Passages are hostile. `plain` takes out what could steer a terminal or turn text around; the page escapes everything
and forbids itself scripts, requests and foreign styles.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from unpoison.plain_words import in_plain_words
from unpoison.types import Contest, Passage, Screening, Span, Verdict

__all__ = ["cut_of", "excerpt", "explain", "figure", "marked", "page", "plain", "sides"]

MAX_DRAWN = 60
"""More nodes than this cannot be told apart in the picture."""

EDGES_PER_NODE = 3
"""The strongest edges that the picture draws, per node on average."""

MAX_MARKED = 20
"""Spans of one passage that are highlighted."""

CROWDED = 25
"""With more nodes than this, lines, nodes and labels are drawn finer."""

WIDTH, HEIGHT = 560, 480
"""The picture's size in SVG units."""

# Escape sequences as terminals read them: operating-system commands to their end, control sequences, then the rest.
_ESCAPES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?"
)

# Joiners shape Persian and Indic words and emoji; every other format character is invisible or turns text around.
_JOINERS = "\u200c\u200d"


def plain(text: str) -> str:
    """A hostile text on one line that cannot steer a terminal or turn text around.

    Without escape sequences, control and format characters; lone surrogates become question marks.
    """
    kept = (c for c in _ESCAPES.sub("", text) if _shown(c))
    return " ".join("".join(kept).split()).encode("utf-8", "replace").decode()


def _shown(character: str) -> bool:
    return character in _JOINERS or character.isspace() or unicodedata.category(character) not in ("Cc", "Cf")


def excerpt(text: str, limit: int = 80) -> str:
    """The first `limit` characters of `plain(text)`, with an ellipsis where something follows."""
    line = plain(text[: 20 * limit])  # a passage may be megabytes long
    return line if len(line) <= limit and len(text) <= 20 * limit else f"{line[: limit - 1].rstrip()}…"


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
            place = "" if verdict.rank is None else f"{verdict.rank + 1}."
            lines.append(f"{place:>5} [{index}] {verdict.score:.4g}  {excerpt(screening.passages[index].text)}")
            lines.append(f"{'':>6}{plain(verdict.reason)}")
            lines += [f"{'':>6}{_told(span, screening.passages[index], verdict)}" for span in verdict.spans]
    if screening.contested:
        lines += ["", "contested", *(f"  {excerpt(str(c), 600)} {sides(c)}" for c in screening.contested)]
    if screening.evidence.notes:
        lines += ["", "notes", *(f"  {plain(note)}" for note in screening.evidence.notes)]
    return "\n".join(lines)


def _told(span: Span, passage: Passage, verdict: Verdict) -> str:
    whole = (passage.text if span.field == "text" else passage.title) or ""
    said = "cut" if verdict.kept else "suspicious"
    where = f"{span.start}-{span.end}" if span.field == "text" else f"{span.start}-{span.end} of the title"
    return f"{said} {where} ({span.probability:.2f}): {excerpt(whole[span.start : span.end])}"


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
    style = _style()
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    links = "".join(
        f'<li><a href="#screening-{number}" dir="auto">{_escaped(screening.query, 120)}</a> '
        f"<small>{_escaped(screening.defense)}: {_counts(screening)}</small></li>"
        for number, screening in enumerate(screenings, 1)
    )
    index = f'<nav aria-label="Screenings"><ol>{links}</ol></nav>' if len(screenings) > 1 else ""
    told = f"<p>{_escaped(remark, 1000)}</p>" if remark else ""
    if kinds:
        told += f"<p>{LEGEND}</p>"
    body = "\n".join(
        _section(screening, number, kinds[number - 1] if kinds else ())
        for number, screening in enumerate(screenings, 1)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>unpoison: which passages to trust</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header><h1>Which passages to trust</h1>{told}</header>\n{index}\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


@cache
def _style() -> str:
    return files("unpoison").joinpath("data", "page.css").read_text(encoding="utf-8")


def _escaped(text: str, limit: int = 400) -> str:
    return escape(excerpt(text, limit))


def _counts(screening: Screening) -> str:
    return f"{len(screening.kept_indices)} kept, {len(screening.dropped_indices)} dropped"


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
    contested = "".join(
        f"<li>{_escaped(str(contest), 600)} <small>{sides(contest)}</small></li>" for contest in screening.contested
    )
    notes = "".join(f"<li>{_escaped(note)}</li>" for note in screening.evidence.notes)
    return (
        f'<section id="{owner}" aria-labelledby="{owner}-query">\n'
        f'<h2 id="{owner}-query" dir="auto">{_escaped(screening.query)}</h2>\n'
        f'<p class="counts"><strong>{_escaped(screening.defense)}</strong> '
        f'<span class="kept">{len(screening.kept_indices)} kept</span> '
        f'<span class="dropped">{len(screening.dropped_indices)} dropped</span></p>\n'
        + (f'<ul class="notes contested" dir="auto">{contested}</ul>\n' if contested else "")
        + (f'<ul class="notes">{notes}</ul>\n' if notes else "")
        + f'<div class="columns">\n{figure(screening, owner)}\n<ol class="verdicts">\n{cards}\n</ol>\n</div>\n'
        + "</section>"
    )


def _card(verdict: Verdict, passage: Passage, owner: str, kind: str = "") -> str:
    told = in_plain_words(verdict.reason, kept=verdict.kept)
    numbers = ""
    if told.words.lower() != told.numbers.lower():
        numbers = f'<details class="numbers"><summary>the numbers</summary>{_escaped(told.numbers)}</details>'
    emphasis = {"gold": ' class="truth"', "poison": ' class="poison"'}.get(kind, "")
    state = "dropped" if verdict.rank is None else f"kept, place {verdict.rank + 1}{cut_of(verdict)}"
    origin = " · ".join(_escaped(text, 120) for text in (passage.title, passage.source, passage.id) if text)
    return (
        f'<li id="{owner}-passage-{verdict.index}" class="{"kept" if verdict.kept else "dropped"}">'
        f'<p class="verdict"><b>{verdict.index}</b> <strong>{state}</strong> <span>score {verdict.score:.4g}</span></p>'
        f'<p class="reason">{_escaped(told.words)}</p>{numbers}'
        + (f'<p class="origin" dir="auto">{origin}</p>' if origin else "")
        + "".join(
            f'<p class="reason"><mark class="suspicious">the title</mark> {_escaped(span.reason)}</p>'
            for span in verdict.spans
            if span.field == "title"
        )
        + f'<blockquote dir="auto"{emphasis}>{marked(passage.text, verdict, 400)}</blockquote></li>'
    )


def marked(text: str, verdict: Verdict, limit: int) -> str:
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
    pieces, place = list[str](), 0
    around = max(limit // (2 * len(spans)), 40)
    for span in spans:
        pieces.append(_between(text[place : span.start], around, first=place == 0))
        name = "cut" if verdict.kept else "suspicious"
        title = f"{span.probability:.2f}: {_escaped(span.reason)}"
        shown = _shortened(text[span.start : span.end], limit)
        pieces.append(f'<mark class="{name}" title="{title}">{shown}</mark>')
        place = span.end
    pieces.append(escape(excerpt(text[place:], around)) if text[place:].strip() else "")
    return " ".join(filter(None, pieces))


def _between(text: str, limit: int, *, first: bool) -> str:
    """What stands before a span: its end, and behind another span its beginning too."""
    if len(text) <= 2 * limit:
        return escape(plain(text))
    start = "" if first else plain(text[:limit])
    return escape(f"{start} … {plain(text[-limit:])}".strip())


def _shortened(text: str, limit: int) -> str:
    """A span whose characters may all be invisible."""
    return escape(excerpt(text, limit)) or f"<i>{len(text):,} characters that nobody sees</i>"


def cut_of(verdict: Verdict) -> str:
    """What a kept passage is read without: ", without 1 span", or nothing."""
    count = len(verdict.spans) if verdict.kept else 0
    return f", without {count} {'span' if count == 1 else 'spans'}" if count else ""


def figure(screening: Screening, owner: str) -> str:
    """The picture as HTML, escaped, with its legend and what it leaves out; nodes link to `#OWNER-passage-INDEX`."""
    graph, name = _graph(screening), screening.evidence.graph or ""
    if graph is None:
        return (
            "<figure><figcaption>No pairs of passages were compared: there is no graph to draw.</figcaption></figure>"
        )
    nodes = np.array(sorted((*screening.kept_indices, *screening.dropped_indices)[:MAX_DRAWN]), dtype=int)
    weights = graph[np.ix_(nodes, nodes)]
    first, second = np.nonzero(np.triu(weights, 1))
    strongest = np.argsort(-weights[first, second], kind="stable")[: EDGES_PER_NODE * len(nodes)]
    places = _places(weights)
    edges = "".join(_edges(first[strongest], second[strongest], weights, places, nodes))
    dots = "".join(_nodes(screening, nodes, places, owner))
    left_out = (
        f" {len(nodes)} of {len(graph)} passages are drawn, the kept ones first." if len(nodes) < len(graph) else ""
    )
    if len(strongest) < len(first):
        left_out += f" The {len(strongest)} strongest of {len(first)} edges are drawn."
    crowded = ' class="crowded"' if len(nodes) > CROWDED else ""
    label = f"Similarity graph of {len(nodes)} passages: {_counts(screening)}"
    return (
        f'<figure>\n<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{label}"{crowded}>\n'
        f"{edges}\n{dots}\n</svg>\n"
        '<figcaption><span class="kept">● kept</span> <span class="dropped">■ dropped</span> '
        f"A larger node has a higher score; a thicker line is a higher value of “{_escaped(name)}”, at most "
        f"{weights.max(initial=0):.4g} here. Similar passages stand close together.{left_out}</figcaption>\n</figure>"
    )


def _graph(screening: Screening) -> NDArray[np.float64] | None:
    """The array to draw as symmetric, finite weights of 0 or more, shape (k, k); None where there is none."""
    array = screening.evidence.get(screening.evidence.graph or "")
    k = len(screening.passages)
    if array is None or k == 0 or array.shape != (k, k) or array.dtype.kind not in "biuf":
        return None
    weights: NDArray[np.float64] = np.nan_to_num(array.astype(float), nan=0.0, posinf=0.0, neginf=0.0)
    weights = np.maximum(np.maximum(weights, weights.T), 0.0)
    np.fill_diagonal(weights, 0.0)
    return weights


def _places(weights: NDArray[np.float64], rounds: int = 120) -> NDArray[np.float64]:
    """Where the nodes stand, shape (k, 2) in SVG units: similar ones close together, the same bytes every time.

    Starts on a circle in index order and lowers the stress of the distances "1 less similarity" (the SMACOF iteration
    of multidimensional scaling), O(k^2) a round.
    """
    k = len(weights)
    angles = 2 * np.pi * np.arange(k) / k - np.pi / 2
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    wanted = 1.0 - 0.55 * weights / (weights.max(initial=0) or 1.0)  # never 0, so that copies do not cover each other
    np.fill_diagonal(wanted, 0.0)
    for _ in range(rounds if k > 2 else 0):
        distances = np.linalg.norm(places[:, None] - places[None], axis=2)
        pull = -np.divide(wanted, distances, out=np.zeros_like(wanted), where=distances > 1e-9)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        places = pull @ places / k
    places -= (places.max(axis=0) + places.min(axis=0)) / 2
    margin = 34.0
    room = np.array([WIDTH / 2 - margin, HEIGHT / 2 - margin])
    scale = (room / np.maximum(np.abs(places).max(axis=0), 1e-9)).min() if k > 1 else 0.0
    return np.round(places * scale + [WIDTH / 2, HEIGHT / 2], 1)


def _edges(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    weights: NDArray[np.float64],
    places: NDArray[np.float64],
    nodes: NDArray[np.int64],
) -> Iterator[str]:
    """The weakest first, so that the strongest lie on top."""
    thickness, darkness = (5.0, 0.6) if len(nodes) <= CROWDED else (2.0, 0.3)
    top = weights.max(initial=0) or 1.0
    for i, j in zip(first[::-1].tolist(), second[::-1].tolist(), strict=True):
        share = weights[i, j] / top
        (x1, y1), (x2, y2) = places[i], places[j]
        yield (
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke-width="{0.5 + thickness * share:.2f}" '
            f'stroke-opacity="{0.15 + darkness * share:.2f}">'
            f"<title>{nodes[i]} and {nodes[j]}: {weights[i, j]:.4g}</title></line>\n"
        )


def _nodes(screening: Screening, nodes: NDArray[np.int64], places: NDArray[np.float64], owner: str) -> Iterator[str]:
    """Circles for kept, squares for dropped: the picture does not rest on colour alone."""
    scores = np.nan_to_num([screening.verdicts[i].score for i in nodes.tolist()], nan=0.0, posinf=0.0, neginf=0.0)
    spread = np.ptp(scores) or 1.0
    smallest, growth = (11.0, 9.0) if len(nodes) <= CROWDED else (9.0, 5.0)
    for index, score, (x, y) in zip(nodes.tolist(), scores.tolist(), places.tolist(), strict=True):
        verdict = screening.verdicts[index]
        radius = smallest + growth * (score - scores.min()) / spread
        if verdict.kept:
            shape = f'<circle cx="{x}" cy="{y}" r="{radius:.1f}"/>'
        else:
            side = 1.8 * radius
            shape = (
                f'<rect x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side:.1f}" height="{side:.1f}" rx="3"/>'
            )
        title = f"passage {index}, {'kept' if verdict.kept else 'dropped'}: {_escaped(verdict.reason)}"
        yield (
            f'<a href="#{owner}-passage-{index}" class="{"kept" if verdict.kept else "dropped"}"><title>{title}</title>'
            f'{shape}<text x="{x}" y="{y}">{index}</text></a>\n'
        )
