"""Reads a wrong answer from a file: a row with the passages that the model read, or documents to search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

from unpoison.core.passages import Passage, as_passages
from unpoison.errors import InputError, clip
from unpoison.io.file_rows import FileRow
from unpoison.io.files import open_source
from unpoison.io.rows import QUERY_FIELDS
from unpoison.retrieval.bm25 import BM25Retriever

__all__ = ["Case", "read_case"]

ANSWERS = ("answer", "reply", "response")
RIGHT = ("correct_answers", "right", "correct", "expected")

DEEPER = 5
"""Documents examined per document read: others are retrieved once the guilty ones are removed."""


class Case(NamedTuple):
    """A wrong answer in a file.

    Attributes:
        question, answer: None if missing.
        right: Right answers, if given.
        passages: The passages in the order in which the model read them; with a screening, the kept ones, best first.
    """

    question: str | None
    answer: str | None
    right: tuple[str, ...]
    passages: tuple[Passage, ...]


def read_case(file: str, row: str | None = None, question: str | None = None, k: int = 10) -> Case:
    """Read the selected row or, from a file with one document per line, the documents that may have been read.

    Args:
        file: A log, rows with passages, a table of complaints, or documents.
        row: The line number, the id, or the beginning of the request's id; None if there is only one row.
        question: The question, which selects rows and documents.
        k: Number of documents in a prompt.

    Raises:
        InputError: No such row, or several; an unusable row or document.
    """
    with open_source(file) as source:
        records = iter(source)
        first = next(records, None)
        if first is None:
            raise InputError(f"{file} has no rows; pass rows with passages, or one document per line")
        every = chain([first], records)
        if row is not None or "text" not in first.fields or "passages" in first.fields:
            return _case(_find(every, row, question).fields)
        passages = as_passages([_usable(record) for record in every])
        if question is not None and len(passages) > k:
            named = (p if p.id is not None else Passage(p.text, id=str(i)) for i, p in enumerate(passages))
            passages = BM25Retriever(named).retrieve(question, DEEPER * k)
        return Case(None, None, (), passages)


def _usable(record: FileRow) -> Mapping[str, Any]:
    if record.error is not None or not isinstance(record.fields.get("text"), str):
        raise InputError(f"line {record.number}: {record.error or 'a document needs a text'}")
    return record.fields


def _find(records: Iterable[FileRow], row: str | None, question: str | None) -> FileRow:
    number = int(row) if row is not None and row.isdecimal() and row.isascii() else None
    first: FileRow | None = None
    for record in records:
        fits = record.number == number or (row is not None and record.error is None and _is(record.fields, row))
        if row is None:
            fits = question is None or _first(record.fields, QUERY_FIELDS) == question
        if not fits:
            continue
        if record.error is not None:
            raise InputError(f"line {record.number}: {record.error}")
        if first is not None:
            raise InputError(
                f"lines {first.number} and {record.number} both match; select one, such as --row {first.number}"
            )
        first = record
    if first is None:
        asked = f"is {clip(row)}" if row else f"asks {clip(question)}"
        raise InputError(f"no row {asked}; pass its line number or id as --row")
    return first


def _is(fields: Mapping[str, Any], name: str) -> bool:
    request = fields.get("request")
    own = str(request.get("id", "")) if isinstance(request, Mapping) else ""
    return str(fields.get("id", "")) == name or own == name or (len(name) >= 4 and own.startswith(name))


def _case(fields: Mapping[str, Any]) -> Case:
    fields = {str(name).strip().casefold(): value for name, value in fields.items()}
    right = next((fields[name] for name in RIGHT if fields.get(name)), ())
    texts = tuple(str(one).strip() for one in (right if isinstance(right, (list, tuple)) else [right]))
    question, answer = _first(fields, QUERY_FIELDS), _first(fields, ANSWERS)
    return Case(question, answer, tuple(filter(None, texts)), _passages(fields))


def _passages(fields: Mapping[str, Any]) -> tuple[Passage, ...]:
    given = fields.get("passages") or ()
    if "audit" in fields:
        kept = [p for p in given if isinstance(p, Mapping) and p.get("kept") is not False]
        if not all(isinstance(p.get("text"), str) for p in kept):
            raise InputError('the log has no texts; write it with AuditLog(path, texts="keep"), or pass the passages')
        return as_passages(kept)
    passages, screening = as_passages(given), fields.get("screening")
    positions = screening.get("kept") if isinstance(screening, Mapping) else None
    if not isinstance(positions, list):
        return passages
    return tuple(passages[i] for i in positions if isinstance(i, int) and 0 <= i < len(passages))


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = fields.get(name)
        value = value.get("text") if isinstance(value, Mapping) else value
        value = " | ".join(map(str, value)) if isinstance(value, list) else value  # a cell of a table
        if isinstance(value, (str, int, float)) and str(value).strip():
            return str(value).strip()
    return None
