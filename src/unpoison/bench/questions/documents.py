"""A collection of one's own as documents, and documents as passages: a folder of texts, or a file of rows.

Markdown is read for its headings, lists and tables only. Documents are hostile: they are bounded, links out of the
folder are not followed, and nothing in them is run or fetched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from unpoison.bench.evaluation.datasets import load_passages
from unpoison.errors import InputError, clip
from unpoison.text.markup import escape_open_tags
from unpoison.types import Passage

__all__ = ["SUFFIXES", "Document", "Section", "document_of", "passages_of", "read_documents"]

SUFFIXES = (".md", ".markdown", ".txt", ".rst", ".html", ".htm")
"""Files of a folder that are read."""

MAX_BYTES = 10 * 2**20
"""A longer document is left out, and this is told."""

MAX_DOCUMENTS = 100_000
"""Files of a folder."""
PASSAGE = 1200
"""Characters of a passage; paragraphs of one section are joined up to this."""


@dataclass(frozen=True, slots=True)
class Section:
    """Paragraphs under one heading.

    Attributes:
        heading: As it stands, without marks; "" before the first one.
        paragraphs: Each on one line; list items and table rows are paragraphs of their own.
    """

    heading: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One text of the collection.

    Attributes:
        id: The path below the folder, or the row's id.
        title: The first heading, or what the row says; "" where there is none.
        sections: In order.
    """

    id: str
    title: str
    sections: tuple[Section, ...]


def read_documents(corpus: str | Path) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """The documents of a folder (`SUFFIXES`, below it too), of one text, or of a file of rows with a `text`.

    Returns:
        The documents, and sentences on those that were left out.

    Raises:
        InputError: Nothing there that can be read.
    """
    path = Path(corpus)
    if path.is_dir():
        documents, problems = _folder(path)
    elif path.suffix.lower() in SUFFIXES:
        documents, problems = _files([path], path.parent)
    else:
        rows = load_passages(path)
        documents = [
            _document(row.id or f"{path.stem}-{i}", row.text, row.title or "") for i, row in enumerate(rows, 1)
        ]
        problems = []
    if not documents:
        why = f" ({problems[0]})" if problems else ""
        raise InputError(
            f"{corpus} holds no document{why}; give a folder of {', '.join(SUFFIXES)} files, or a file of rows with "
            "a text"
        )
    return tuple(documents), tuple(problems)


def _folder(folder: Path) -> tuple[list[Document], list[str]]:
    paths, others = list[Path](), 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found = [Path(parent) / name for name in sorted(names)]
        paths += [path for path in found if path.suffix.lower() in SUFFIXES]
        others += sum(path.suffix.lower() not in SUFFIXES for path in found)
        if len(paths) > MAX_DOCUMENTS:
            raise InputError(f"{folder} holds more than {MAX_DOCUMENTS:,} documents; name a folder in it")
    documents, problems = _files(paths, folder)
    return documents, problems + ([f"{others:,} files of other kinds were left out"] if others else [])


def _files(paths: Sequence[Path], folder: Path) -> tuple[list[Document], list[str]]:
    documents, problems = list[Document](), list[str]()
    for path in paths:
        name = path.relative_to(folder).as_posix()
        if (why := _unreadable(path, folder)) is not None:
            problems.append(f"{name} {why} and was left out")
            continue
        try:
            documents.append(_document(name, path.read_text(encoding="utf-8-sig"), ""))
        except UnicodeDecodeError:
            problems.append(f"{name} is no UTF-8 and was left out")
        except OSError as error:
            problems.append(f"{name} cannot be read: {error.strerror}")
    return documents, problems


def _unreadable(path: Path, folder: Path) -> str | None:
    if not path.resolve().is_relative_to(folder.resolve()):
        return "is a link out of the folder"
    if not path.is_file():  # to read a pipe never ends
        return "is no file"
    return f"is longer than {MAX_BYTES // 2**20} MiB" if path.stat().st_size > MAX_BYTES else None


