"""Converts rows of third-party files to the shared format, one function per origin; reads no files.

Each takes one row, its 1-based position and the data set's name, and returns rows that `Example.of` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unpoison.bench.evaluation.examples import FieldError
from unpoison.errors import clip

__all__ = ["FORMATS", "Row", "native_rows", "poisonedrag", "radar_dynamic", "ramdocs", "robustrag"]

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
                "correct_answers": _answers(step, "answer"),
                "incorrect_answers": _answers(step, "incorrect_answer"),
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
            "correct_answers": _answers(row, "gold_answers"),
            "incorrect_answers": _answers(row, "wrong_answers"),
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
        "correct_answers": _answers(row, "correct answer"),
        "incorrect_answers": _answers(row, wrong),
        "passages": passages,
    }


def _answers(row: Mapping[str, Any], name: str) -> list[str]:
    """A list of answers; some files have one answer alone, some a number."""
    value = row.get(name)
    values = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(answer, (str, int, float)) for answer in values):
        raise FieldError(name, f"must be a text or a list of texts, got {clip(value)}")
    return [str(answer) for answer in values if str(answer).strip()]


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
