"""Rows ordered by time, for `ask --stream`: each row is one step of a question and has `time`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from unpoison.errors import InputError, clip
from unpoison.io.file_rows import FileRow, Source
from unpoison.io.files import open_source
from unpoison.io.rows import QUERY_FIELDS

__all__ = ["TIMES", "moment_of", "open_stream", "steps_of"]

TIMES = ("time", "date", "year", "timestamp")
"""Fields with the time; the first match wins."""

BUILT_IN = "timeline"
"""The name of the built-in sample, unless a file has this name."""


def moment_of(row: Mapping[str, Any]) -> str | None:
    """The time of a row as a sortable text: a year or an ISO date."""
    time = next((row[name] for name in TIMES if row.get(name) is not None), None)
    return None if time is None else str(time).replace("/", "-")


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
    try:
        return [
            {"id": f"{row.get('id', '')}@{year}", "question": row.get("question"), "time": year, "passages": texts}
            for year in sorted(years)
            for texts in [[{"title": doc.get("title"), "text": doc["content"]} for doc in years[year]["docs"]]]
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(
            f"yearly_contexts must map years to {{'docs': [{{'title', 'content'}}]}}, got {clip(years)}"
        ) from error


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
        if time < latest:
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
    if path == BUILT_IN and not Path(path).exists():
        with as_file(files("unpoison").joinpath("data", f"{BUILT_IN}.jsonl")) as sample, open_source(str(sample)) as it:
            it.name = BUILT_IN
            yield _StreamSource(it)
    else:
        with open_source(path) as source:
            yield _StreamSource(source)
