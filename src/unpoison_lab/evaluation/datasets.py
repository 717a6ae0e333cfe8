"""Data sets by name: `load("nq_poisoned")`, `load("poisonedrag:nq.json")`.

A row that cannot be used is left out and listed, with its line and field; a source that cannot be read at all raises.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from unpoison.core.passages import Passage
from unpoison.errors import InputError, clip, nearest
from unpoison.io.file_rows import Source
from unpoison.io.files import JsonLinesSource, source_of
from unpoison_lab.data_files import data_path, set_names
from unpoison_lab.evaluation.examples import Example, FieldError, Loaded, Problem

__all__ = ["load", "load_passages", "poisonedrag", "radar_dynamic", "ramdocs", "robustrag"]


Row = dict[str, Any]

_RAMDOCS_LABELS = {"correct": "gold", "misinfo": "misinfo", "noise": "noise"}


def native_rows(row: Mapping[str, Any], position: int, dataset: str) -> list[Row]:
    """The project's own format: id, dataset, question, correct_answers, incorrect_answers, passages, anything else."""
    return [dict(row)]


def poisonedrag(row: Mapping[str, Any], position: int, dataset: str) -> list[Row]:
    """PoisonedRAG's target files: question, correct answer, incorrect answer, adv_texts (without the question).

    Both `incorrect answer` and `incorrect_answer` occur in the wild, for the published generator writes the one and
    reads the other.
    """
    return [
        _row(
            row,
            identifier=row.get("id", f"{dataset}-{position}"),
            dataset=dataset,
            passages=_poisons(row, "adv_texts", "poisonedrag"),
            used={"adv_texts"},
        )
    ]


def robustrag(row: Mapping[str, Any], position: int, dataset: str) -> list[Row]:
    """RobustRAG's and RADAR's static files (RealtimeQA, NQ, TriviaQA, Bio): context in rank order, incorrect_context.

    Their code puts the title before each text; here it stays a title. Documents without a text are left out, as there.
    """
    context = _list(row, "context")
    retrieved = []
    for rank, document in enumerate(context, 1):
        if not isinstance(document, Mapping):
            raise FieldError(f"context[{rank - 1}]", f"must be an object with title and text, got {clip(document)}")
        if document.get("text"):
            retrieved.append({**document, "rank": rank, "label": "clean"})
    poisons = _poisons(row, "incorrect_context" if "incorrect_context" in row else "incorrect context")
    return [
        _row(
            row,
            identifier=row.get("question_id", row.get("id", f"{dataset}-{position}")),
            dataset=dataset,
            passages=[*retrieved, *poisons],
            used={"context", "incorrect_context", "incorrect context"},
        )
    ]


def radar_dynamic(row: Mapping[str, Any], position: int, dataset: str) -> list[Row]:
    """RADAR's dynamic file: one example per question and year, in chronological order.

    Each has the year's documents, answers and poison, and the fields `series` (the question's id) and `year`.
    """
    years = row.get("yearly_contexts")
    if not isinstance(years, Mapping):
        raise FieldError("yearly_contexts", f"must be an object of years, got {clip(years)}")
    series = str(row.get("id", f"{dataset}-{position}"))
    rows = []
    for year in sorted(years, key=_year):
        step = years[year]
        if not isinstance(step, Mapping):
            raise FieldError(f"yearly_contexts.{year}", f"must be an object with docs and answer, got {clip(step)}")
        documents = [
            {
                "title": document.get("title"),
                "text": "\n".join(
                    filter(None, (str(document.get(name) or "").strip() for name in ("snippet", "content")))
                ),
                "label": "clean",
                "rank": rank,
            }
            for rank, document in enumerate(_list(step, "docs"), 1)
            if isinstance(document, Mapping)
        ]
        rows.append(
            {
                "id": f"{series}@{year}",
                "dataset": dataset,
                "question": row.get("question"),
                "correct_answers": step.get("answer"),
                "incorrect_answers": step.get("incorrect_answer"),
                "passages": [*documents, *_poisons(step, "incorrect_context"), *_poisons(step, "injection", "pia")],
                "series": series,
                "year": _year(year),
            }
        )
    return rows


