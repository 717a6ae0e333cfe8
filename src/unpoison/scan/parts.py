"""Pieces of a file with their places, as a person would look for them, and whether a reader sees them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple, Self

__all__ = ["COVERT", "FOLDED", "MIN_WORDS", "NOTHING", "FileReading", "FileText", "Part"]

MIN_WORDS = 4
"""Minimum words of a hidden text; shorter ones are labels such as "skip to content"."""

FOLDED, COVERT = "folded", "covert"
"""How text is hidden: so that a person can unfold it, such as a filtered row, or so that nobody can see it."""


class Part(NamedTuple):
    """A piece of a file.

    Attributes:
        text: Its text.
        place: Where a person finds it, such as "page 3"; "" if that is the line of the text.
        hidden: `FOLDED`, `COVERT`, or "" if it is visible.
    """

    text: str
    place: str = ""
    hidden: str = ""


class FileReading(NamedTuple):
    """A text, and the places of its parts.

    Attributes:
        text: The text.
        places: The offset at which each place begins, ascending, and its name; empty for lines.
    """

    text: str = ""
    places: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of(cls, parts: Iterable[Part], *, fewest: int = 1) -> Self:
        """Join parts, one a line, without blank lines and those of fewer words than `fewest`."""
        lines, places, length = list[str](), list[tuple[int, str]](), 0
        for part in parts:
            for line in part.text.split("\n"):
                words = line.split()
                if len(words) < fewest:
                    continue
                if not places or places[-1][1] != part.place:
                    places.append((length, part.place))
                lines.append(" ".join(words))
                length += len(lines[-1]) + 1
        return cls("\n".join(lines), tuple(places) if any(name for _, name in places) else ())

    def place(self, offset: int) -> str:
        """Where a person finds a character; "" if the text is a single line."""
        if self.places:
            return self.places[max(bisect_right(self.places, offset, key=itemgetter(0)) - 1, 0)][1]
        return f"line {self.text.count(chr(10), 0, offset) + 1:,}" if "\n" in self.text else ""


NOTHING = FileReading()


class FileText(NamedTuple):
    """What a file says.

    Attributes:
        parts: Its pieces in order.
        title: From its properties; None without one.
        author: The same.
        notes: Warnings about what was not read.
    """

    parts: tuple[Part, ...]
    title: str | None = None
    author: str | None = None
    notes: tuple[str, ...] = ()

    def within(self, most: int) -> Self:
        """The first characters; the same object if there are no more."""
        parts, left = list[Part](), most
        for part in self.parts:
            parts.append(part._replace(text=part.text[: max(left, 0)]))
            left -= len(part.text)
        note = f"it expands to more than {most:,} characters, of which the first are read"
        return self if left >= 0 else self._replace(parts=tuple(parts), notes=(*self.notes, note))

    def reading(self, hidden: str = "") -> FileReading:
        """The parts that are visible, or hidden in one way."""
        wanted = (part for part in self.parts if part.hidden == hidden)
        return FileReading.of(wanted, fewest=MIN_WORDS if hidden else 1)