def _document(identifier: str, text: str, title: str) -> Document:
    if identifier.lower().endswith((".html", ".htm")):
        text = _markdown_of(text)
    return document_of(identifier, text, title)


def document_of(identifier: str, text: str, title: str = "") -> Document:
    """A text, plain or Markdown, as a document; without a title the first heading is it."""
    sections = tuple(_sections(text))
    first = next((section.heading for section in sections if section.heading), "")
    return Document(identifier, title or first, sections)


def _sections(text: str) -> Iterator[Section]:
    """Cut at headings: a line of one to six #, or a line underlined with = or -."""
    heading, paragraphs, held, code = "", list[str](), list[str](), False
    lines = text.splitlines()

    def close() -> None:
        if joined := " ".join(" ".join(held).split()):
            paragraphs.append(joined)
        held.clear()

    for number, raw in enumerate(lines):
        line = raw.strip()
        if line.startswith(("```", "~~~")):
            code = not code
            continue
        if code or line.startswith(("///", ":::", "<!--", ".. ", "{*", "{%", "{{")):
            continue
        below = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if (title := _heading(line, below)) is not None:
            close()
            if heading or paragraphs:
                yield Section(heading, tuple(paragraphs))
            heading, paragraphs = title, []
        elif not line or (len(line) > 2 and not set(line) - set("=-~*_")):
            close()
        elif line.startswith(("- ", "* ", "+ ", "|", "> ")) or line.split(" ", 1)[0].rstrip(".)").isdigit():
            close()
            held.append(line.lstrip("-*+> ") if not line.startswith("|") else line)
            if line.startswith("|"):
                close()
        else:
            held.append(line)
    close()
    if heading or paragraphs:
        yield Section(heading, tuple(paragraphs))


def _heading(line: str, below: str) -> str | None:
    marks = len(line) - len(line.lstrip("#"))
    if 1 <= marks <= 6 and line[marks : marks + 1] == " ":
        return line[marks:].partition("{ #")[0].partition("{#")[0].strip(" #")
    if len(below) > 2 and line and len(line) < 120 and (set(below) == {"="} or set(below) == {"-"}):
        return line if line[0].isalnum() else None
    return None


class _Texts(HTMLParser):
    """The texts of a page as Markdown: headings, paragraphs, list items, cells."""

    BLOCKS = frozenset("p div li tr section article br table ul ol dl dt dd blockquote h1 h2 h3 h4 h5 h6".split())  # noqa: SIM905
    HIDDEN = frozenset(("script", "style", "head", "template", "noscript"))

    def __init__(self) -> None:
        super().__init__()
        self.parts = list[str]()
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in self.HIDDEN:
            self._hidden += 1
        elif tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag in self.BLOCKS:
            self.parts.append("\n\n" + ("- " if tag == "li" else "| " if tag == "tr" else ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in self.HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag in self.BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(" ".join(data.split()) + (" " if data[-1:].isspace() else ""))


def _markdown_of(html: str) -> str:
    parser = _Texts()
    parser.feed(escape_open_tags(html))
    return "".join(parser.parts)


def passages_of(document: Document) -> list[Passage]:
    """A document as passages of at most `PASSAGE` characters, a longer paragraph alone; the heading is the title."""
    passages = list[Passage]()
    for section in document.sections:
        held = list[str]()
        for paragraph in section.paragraphs:
            if held and sum(map(len, held)) + len(paragraph) > PASSAGE:
                passages.append(_passage(document, section, held, len(passages)))
                held = []
            held.append(paragraph)
        if held:
            passages.append(_passage(document, section, held, len(passages)))
    return passages


def _passage(document: Document, section: Section, paragraphs: Sequence[str], number: int) -> Passage:
    titles = dict.fromkeys(filter(None, (document.title, section.heading)))
    return Passage(
        "\n".join(paragraphs),
        id=f"{document.id}#{number}",
        title=": ".join(titles) or None,
        source=source_label(document),
    )


def source_label(document: Document) -> str:
    """Where a passage comes from, as a row says it."""
    return document.id if len(document.id) <= 300 else clip(document.id, 300)
