"""A text as a document with sections, and a document as passages. Markdown is read for headings, lists and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unpoison.errors import clip
from unpoison.types import Passage

__all__ = ["DocumentSection", "QuestionDocument", "document_of", "passages_of"]

PASSAGE = 1200
"""Characters of a passage; paragraphs of one section are joined up to this."""


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """Paragraphs under one heading.

    Attributes:
        heading: Without markup; "" before the first one.
        paragraphs: Each on one line; list items and table rows are paragraphs of their own.
    """

    heading: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuestionDocument:
    """One text of the collection.

    Attributes:
        id: The path below the folder, or the row's id.
        title: The first heading, or that of the row; "" without one.
        sections: In order.
    """

    id: str
    title: str
    sections: tuple[DocumentSection, ...]


def document_of(identifier: str, text: str, title: str = "") -> QuestionDocument:
    """A text, plain or Markdown, as a document; without a title the first heading is it."""
    sections = tuple(_sections(text))
    first = next((section.heading for section in sections if section.heading), "")
    return QuestionDocument(identifier, title or first, sections)


def _sections(text: str) -> Iterator[DocumentSection]:
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
                yield DocumentSection(heading, tuple(paragraphs))
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
        yield DocumentSection(heading, tuple(paragraphs))


def _heading(line: str, below: str) -> str | None:
    marks = len(line) - len(line.lstrip("#"))
    if 1 <= marks <= 6 and line[marks : marks + 1] == " ":
        return line[marks:].partition("{ #")[0].partition("{#")[0].strip(" #")
    if len(below) > 2 and line and len(line) < 120 and (set(below) == {"="} or set(below) == {"-"}):
        return line if line[0].isalnum() else None
    return None


def passages_of(document: QuestionDocument) -> list[Passage]:
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


def _passage(document: QuestionDocument, section: DocumentSection, paragraphs: Sequence[str], number: int) -> Passage:
    titles = dict.fromkeys(filter(None, (document.title, section.heading)))
    return Passage(
        "\n".join(paragraphs),
        id=f"{document.id}#{number}",
        title=": ".join(titles) or None,
        source=document.id if len(document.id) <= 300 else clip(document.id, 300),
    )
