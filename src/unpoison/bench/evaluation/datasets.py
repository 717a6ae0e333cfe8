"""Data sets by name: `load("nq_poisoned")`, `load("poisonedrag:nq.json")`.

A row that cannot be used is left out and listed, with its line and field; a source that cannot be read at all raises.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path

from unpoison.bench.data_files import data_path
from unpoison.bench.evaluation.examples import Example, FieldError, Loaded, Problem
from unpoison.bench.evaluation.formats import FORMATS
from unpoison.errors import InputError, clip, nearest
from unpoison.io.file_rows import Source
from unpoison.io.files import JsonLinesSource, source_of
from unpoison.types import Passage

__all__ = ["load", "load_passages"]

BUILT_IN = {"sample": "shared", "timeline": "radar-dynamic"}
"""The built-in samples and their formats; `timeline` has questions whose answers change."""

MAX_BYTES = 1 << 30
"""Larger files are refused: questions with their passages are megabytes, and they are held in memory."""


def load(spec: str | Path) -> Loaded:
    """Read a data set.

    Args:
        spec: `sample` or `timeline`; an evaluation file that `python -m benchmarks data get` built, such as
            `nq_poisoned`; a path to a file in the documented row format (`docs/data.md`); or
            `poisonedrag:FILE`, `robustrag:FILE`, `radar:FILE`, `radar-dynamic:FILE`, `ramdocs:FILE`.
            Files may be JSON Lines, CSV, Parquet, a JSON list, or a JSON object of rows by id; all but
            Parquet also packed with gzip.

    Returns:
        The usable examples and the rows left out: malformed ones, ids met before, and targets whose wrong answer
        contains the right one or the reverse.

    Raises:
        InputError: The source does not exist, is too large, or is not JSON.
    """
    text = str(spec)
    prefix, colon, rest = text.partition(":")
    digest = hashlib.sha256()
    if text in BUILT_IN:
        data = files("unpoison").joinpath("data", f"{text}.jsonl").read_bytes()
        digest.update(data)
        rows, form, name = _rows(source_of(io.BytesIO(data), f"{text}.jsonl", None)), BUILT_IN[text], text
    else:
        is_format = colon and prefix in FORMATS
        path = data_path(rest if is_format else text)
        rows, form, name = _file_rows(path, digest), prefix if is_format else "shared", path.name.partition(".")[0]
    examples, problems = _examples(rows, form, name)
    return Loaded(text, tuple(examples), tuple(problems), f"sha256:{digest.hexdigest()}")


def load_passages(path: str | Path, dataset: str | None = None) -> tuple[Passage, ...]:
    """Clean passages to retrieve from: JSON Lines of `{id, text, title?, dataset?}`, or BEIR's `_id`.

    Args:
        path: The file, such as `corpus.jsonl`, or the name of an evaluation file.
        dataset: Only passages of this data set; None for all.

    Raises:
        InputError: The file cannot be read, or a row is malformed; the message names the line.
    """
    passages = []
    for line, row in _file_rows(data_path(path), hashlib.sha256()):
        if not isinstance(row, Mapping):
            raise InputError(
                f"{path} line {line}: {row if isinstance(row, FieldError) else 'must be an object with text'}"
            )
        if dataset is None or row.get("dataset") == dataset:
            try:
                passages.append(Passage.of({**row, "id": row.get("id", row.get("_id"))}))
            except InputError as error:
                raise InputError(f"{path} line {line}: {error}") from None
    return tuple(passages)


NumberedRows = Iterable[tuple[int, object]]
"""(1-based line or position, the parsed value or the `FieldError` that it gave)."""


def _examples(rows: NumberedRows, form: str, dataset: str) -> tuple[list[Example], list[Problem]]:
    examples, problems, lines = list[Example](), list[Problem](), dict[str, int]()
    for line, row in rows:
        identifier = None
        try:
            if isinstance(row, FieldError):
                raise row
            if not isinstance(row, Mapping):
                raise FieldError("row", f"must be an object, got {clip(row)}")
            fresh = list[Example]()  # all years of a series or none
            for converted in FORMATS[form](row, line, dataset):
                identifier = converted.get("id") if isinstance(converted.get("id"), str) else None
                example = Example.of(converted, default_id=f"{dataset}-{line}" if dataset else str(line))
                if example.id in lines:
                    raise FieldError(
                        "id", f"{clip(example.id)} was met before, on line {lines[example.id]}; ids must be unique"
                    )
                fresh.append(example)
            examples.extend(fresh)
            lines.update((example.id, line) for example in fresh)
        except FieldError as error:
            problems.append(Problem(line, error.field, str(error), identifier))
    return examples, problems


def _bytes_of(path: Path, digest: hashlib._Hash) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise InputError(f"{path} has {size:,} bytes, more than {MAX_BYTES:,}; split it")
        data = path.read_bytes()
    except OSError as error:
        beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        meant = nearest(path.name, [*beside, "sample", "timeline"])
        raise InputError(f"{path} cannot be read: {error.strerror}; {meant}give a data file, or their folder") from None
    digest.update(data)
    return data


def _file_rows(path: Path, digest: hashlib._Hash) -> NumberedRows:
    return _rows(source_of(io.BytesIO(_bytes_of(path, digest)), str(path), None))


def _rows(source: Source) -> NumberedRows:
    """The rows of a source; one that is larger unpacked than a file may be is refused."""
    for record in source:
        if isinstance(source, JsonLinesSource) and source.stream.tell() > MAX_BYTES:
            raise InputError(f"{source.name} holds more than {MAX_BYTES:,} bytes; split it")
        problem = None if record.error is None else FieldError("row", f"is unusable: {record.error}")
        yield record.number, problem or record.fields
