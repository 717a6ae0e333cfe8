"""Rows of any kind as what was retrieved for a question: question files, saved screenings, logs of the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from unpoison.errors import InputError, clip
from unpoison.sources.history import Outcome

__all__ = ["Retrieval", "retrieval_of"]

TEXTS = ("text", "content", "page_content")


class Retrieval(NamedTuple):
    """What was retrieved.

    Attributes:
        question: The question, or the hash that a log has in its place; None for a document that nobody asked for.
        passages: As they were given: texts, mappings, objects.
        dropped: Which of them a defense dropped, by position.
    """

    question: str | None
    passages: Sequence[object]
    dropped: frozenset[int] = frozenset()

    def outcomes(self, origins: Sequence[str]) -> dict[str, Outcome]:
        """What is to be remembered of the origins of the passages: `dropped` where all of one origin were."""
        kept = {origin for i, origin in enumerate(origins) if i not in self.dropped}
        return {origin: "seen" if origin in kept else "dropped" for origin in origins if origin}


def retrieval_of(row: object, *, documents: bool = False) -> Retrieval:
    """Read a mapping, or an object with `query` and `passages`.

    Args:
        row: A row of a question file, what `screen` or `ask` wrote, or a line of an audit log.
        documents: Whether a row may be a document, with a text and no question.

    Raises:
        InputError: It has no question, or no passages.
    """
    if isinstance(row, Retrieval):
        return row
    names = ("query", "question", "query_hash", "passages")
    held: Mapping[Any, Any] = row if isinstance(row, Mapping) else {n: getattr(row, n, None) for n in names}
    passages = held.get("passages")
    if passages is None and documents and any(isinstance(held.get(name), str) for name in TEXTS):
        return Retrieval(None, [row])
    question: object = next((held[name] for name in names[:3] if held.get(name) is not None), None)
    question = getattr(question, "text", question)
    if not isinstance(question, str) or not isinstance(passages, (list, tuple)):
        raise InputError(f"a row needs a question and a list of passages, got {clip(row)}")
    return Retrieval(question, passages, _find_drops(held, passages))


def _find_drops(row: Mapping[Any, Any], passages: Sequence[object]) -> frozenset[int]:
    """What a saved screening, or the passages of a log themselves, say of what was dropped."""
    screening = row.get("screening")
    verdicts = screening.get("verdicts") if isinstance(screening, Mapping) else None
    marks: list[tuple[object, object]] = list(enumerate(passages))
    if isinstance(verdicts, list):
        marks = [(one.get("index"), one) for one in verdicts if isinstance(one, Mapping)]
    return frozenset(
        i for i, one in marks if isinstance(i, int) and isinstance(one, Mapping) and one.get("kept") is False
    )
