"""What the frameworks' writers share: documents in, those that pass into the writer, and an account of the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from unpoison.scan.documents import Document
from unpoison.scan.ingest import Decision, Ingest
from unpoison.types import Passage

__all__ = ["DocumentGate", "GateResult"]

D = TypeVar("D")

logger = logging.getLogger("unpoison")


@dataclass(frozen=True, slots=True)
class GateResult(Generic[D]):
    """A framework's documents, sorted, each the object that it was.

    Attributes:
        accepted, quarantined, rejected: In the order given.
        decisions: One for each document, in the order given.
    """

    accepted: list[D]
    quarantined: list[D]
    rejected: list[D]
    decisions: tuple[Decision, ...]


class DocumentGate(Generic[D]):
    """Judges a framework's documents before they are written.

    Args:
        reading: Makes a passage of a document.
        nearest: The documents of the framework's store that are nearest to a document, as the framework has them.
        ingest: How they are judged; its own store, if it has one, is asked too.
    """

    def __init__(
        self, reading: Callable[[D], Passage], nearest: Callable[[D], Sequence[D]], ingest: Ingest | None = None
    ) -> None:
        self._reading, self._nearest, self.ingest = reading, nearest, ingest or Ingest()

    def sort_documents(self, documents: Sequence[D]) -> GateResult[D]:
        """Accept, quarantine or reject each; nothing is written.

        Raises:
            InputError: An unusable document.
        """
        beside = [self._document(near) for document in documents for near in self._nearest(document)]
        new = [self._document(document) for document in documents]
        decisions = self.ingest.check(new, beside=_once(beside)).decisions
        sorted_documents: dict[str, list[Any]] = {"accept": [], "quarantine": [], "reject": []}
        for document, decision in zip(documents, decisions, strict=True):
            sorted_documents[decision.decision].append(document)
        logger.info(
            "unpoison ingest: %d accepted, %d quarantined, %d rejected",
            *(len(sorted_documents[name]) for name in ("accept", "quarantine", "reject")),
        )
        return GateResult(
            sorted_documents["accept"], sorted_documents["quarantine"], sorted_documents["reject"], decisions
        )

    def _document(self, document: D) -> Document:
        passage = self._reading(document)
        metadata = getattr(document, "metadata", None) or getattr(document, "meta", None) or {}
        fields = {
            name: value for name, value in dict(metadata).items() if name not in ("text", "content", "page_content")
        }
        named = {name: getattr(passage, name) for name in ("text", "id", "title", "source", "embedding")}
        return Document.of({"metadata": fields, **{name: value for name, value in named.items() if value is not None}})


def _once(documents: Sequence[Document]) -> list[Document]:
    return list({(document.id, document.passage.text): document for document in documents}.values())
