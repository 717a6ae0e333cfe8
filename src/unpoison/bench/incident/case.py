"""A wrong answer that is looked into: as it was typed, or from a row of an audit log or of a table of complaints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from unpoison.bench.redteam.targets import Answered
from unpoison.errors import InputError
from unpoison.io.file_rows import FileRow
from unpoison.io.files import open_source
from unpoison.io.rows import QUERY_FIELDS
from unpoison.scan.audit_log import parts_of
from unpoison.scan.trace import find_row

__all__ = ["Case", "case_of_log"]

ANSWERS = ("answer", "reply", "response")
RIGHT = ("correct_answers", "right", "correct", "expected")
TIMES = ("time", "timestamp", "date", "asked_at")
PEOPLE = ("user", "client", "reported_by", "by", "name")


@dataclass(frozen=True, slots=True)
class Case:
    """What was asked, and what was wrong about the answer.

    Attributes:
        question: What was asked.
        answer: What the system said, or the wrong part of it, such as "Sydney".
        right: Answers that would have been right, where they are known.
        time: When it was asked, in the words of the source; "" where nobody says.
        person: Who asked or complained; "" where nobody says.
        source: Where this comes from.
        read: What the system read then, where a log says so.

    Raises:
        InputError: No question, or no answer.
    """

    question: str
    answer: str
    right: tuple[str, ...] = ()
    time: str = ""
    person: str = ""
    source: str = "the command line"
    read: Answered | None = None

    def __post_init__(self) -> None:
        for name in ("question", "answer"):
            if not getattr(self, name).strip():
                raise InputError(
                    f"{self.source} does not say the {name} (a log without texts does not); give it with --{name}"
                )

    @classmethod
    def of_row(cls, fields: Mapping[str, Any], source: str, **given: Any) -> Self:
        """Read a row of a log or a table.

        Args:
            fields: What the row holds.
            source: Where it stands.
            **given: Fields of the case that go before those of the row, where they are not empty.

        Raises:
            InputError: No question, or no answer.
        """
        fields = {str(name).strip().casefold(): value for name, value in fields.items()}
        request = fields.get("request")
        known = {
            "question": _first(fields, QUERY_FIELDS),
            "answer": _first(fields, ANSWERS),
            "right": _texts(next((fields[name] for name in RIGHT if fields.get(name)), ())),
            "time": _first(fields, TIMES),
            "person": _first(request, PEOPLE) if isinstance(request, Mapping) else _first(fields, PEOPLE),
            "read": _read(fields),
        }
        return cls(**known | {name: value for name, value in given.items() if value}, source=source)

    def to_dict(self) -> dict[str, Any]:
        names = ("question", "answer", "time", "person", "source")
        return {**{name: getattr(self, name) for name in names}, "right": list(self.right)}


def case_of_log(log: str, row: str | None, **given: Any) -> Case:
    """The case of a row of an audit log, of what `ask` or `screen` wrote, or of a table of complaints.

    Args:
        log: The file.
        row: The number of its line; or its id, or the beginning of its request's id, which is looked for in the older
            parts of a rotated log as well; None where it is the only row.
        **given: As for `Case.of_row`.

    Raises:
        InputError: There is no such row, or several.
    """
    number = int(row) if row is not None and row.isdecimal() and row.isascii() else None
    parts = [Path(log)] if number is not None else parts_of(log)
    found = find_row(_rows(parts), number=number, id=None if number is not None else row)
    return Case.of_row(found.fields, f"row {found.number:,} of {log}", **given)


def _rows(parts: Iterable[Path]) -> Iterator[FileRow]:
    for part in parts:
        with open_source(str(part)) as source:
            yield from source


def _read(fields: Mapping[str, Any]) -> Answered | None:
    """What the system read, where the row says so: ids, and texts where the log has them."""
    passages = fields.get("passages")
    if not isinstance(passages, list):
        return None
    kept = [p for p in passages if isinstance(p, Mapping) and p.get("kept") is not False]
    ids, texts = ([str(p[name]) for p in kept if p.get(name)] for name in ("id", "text"))
    return Answered("", tuple(texts) or None, tuple(ids) or None)


def _texts(value: object) -> tuple[str, ...]:
    values = value if isinstance(value, (list, tuple)) else [value]
    return tuple(str(text).strip() for text in values if str(text).strip())


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = fields.get(name)
        value = value.get("text") if isinstance(value, Mapping) else value
        value = " | ".join(map(str, value)) if isinstance(value, list) else value  # a cell of a table
        if isinstance(value, (str, int, float)) and str(value).strip():
            return str(value).strip()
    return ""
