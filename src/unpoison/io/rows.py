"""Rows of question files: a question and its retrieved passages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Self

from unpoison.errors import InputError, clip
from unpoison.types import Answer, Passage, Query, as_passages

__all__ = ["Row", "answer_fields", "load_sample", "with_results"]

QUERY_FIELDS = ("query", "question", "user_input")
"""Fields with the question; the first match wins, the last is that of RAGAS."""

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
        if name is None:
            raise InputError(f"a row needs 'query' or 'question', got the fields {clip(sorted(map(str, value)))}")
        if not isinstance(value[name], str):
            raise InputError(f"{name} must be a string, got {clip(value[name])}; give the question's text")
        passages = next((value[name] for name in PASSAGE_FIELDS if value.get(name) is not None), None)
        if passages is None:
            raise InputError(
                f"a row needs 'passages' (a list, perhaps empty), got the fields {clip(sorted(map(str, value)))}"
            )
        try:
            query = Query(value[name], value.get("query_embedding"))
        except InputError as error:
            raise InputError(str(error).replace("query.embedding", "query_embedding", 1)) from None
        return cls(query, as_passages(passages), value)


def with_results(fields: Mapping[str, Any], **results: Any) -> dict[str, Any]:
    """An output row: the input's fields and the results, without those of an earlier run."""
    return {name: value for name, value in fields.items() if name not in REPLACED_FIELDS} | results


def answer_fields(answer: Answer, generator: str) -> dict[str, Any]:
    """The fields of an answered row: screening, answer and generator."""
    return {"screening": answer.screening.summary(), "answer": answer.to_dict(), "generator": generator}


def load_sample() -> tuple[Row, ...]:
    """The built-in sample: questions with genuine passages by rank, then poisons (label "poison", no rank)."""
    text = files("unpoison").joinpath("data", "sample.jsonl").read_text(encoding="utf-8")
    return tuple(Row.of(json.loads(line)) for line in text.split("\n") if line)
