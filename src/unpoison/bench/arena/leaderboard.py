"""The leaderboard: results as tables, a picture of harm against protection, a feed and a badge.

A page is generated whole; nobody edits it. Entries stand by what they leave of the poison that others published, and
those that lose more than they save are not hidden: the frontier says which entries no other beats in both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import inf
from pathlib import Path
from typing import Any

from unpoison.algorithms.intervals import Estimate
from unpoison.bench.arena.injection import ALARMS
from unpoison.bench.arena.run import SIZES
from unpoison.bench.arena.screening import HARM
from unpoison.bench.arena.tasks import VERSION
from unpoison.bench.report.exports import markdown_code, markdown_text
from unpoison.report.charts import Scatter
from unpoison.report.svg_file import svg_file
from unpoison.utils.plain_text import plain

__all__ = ["badge", "feed", "frontier", "markdown", "picture", "text_table", "write_page"]

Row = dict[str, Any]

COLUMNS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "screening": [
        ("clean lost", ("clean lost", "mean")),
        ("worst", ("clean lost", "worst")),
        ("true sentence lost", ("truth lost",)),
        ("published left", ("published left", "mean")),
        ("worst", ("published left", "worst")),
        ("ours left", ("ours left", "mean")),
        ("worst", ("ours left", "worst")),
    ],
    "answers": [
        ("right without poison", ("right without poison",)),
        ("disputed without poison", ("disputed without poison",)),
        ("wrong under attack", ("wrong", "mean")),
        ("worst", ("wrong", "worst")),
    ],
    "injection": [("harmless flagged", ("flagged",)), ("found", ("found",))],
    "at-rest": [("first ten, single", ("single",)), ("first ten, grouped", ("grouped",))],
}
"""Of each track the numbers of the table: a heading, and where the number stands in a score."""

ORDER: dict[str, tuple[tuple[str, ...], int]] = {
    "screening": (("published left", "mean"), 1),
    "answers": (("wrong", "mean"), 1),
    "injection": (("found",), -1),
    "at-rest": (("single",), -1),
}
"""What a track's table is sorted by, and whether less is better (1) or more (-1)."""

THRESHOLDS = {"equal harm": "at equal harm", "own": "at its own threshold"}
"""The tables of a track. Equal terms come first: who drops half of all texts leaves little poison too."""

EQUAL = {
    "screening": f"{HARM:.0%} of the clean passages lost",
    "injection": f"{ALARMS:.1%} of the harmless texts flagged",
}
"""What equal harm is in a track."""
TITLES = {
    "screening": "Screening: what is left of planted texts",
    "answers": "Answers: what comes out",
    "injection": "Injection: orders to a model",
    "at-rest": "At rest: poison that lies in a collection",
}


INTRODUCTION = """\
# Arena

A fixed set of tasks on which every defense is measured in the same way: clean retrievals of many kinds, poison that
others published, attacks of ours, answers by the same reader (entries in `-base`: by the larger one), prompt
injections, and poison that lies in a collection.
How it works, and how to take part: [evaluation](evaluation.md#the-arena). This page is generated from the result files
by `unpoison arena table --page docs/arena.md`; the same as [JSON](arena.json).
"""


def write_page(results: Sequence[Row], page: Path) -> list[Path]:
    """Write the page and, beside it, its picture, the feed and Guard's badge; what was written.

    Raises:
        OSError: It cannot be written.
    """
    beside = page.parent / "pictures"
    beside.mkdir(parents=True, exist_ok=True)
    files = {
        page: markdown(results, INTRODUCTION, "pictures/arena.svg"),
        page.with_suffix(".json"): feed(results),
        beside / "arena.svg": picture(results),
    }
    for result in results:
        if result["entry"]["name"] == "guard" and "screening" in result["tracks"]:
            files[beside / "arena-badge.svg"] = badge(result)
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return list(files)


def _number(score: Mapping[str, Any], where: Sequence[str]) -> float | None:
    value: Any = score
    for name in where:
        value = value.get(name) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, (int, float)) else None


