"""Screenings and answers as tables for a terminal; the contents of passages are shown as plain text."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unpoison.core.answers import Answer
from unpoison.core.screenings import Screening
from unpoison.report.rendering import STATUS, claim_line
from unpoison.utils.plain_text import count_noun, excerpt, plain

if TYPE_CHECKING:
    from unpoison.report.document import Table as TableOfReport

__all__ = ["report_table", "screening_table", "show", "show_answer", "show_listing", "text_table"]


PAGE_WIDTH = 120
"""Columns for output to a file or a pipe."""

MAX_DROPPED = 10
"""Dropped passages listed under an answer."""


MAX_CLAIMS = 5
"""Claims listed under an answer, the heaviest first."""

_KEPT = {True: "kept", False: "gave up", None: ""}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich itself would choose the exit code


def show(*items: object) -> None:
    """Print to standard output; strings are printed as they are, without markup."""
    console = _Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PAGE_WIDTH
    for item in items:
        console.print(Text(plain(item)) if isinstance(item, str) else item)


def show_listing(rows: Sequence[Mapping[str, str]], *, as_json: bool, **looks: Any) -> None:
    """Print rows with the same keys as a table, or as one JSON list."""
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    columns = list(dict.fromkeys(key for row in rows for key in row))
    show(text_table(columns, [[row.get(key, "") for key in columns] for row in rows], **(looks or {"box": None})))


def text_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", right: Collection[str] = (), **looks: Any
) -> Table:
    """A table whose cells are shown as text, line by line, without markup.

    Args:
        columns: Headings.
        rows: Cells.
        title: Above it, at the left.
        right: Headings of the columns with numbers.
        looks: Of `rich.table.Table`.
    """
    table = Table(title=Text(plain(title), style="bold") if title else None, title_justify="left", **looks)
    for column in columns:
        table.add_column(Text(plain(column)), justify="right" if column in right else "left", overflow="fold")
    for cells in rows:
        table.add_row(*(Text("\n".join(map(plain, cell.split("\n")))) for cell in cells))
    return table


def report_table(table: TableOfReport) -> Table:
    """A table of a report, for the terminal."""
    numbers = [name for i, name in enumerate(table.columns) if i and not table.is_text(i)]
    looks = {"caption": Text(plain(table.note)), "caption_justify": "left"} if table.note else {}
    return text_table(table.columns, table.rows, title=table.title, right=numbers, box=None, padding=(0, 1), **looks)


def screening_table(screening: Screening) -> Table:
    """Kept passages best first, then the dropped ones, each with its position, score and reason."""
    read = dict(zip(screening.kept_indices, screening.texts, strict=True))
    verdicts = [screening.verdicts[i] for i in (*screening.kept_indices, *screening.dropped_indices)]
    texts = (excerpt(read[one.index] if one.cuts else screening.passages[one.index].text) for one in verdicts)
    rows = [
        (
            "dropped" if one.rank is None else str(one.rank + 1),
            str(one.index),
            f"{one.score:.4g}",
            text,
            str(one.reason),
        )
        for one, text in zip(verdicts, texts, strict=True)
    ]
    title, numbers = f"{heading(screening)}: {excerpt(screening.query, 120)}", ("place", "passage", "score")
    table = text_table((*numbers, "text", "reason"), rows, title=title, right=numbers, expand=True)
    for column in table.columns:
        column.no_wrap, column.ratio = (True, None) if column.justify == "right" else (False, 1)
    for row, verdict in zip(table.rows, verdicts, strict=True):
        row.style = "green" if verdict.kept else "red"
    remarks = [*(excerpt(str(contest), 600) for contest in screening.contested), *map(plain, screening.evidence.notes)]
    if remarks:
        table.caption = Text("; ".join(remarks))
    return table


def heading(screening: Screening) -> str:
    return f"{screening.defense} kept {len(screening.kept_indices)} of {count_noun(len(screening.passages), 'passage')}"


def show_answer(answer: Answer, generator: str) -> None:
    """An answer with the passages that it rests on and the ones that were dropped."""
    screening = answer.screening
    show(
        Text(excerpt(screening.query, 200), style="bold"),
        Text(f"{excerpt(answer.text, 2000)}", style="yellow" if answer.abstained else "green"),
        f"answered by {generator}; {heading(screening)}",
    )
    if answer.status is not None:
        show(Text(STATUS[answer.status], style="green" if answer.status == "agreed" else "yellow"))
    for claim in answer.claims[:MAX_CLAIMS]:
        show(f"- {claim_line(claim)}")
    if "withheld" in answer.details:
        show(Text(plain(screening.evidence.notes[-1]), style="yellow"), *filter(None, [answer.proof]))
    elif answer.guarantee is not None:
        show(Text(answer.promise, style="green" if answer.guarantee else "yellow"))
    for contest in answer.contested:
        show(Text(excerpt(str(contest), 600), style="yellow"))
    if answer.belief is not None:
        previous = "" if answer.belief.previous is None else f"{_KEPT[answer.belief.kept]} {answer.belief.previous!r}: "
        show(f"memory: {previous}{answer.belief.reason}")
    for index in screening.dropped_indices[:MAX_DROPPED]:
        show(f"- dropped passage {index}: {screening.verdicts[index].reason}")
    if (more := len(screening.dropped_indices) - MAX_DROPPED) > 0:
        show(f"- and {more:,} more; --json has the reasons")
    show("")
