"""Rows of question files: a question and its retrieved passages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Self

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query, as_passages
from unpoison.errors import InputError, clip
from unpoison.io.file_rows import FileRow, Source
from unpoison.io.files import open_source
from unpoison.utils.assets import DATA, read_data

__all__ = ["Row", "answer_fields", "load_sample", "moment_of", "open_stream", "read_time", "time_order", "with_results"]

QUERY_FIELDS = ("query", "question", "user_input")
"""Fields with the question; the first match wins, the last is that of RAGAS."""

MAX_ROW_PASSAGES = 1000
"""Of one row, as in the service: time and memory grow with the square."""

PASSAGE_FIELDS = ("passages", "contexts", "retrieved_contexts")
"""Fields with the passages; the last two are those of RAGAS."""

REPLACED_FIELDS = ("screening", "error")
"""Results of an earlier screening, which are replaced."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a question file.

    Attributes:
        query: The question, with its embedding where the row has `query_embedding`.
        passages: The retrieved passages, in the row's order.
        raw: The row as read, with unknown fields.
    """

    query: Query
    passages: tuple[Passage, ...]
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, value: object) -> Self:
        """Read a mapping with `query` or `question`, `passages`, and perhaps `query_embedding`.

        RAGAS's names are read too: `user_input`, `contexts`, `retrieved_contexts`.

        A passage is a string or a mapping, as `Passage.of` reads it. No passages (an empty list) is no error.

        Raises:
            InputError: A field is missing or cannot be used; the message names it.
        """
        if not isinstance(value, Mapping):
            raise InputError(f"a row must be an object with 'query' and 'passages', got {clip(value)}")
        name = next((name for name in QUERY_FIELDS if value.get(name) is not None), None)
        if name is None and (empty := next((name for name in QUERY_FIELDS if name in value), None)):
            raise InputError(f"{empty} is null; give the question's text")
        if name is None:
            hint = "; this is a document: 'unpoison check' and 'scan' read documents" if "text" in value else ""
            raise InputError(f"a row needs 'query' or 'question', got the fields {clip(sorted(map(str, value)))}{hint}")
        if not isinstance(value[name], str):
            raise InputError(f"{name} must be a string, got {clip(value[name])}; give the question's text")
        passages = next((value[name] for name in PASSAGE_FIELDS if value.get(name) is not None), None)
        if passages is None:
            raise InputError(f"a row needs 'passages' (a list, or []), got the fields {clip(sorted(map(str, value)))}")
        try:
            query = Query(value[name], value.get("query_embedding"))
        except InputError as error:
            raise InputError(str(error).replace("query.embedding", "query_embedding", 1)) from None
        row = cls(query, as_passages(passages), value)
        if (number := len(row.passages)) > MAX_ROW_PASSAGES:
            raise InputError(f"the row has {number:,} passages, more than {MAX_ROW_PASSAGES:,}; give the best")
        return row


def with_results(fields: Mapping[str, Any], **results: Any) -> dict[str, Any]:
    """An output row: the input's fields and the results, without those of an earlier run."""
    return {name: value for name, value in fields.items() if name not in REPLACED_FIELDS} | results


def answer_fields(answer: Answer, generator: str) -> dict[str, Any]:
    """The fields of an answered row: screening, answer and generator."""
    return {"screening": answer.screening.summary(), "answer": answer.to_dict(), "generator": generator}


def load_sample() -> tuple[Row, ...]:
    """The built-in sample: questions with genuine passages by rank, then poisons (label "poison", no rank)."""
    return tuple(Row.of(json.loads(line)) for line in read_data("sample.jsonl").split("\n") if line)


TIMES = ("time", "date", "year", "timestamp")
"""Fields with the time; the first match wins."""

BUILT_IN = "timeline"
"""The name of the built-in sample, unless a file has this name."""


def moment_of(row: Mapping[str, Any]) -> str | None:
    """The time of a row as a text, such as a year or a date, which `time_order` sorts."""
    time = next((row[name] for name in TIMES if row.get(name) is not None), None)
    return None if time is None else str(time).replace("/", "-")


def read_time(text: str) -> datetime | None:
    """A time in ISO form, or as in mail and feeds (RFC 2822); None for any other text."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, TypeError, OverflowError):
            return read(text.strip())
    return None


def time_order(text: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts times: years and other numbers by value, dates in ISO form and of mails together, in UTC."""
    if re.search(r"[A-Za-z:]", text) and (time := read_time(text)) is not None:
        text = (time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)).isoformat()
    pieces = re.findall(r"\d{1,300}|[^\W\d_]{2,}", text)
    return tuple((int(piece), "") if piece.isdecimal() else (-1, piece.casefold()) for piece in pieces)


def steps_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps of one row, each with `time`: itself, or one a year where it has RADAR's `yearly_contexts`.

    Raises:
        InputError: A row without a time, or invalid `yearly_contexts`.
    """
    years = row.get("yearly_contexts")
    if years is None:
        time = moment_of(row)
        if time is None:
            raise InputError(f"time is missing; a row of a stream has one of {', '.join(TIMES)}, got {clip(row)}")
        return [{**row, "time": time}]
    steps = list[dict[str, Any]]()
    with suppress(AttributeError, KeyError, TypeError):
        steps = [
            {"id": f"{row.get('id', '')}@{year}", "question": row.get("question"), "time": year, "passages": texts}
            for year in sorted(years, key=lambda year: time_order(str(year)))
            for texts in [[{"title": doc.get("title"), "text": doc["content"]} for doc in years[year]["docs"]]]
        ]
    if not steps:
        raise InputError(f"yearly_contexts must map years to {{'docs': [{{'title', 'content'}}]}}, got {clip(years)}")
    return steps


class _StreamSource:
    """The steps of another source as rows; the times of one question must not decrease."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.name = source.name
        self.size = source.size
        self._latest: dict[str, str] = {}

    def __iter__(self) -> Iterator[FileRow]:
        for record in self._source:
            try:
                steps = [] if record.error is not None else steps_of(record.fields)
            except InputError as error:
                record = FileRow(record.number, record.fields, str(error), record.position)  # noqa: PLW2901
                steps = []
            if record.error is not None:
                yield record
            for step in steps:
                yield FileRow(record.number, step, self._late(step), record.position)

    def _late(self, step: Mapping[str, Any]) -> str | None:
        """The error for a step that is out of order, or None."""
        question = str(next((step[name] for name in QUERY_FIELDS if step.get(name)), "")).casefold().strip()
        time, latest = str(step["time"]), self._latest.get(question, "")
        if time_order(time) < time_order(latest):
            return f"time {clip(time)} lies before {clip(latest)}, when the question was asked last; sort the file"
        self._latest[question] = time
        return None


@contextmanager
def open_stream(path: str) -> Iterator[Source]:
    """Open a question file as a stream; `timeline` is the built-in sample.

    Raises:
        OSError: The file cannot be opened.
        InputError: Not a Parquet file.
    """
    built_in = path == BUILT_IN and not Path(path).exists()
    with open_source(str(DATA / f"{BUILT_IN}.jsonl") if built_in else path) as source:
        source.name = BUILT_IN if built_in else source.name
        yield _StreamSource(source)