def rows_of(results: Iterable[Row], track: str, table: str) -> list[tuple[Row, Row]]:
    """The results of a track with their scores, best first."""
    where, sign = ORDER[track]
    scored = [(result, result["tracks"][track]["score"].get(table)) for result in results if track in result["tracks"]]
    present = [(result, score) for result, score in scored if score]

    def place(pair: tuple[Row, Row]) -> tuple[float, str]:
        number = _number(pair[1], where)
        return (inf if number is None else sign * number, pair[0]["entry"]["name"])

    return sorted(present, key=place)


def frontier(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The names that no other beats: less or equal in both numbers, and less in one; O(n^2)."""
    return [
        name
        for name, (x, y) in points.items()
        if not any(a <= x and b <= y and (a < x or b < y) for other, (a, b) in points.items() if other != name)
    ]


def _points(results: Iterable[Row], table: str = "own") -> dict[str, tuple[float, float]]:
    points = {}
    for result, score in rows_of(results, "screening", table):
        harm, left = _number(score, ("clean lost", "mean")), _number(score, ("published left", "mean"))
        if harm is not None and left is not None:
            points[result["entry"]["name"]] = (harm, left)
    return points


def picture(results: Sequence[Row]) -> str:
    """Harm against what is left of published poison, one point an entry; best is the lower left corner."""
    points = _points(results)
    best = frontier(points)
    marked = tuple(
        (f"{name} *" if name in best else name, i, Estimate(x, x, x, 1), Estimate(y, y, y, 1))
        for i, (name, (x, y)) in enumerate(points.items())
    )
    title = "Published poison left against clean passages lost; entries with a star are beaten by nobody in both"
    return svg_file(Scatter(title, "clean passages lost", "published poison left", marked))


def feed(results: Sequence[Row]) -> str:
    """All scores as JSON."""
    entries = [
        {
            "entry": result["entry"],
            "made": result["made"],
            "digest": result["digest"],
            "size": result["size"],
            "scores": {track: content["score"] for track, content in result["tracks"].items()},
        }
        for result in results
    ]
    return json.dumps({"arena": VERSION, "entries": entries}, indent=1, sort_keys=True) + "\n"


def badge(result: Row) -> str:
    """A small picture for a README: what an entry leaves of published poison, and what it costs."""
    score = result["tracks"]["screening"]["score"]["own"]
    left_over, lost = (_cell(_number(score, (name, "mean"))) for name in ("published left", "clean lost"))
    text = f"poison left {left_over}, clean lost {lost}"
    name = escape(f"arena {VERSION}: {result['entry']['name']}")
    left, right = 7 * len(name) + 16, 7 * len(text) + 16
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="22" role="img" '
        f'aria-label="{name}, {text}" font-family="system-ui, sans-serif" font-size="12">'
        f'<rect width="{left + right}" height="22" rx="4" fill="#1d2329"/>'
        f'<path d="M{left} 0h{right - 4}a4 4 0 0 1 4 4v14a4 4 0 0 1-4 4H{left}z" fill="#1b6e47"/>'
        f'<g fill="#fff" dominant-baseline="central"><text x="8" y="11">{name}</text>'
        f'<text x="{left + 8}" y="11">{text}</text></g></svg>\n'
    )


def _cell(number: float | None) -> str:
    return "-" if number is None else f"{100 * number:.1f} %"


def _tables(results: Sequence[Row]) -> list[tuple[str, str, list[str], list[list[str]]]]:
    """Track, threshold, headings and cells of every table that has rows."""
    tables = []
    for track, columns in COLUMNS.items():
        for table in THRESHOLDS:
            ranked = rows_of(results, track, table)
            cells = [
                [result["entry"]["name"], *(_cell(_number(score, where)) for _, where in columns)]
                for result, score in ranked
            ]
            if cells:
                tables.append((track, table, ["entry", *(heading for heading, _ in columns)], cells))
    return tables


def text_table(results: Sequence[Row]) -> str:
    """All tables for a terminal, in Markdown, which pastes well."""
    parts = [
        f"{track}, {_where(track, table)}\n\n{_markdown_table(headings, cells)}"
        for track, table, headings, cells in _tables(results)
    ]
    absent = [plain(f"{r['entry']['name']}: {task}: {reason}") for r in results for task, reason in r["absent"].items()]
    return "\n\n".join(parts) + ("\n\nnot measured:\n" + "\n".join(absent) if absent else "")


def _where(track: str, table: str) -> str:
    return THRESHOLDS[table] + (f" (at most {EQUAL[track]})" if table == "equal harm" else "")


def _markdown_table(headings: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "| --- |" + " ---: |" * (len(headings) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in cells)])


def markdown(results: Sequence[Row], introduction: str, picture_at: str) -> str:
    """The page: introduction, picture, who leads, a table for each track and threshold, who took part."""
    sizes = sorted({result["size"] for result in results})
    measured = " and ".join(f"{SIZES[size].screening} questions of each screening task (`{size}`)" for size in sizes)
    parts = [
        introduction.rstrip(),
        f"Measured on {measured}; intervals are in the result files.",
        f"![{_frontier_sentence(results)}]({picture_at})",
        _frontier_sentence(results),
    ]
    seen_track = ""
    for track, table, headings, cells in _tables(results):
        if track != seen_track:
            parts += [f"## {TITLES[track]}", _leader(track, table, cells)]
            seen_track = track
        parts += [f"{_where(track, table).capitalize()}:", _markdown_table(headings, cells)]
        if track == "screening":
            parts.append(_families(results, table))
    parts += ["## Who took part", _entries(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _frontier_sentence(results: Sequence[Row]) -> str:
    points = _points(results)
    best = ", ".join(f"{name} ({100 * points[name][0]:.1f} / {100 * points[name][1]:.1f})" for name in frontier(points))
    return f"No entry loses fewer clean passages and leaves less published poison than (percent lost / left): {best}."


def _leader(track: str, table: str, cells: Sequence[Sequence[str]]) -> str:
    first = cells[0][0]
    place = next((i for i, row in enumerate(cells) if row[0].startswith("guard")), None)
    guard = "" if place in (None, 0) else f" Guard is number {(place or 0) + 1} of {len(cells)} by the first number."
    terms = " at equal harm" if table == "equal harm" else ""
    return f"`{first}` leads{terms} by the number that the tables are sorted by ({ORDER[track][0][0]}).{guard}"


def _families(results: Sequence[Row], table: str) -> str:
    """The whole table of a track: a line for each family."""
    ranked = [result for result, _ in rows_of(results, "screening", table)]
    shown = {r["entry"]["name"]: r["tracks"]["screening"]["tables"].get(table, {}) for r in ranked}
    tasks = dict.fromkeys(task for content in shown.values() for task in content)
    lines = [[markdown_text(task), *(_shares(content.get(task)) for content in shown.values())] for task in tasks]
    body = _markdown_table(["task", *shown], lines)
    return f'??? note "Every task, {THRESHOLDS[table]}"\n\n' + "\n".join(f"    {line}" for line in body.split("\n"))


def _shares(cells: Mapping[str, Mapping[str, Any]] | None) -> str:
    """One number for each count of texts, in percent."""
    if not cells:
        return "-"
    shares = (_number(cell, ("value",)) for cell in cells.values())
    return " / ".join("-" if share is None else f"{100 * share:.0f}" for share in shares)


def _entries(results: Sequence[Row]) -> str:
    lines = [
        [
            r["entry"]["name"],
            markdown_code(r["entry"]["defense"]),
            *map(markdown_text, (r["entry"]["encoder"], r["entry"]["about"] or "-", r["entry"]["seen"] or "nothing")),
            f"`unpoison arena run -d {r['entry']['name']}{' --quick' if r['size'] == 'quick' else ''}`",
            markdown_text(r["made"]["date"]),
        ]
        for r in results
    ]
    headings = ["entry", "defense", "encoder", "what it is", "fitted on, of this data", "command", "measured"]
    return _markdown_table(headings, lines).replace("---: |", "--- |")
