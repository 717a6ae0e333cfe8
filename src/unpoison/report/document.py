"""A report as data: sections of tables and sentences. `report.html` draws it; a table is Markdown too.

Every page is a jinja2 template of the folder `templates`: one layout, one style sheet, nothing from outside. Its texts
may be hostile: everything a template writes is escaped, and invisible characters are removed, so no template can forget
it. The content security policy of a page allows its own style and script by their hashes and nothing else.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unpoison.errors import OptionError, clip
from unpoison.utils.extras import install_command
from unpoison.utils.files import write_file
from unpoison.utils.plain_text import excerpt, plain, without_invisible

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = [
    "PAGE_SUFFIXES", "Section", "Table", "check_suffix", "document", "markdown_table", "markdown_text", "render",
    "resource", "write_text",
]  # fmt: skip


def render(template: str, /, **data: Any) -> str:
    """A page, or a piece of one.

    Args:
        template: A file of the folder.
        data: Its values; texts may be hostile. A missing name is an error.
    """
    return _environment().get_template(template).render(data)


@cache
def resource(name: str) -> str:
    """A file of the folder as text."""
    return files("unpoison.report").joinpath("templates", name).read_text(encoding="utf-8")


def _clean(value: object) -> object:
    """The output of a template expression: numbers and markup unchanged, everything else as harmless text."""
    return value if isinstance(value, (int, float)) or hasattr(value, "__html__") else without_invisible(str(value))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # here: commands without a page do not load it
    from markupsafe import Markup

    def exact(text: str) -> Markup:
        return Markup.escape(text.encode("utf-8", "replace").decode())

    environment = Environment(
        loader=FunctionLoader(resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    environment.globals["install_command"] = install_command
    environment.globals["own_file"] = lambda name: Markup(resource(name))  # noqa: S704  ours, not a user's
    environment.filters |= {
        "digest": lambda text: f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}",
        "exact": exact,
        "quoted": json.dumps,  # ASCII that JSON.parse reads: harmless in the page's source too
        "moment": lambda time: f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        "excerpt": lambda value, limit: excerpt(str(value), limit),
        "thousands": "{:,}".format,
    }
    return environment


_WORD = re.compile(r"[^\W\d_]{3}")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text.

    Attributes:
        title: Its heading.
        columns: The headings; the first column names the rows.
        rows: One text per column; text behind " [" is set small.
        hints: Tooltips of the headings; may be shorter than `columns`.
        quotes: A text below the name of each row; empty for none.
        flagged: Rows to look at.
        note: A sentence below the title; "" for none.
        breadth: Columns beside the first one that fit on a page; a broader table goes on below with the same rows.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    hints: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    flagged: frozenset[int] = frozenset()
    note: str = ""
    breadth: int = 6

    @property
    def parts(self) -> list[list[int]]:
        """The columns after the first one."""
        columns = list(range(1, len(self.columns)))
        return [columns[start : start + self.breadth] for start in range(0, len(columns), self.breadth)] or [[]]

    def split(self, breadth: int) -> Iterator[Table]:
        """The table in parts with at most this many columns beside the first one, for a terminal."""
        for number, columns in enumerate(replace(self, breadth=breadth).parts):
            chosen = [0, *columns]
            rows = tuple(tuple(row[i] for i in chosen) for row in self.rows)
            title = f"{self.title}{' (continued)' if number else ''}"
            yield replace(self, title=title, columns=tuple(self.columns[i] for i in chosen), rows=rows)

    def is_text(self, column: int) -> bool:
        """Whether a column holds words, aligned left, instead of figures, aligned right."""
        return any(_WORD.search(row[column].partition(" [")[0]) for row in self.rows)

    def hint(self, column: int) -> str:
        """The tooltip of a column, or ""."""
        return self.hints[column] if column < len(self.hints) else ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report; empty ones are not shown.

    Attributes:
        anchor, title: Of it, both ours.
        text: A sentence at its beginning.
        notes: A list of remarks.
        tables: In order.
        part: A further template, and its `data`.
        left_out: A sentence at its end on omitted content.
    """

    anchor: str
    title: str
    text: str = ""
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    part: str = ""
    data: Any = None
    left_out: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.notes or self.tables or self.part)


def document(
    title: str,
    sections: Iterable[Section],
    *,
    facts: Sequence[tuple[str, str]] = (),
    lead: Sequence[str] = (),
    warning: str = "",
    questions: object = None,
) -> str:
    """A whole page.

    Args:
        title: The heading, also of the window.
        sections: Its sections, with links; empty ones are left out.
        facts: Data, date and version: (name, value).
        lead: Sentences before them.
        warning: A warning at the top.
        questions: JSON-ready data of the single questions for the page's script; without it no script runs.
    """
    shown = [section for section in sections if not section.empty]
    code = {} if questions is None else {"script": "report.js"}
    return render(
        "report.html", title=title, sections=shown, facts=facts, lead=lead, warning=warning, questions=questions, **code
    )


PAGE_SUFFIXES = (".html", ".htm")
"""Of a page."""


def check_suffix(path: Path, suffixes: Iterable[str]) -> str:
    """The suffix of a report's file, in small letters.

    Raises:
        OptionError: An unknown suffix.
    """
    suffix, known = path.suffix.lower(), tuple(suffixes)
    if suffix not in known:
        raise OptionError(f"a report must end in {', '.join(known)}, got {clip(str(path))}")
    return suffix


def write_text(path: str | Path, text: str) -> None:
    """Write a report atomically; its folder is created if missing. A device or a pipe is written as it is.

    Raises:
        OptionError: A place that cannot be written to.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_file() or not target.exists():
            write_file(target.resolve(), [text.encode("utf-8")])
        else:
            target.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror}; give another place") from None


def markdown_table(table: Table) -> str:
    """A table under its title."""
    rows = [table.columns, ("---",) * len(table.columns), *table.rows]
    lines = ["| " + " | ".join(map(markdown_text, row)) + " |" for row in rows]
    note = [markdown_text(table.note), ""] if table.note else []
    return "\n".join([f"### {markdown_text(table.title)}", "", *note, *lines])


def markdown_text(text: str) -> str:
    """A text of which nothing is read as markup, a link or an attribute (`{onclick=...}`)."""
    line = plain(text).replace("\\", "\\\\").replace("<", "&lt;")
    for mark in ("|", "`", "{", "](", "][", "]:"):
        line = line.replace(mark, f"\\{mark}")
    return line
