"""Tables as Markdown, and writing of reports; names in them come from users' files and may be hostile."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from unpoison.errors import OptionError, clip
from unpoison.report.document import Table
from unpoison.utils.plain_text import plain

__all__ = [
    "check_suffix",
    "markdown_table",
    "markdown_text",
    "write_text",
]


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
    """Write a report; its folder is created if missing.

    Raises:
        OptionError: A place that cannot be written to.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
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