def ramdocs(row: Mapping[str, Any], position: int, dataset: str) -> list[Row]:
    """RAMDocs: documents of type correct, misinfo or noise; several correct answers at once."""
    passages = []
    for i, document in enumerate(_list(row, "documents")):
        kind = document.get("type") if isinstance(document, Mapping) else None
        if kind not in _RAMDOCS_LABELS:
            raise FieldError(f"documents[{i}].type", f"must be one of {', '.join(_RAMDOCS_LABELS)}, got {clip(kind)}")
        rest = {name: value for name, value in document.items() if name != "type"}
        passages.append({**rest, "label": _RAMDOCS_LABELS[kind]})
    return [
        {
            **{
                name: value for name, value in row.items() if name not in ("documents", "gold_answers", "wrong_answers")
            },
            "id": row.get("id", f"{dataset}-{position - 1}"),
            "dataset": dataset,
            "correct_answers": row.get("gold_answers"),
            "incorrect_answers": row.get("wrong_answers"),
            "passages": passages,
        }
    ]


Converter = Callable[[Mapping[str, Any], int, str], list[Row]]

FORMATS: dict[str, Converter] = {
    "shared": native_rows,
    "poisonedrag": poisonedrag,
    "robustrag": robustrag,
    "radar": robustrag,
    "radar-dynamic": radar_dynamic,
    "ramdocs": ramdocs,
}
"""The row formats by the prefix that names them."""


def _row(row: Mapping[str, Any], *, identifier: object, dataset: str, passages: list[Row], used: set[str]) -> Row:
    """The shared row of a file that spells its answers `correct answer` and `incorrect answer`."""
    wrong = "incorrect answer" if "incorrect answer" in row else "incorrect_answer"
    used = used | {"correct answer", "incorrect answer", "incorrect_answer"}
    return {
        **{name: value for name, value in row.items() if name not in used},
        "id": identifier,
        "dataset": dataset,
        "correct_answers": row.get("correct answer"),
        "incorrect_answers": row.get(wrong),
        "passages": passages,
    }


def _poisons(row: Mapping[str, Any], name: str, attack: str = "radar-incorrect-context") -> list[Row]:
    texts = row.get(name) or []
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise FieldError(name, f"must be a list of texts, got {clip(texts)}")
    return [{"text": text, "label": "poison", "attack": attack} for text in texts]


def _list(row: Mapping[str, Any], name: str) -> list[Any]:
    value = row.get(name)
    if not isinstance(value, list):
        raise FieldError(name, f"must be a list, got {clip(value)}")
    return value


def _year(value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise FieldError("yearly_contexts", f"must be keyed by years, got {clip(value)}") from None


BUILT_IN = {"sample": "shared", "timeline": "radar-dynamic"}
"""The built-in samples and their formats; `timeline` has questions whose answers change."""

MAX_NAMED = 20
"""Evaluation files that an error names."""

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
        if isinstance(row, FieldError):
            raise InputError(f"{path} line {line}: {row}")
        if dataset is None or row.get("dataset") == dataset:
            try:
                passages.append(Passage.of({**row, "id": row.get("id", row.get("_id"))}))
            except InputError as error:
                raise InputError(f"{path} line {line}: {error}") from None
    return tuple(passages)


NumberedRows = Iterable[tuple[int, Mapping[str, Any] | FieldError]]
"""(1-based line or position, the fields or the `FieldError` that they gave)."""


def _examples(rows: NumberedRows, form: str, dataset: str) -> tuple[list[Example], list[Problem]]:
    examples, problems, lines = list[Example](), list[Problem](), dict[str, int]()
    for line, row in rows:
        identifier = None
        try:
            if isinstance(row, FieldError):
                raise row
            if form == "shared" and "text" in row and not row.get("question"):
                raise FieldError("question", "is missing; --questions 50 makes questions from documents")
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
        if path.is_dir():
            raise InputError(f"{path} is a folder; --questions 50 makes questions from its documents") from None
        beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        sets = set_names()
        known = sets.get(path.name.removesuffix(".jsonl"))
        meant = "" if known is not None else nearest(path.name, [*beside, "sample", "timeline", *sets])
        built = [name for name, here in sets.items() if here]
        named = f"; sets that are built by name: {', '.join(built[:MAX_NAMED])}" if built else ""
        get = f"; build it in a checkout: python -m benchmarks data get {path}" if known is False else ""
        hint = "" if meant or path.suffix or len(path.parts) > 1 else get or named
        raise InputError(
            f"{path} cannot be read: {error.strerror}; {meant}give a data file, or their folder{hint}"
        ) from None
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
