"""What a trace starts from: a row of a log, or documents to retrieve from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from unpoison.core.passages import Passage, as_passages
from unpoison.errors import InputError, OptionError, clip
from unpoison.io.file_rows import FileRow
from unpoison.io.rows import QUERY_FIELDS
from unpoison.retrieval.base import Retriever
from unpoison.retrieval.bm25 import BM25Retriever

__all__ = ["TraceCase", "choose_row", "is_row", "retriever_of"]


@dataclass(frozen=True, slots=True)
class TraceCase:
    """A question, what was answered, and what the model read.

    Attributes:
        question, answer: None where the row does not say.
        passages: In the order in which the model read them: those that the screening kept, best first, where there was
            one.
    """

    question: str | None
    answer: str | None
    passages: tuple[Passage, ...]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> TraceCase:
        """Read a line of the audit log, or a row with passages that was screened and answered, or neither.

        Raises:
            InputError: The log was kept without texts, or the row cannot be used.
        """
        question = next((fields[name] for name in QUERY_FIELDS if isinstance(fields.get(name), str)), None)
        answer = fields.get("answer")
        answer_text = answer.get("text") if isinstance(answer, Mapping) else answer
        if "audit" in fields:
            passages = _logged_passages(fields["passages"])
        else:
            passages = _kept_passages(as_passages(fields["passages"]), fields.get("screening"))
        return cls(question, answer_text if isinstance(answer_text, str) else None, passages)


def is_row(fields: Mapping[str, Any]) -> bool:
    """Whether a line holds a question's passages, rather than being a document itself."""
    return "passages" in fields


def choose_row(records: Iterable[FileRow], *, number: int | None, id: str | None, question: str | None) -> TraceCase:
    """The row that is meant: by its line, its id or request id, its question, or because it is the only one.

    Of a request id its beginning will do, 4 characters or more.

    Raises:
        InputError: There is no such row, or it cannot be read; or none was named and there are several.
    """
    first: FileRow | None = None
    for record in records:
        if number is not None and record.number != number:
            continue
        if record.error is not None:
            if number is not None:
                raise InputError(f"line {number}: {record.error}")
            continue
        if (id is not None and not _is(record.fields, id)) or (question is not None and not _asks(record, question)):
            continue
        if first is not None:
            raise InputError(
                f"lines {first.number} and {record.number} both fit; say which is meant with --row {first.number}"
            )
        first = record
        if number is not None:
            break
    if first is None:
        raise InputError("no row fits; look at --row, --id and --question, or leave them out where there is one row")
    return TraceCase.of(first.fields)


def retriever_of(records: Iterable[FileRow], k: int) -> tuple[Passage, ...] | Retriever:
    """The documents of a file: as they stand where a model could read them all, else a BM25 index of them.

    Raises:
        InputError: A line cannot be read: a document that is missing could be the guilty one.
    """
    documents = []
    for record in records:
        if record.error is not None:
            raise InputError(f"line {record.number}: {record.error}")
        try:
            documents.append(Passage.of(record.fields))
        except InputError as error:
            raise InputError(f"line {record.number}: {error}") from None
    if not documents:
        raise InputError("the file holds no documents; give one on each line, with 'text'")
    return tuple(documents) if len(documents) <= k else BM25Retriever(documents)


def _asks(record: FileRow, question: str) -> bool:
    own = (record.fields.get(name) for name in QUERY_FIELDS)
    return any(isinstance(text, str) and text.strip() == question.strip() for text in own)


def _is(fields: Mapping[str, Any], id: str) -> bool:
    request = fields.get("request")
    logged = request.get("id") if isinstance(request, Mapping) else None
    begins = isinstance(logged, str) and len(id) >= 4 and logged.startswith(id)
    return id in (fields.get("id"), logged) or begins


def _kept_passages(passages: tuple[Passage, ...], screening: object) -> tuple[Passage, ...]:
    kept = screening.get("kept") if isinstance(screening, Mapping) else None
    if kept is None:
        return passages
    if not isinstance(kept, list) or not all(type(i) is int and 0 <= i < len(passages) for i in kept):
        raise InputError(f"the screening keeps {clip(kept)}, but the row has {len(passages)} passages")
    return tuple(passages[i] for i in kept)


def _logged_passages(passages: object) -> tuple[Passage, ...]:
    if not isinstance(passages, list) or not all(isinstance(p, Mapping) for p in passages):
        raise InputError(f"passages must be a list of objects, got {clip(passages)}")
    kept = [p for p in passages if p.get("kept") is True]
    if any(not isinstance(p.get("text"), str) for p in kept):
        raise OptionError(
            "the log was kept without texts, so there is nothing to read again; give the documents themselves, with "
            "--question and --answer, or keep texts with --audit-texts keep"
        )
    return as_passages(list(kept))
