"""The interface of document stores for `scan`, `quarantine`, the retriever of any store, and the red team."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from unpoison.errors import InputError, StoreError, clip
from unpoison.utils.closing import Closing

__all__ = ["TEXT_FIELDS", "Store", "VectorStore", "refuse", "textless", "unreachable"]

TEXT_FIELDS = ("text", "content", "page_content", "document")
"""Names of the text field, the first one present; frameworks keep other fields in `metadata`."""


class Store(Closing, ABC):
    """One collection. Raw documents are JSON values with all fields of the store; `id` names them.

    Attributes:
        name: Its name in messages, without secrets.
    """

    name: str

    @abstractmethod
    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        """The raw documents of these ids; unknown ids are ignored."""

    @abstractmethod
    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        """Write raw documents; each replaces the one with its id."""

    @abstractmethod
    def take(self, ids: Collection[str]) -> None:
        """Remove documents. `quarantine` calls it only after they were read back from another store."""

    def shares_with(self, other: Store) -> bool:
        """Whether both stores may share documents, so that nothing can be moved between them."""
        return self.name == other.name


class VectorStore(Store):
    """A store with a vector for each document, which can be iterated, searched and changed."""

    @abstractmethod
    def rows(self) -> Iterator[Mapping[str, Any]]:
        """All documents as fields: `text`, `id`, `embedding`, and the other fields of the store.

        Raises:
            InputError: A document without a text.
            StoreError: It cannot be reached, or became unavailable.
        """

    @abstractmethod
    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        """The nearest documents by the store's own measure, best first: the fields of `rows`, and `score`.

        Args:
            vector: Shape (d,), with the store's dimension.
            count: Maximum number of documents.

        Returns:
            A similarity where the store compares by cosine or product, a negated distance where by distance; higher is
            better.

        Raises:
            InputError: Another dimension, or a document without a text.
            StoreError: It cannot be reached.
        """

    @abstractmethod
    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Convert a document from elsewhere for `put`.

        Args:
            fields: `id`, `text`, `embedding`, and perhaps `title`, `source` and `metadata`; what the store has no place
                for is left out.
        """


def textless(name: str, document: object) -> InputError:
    """The error for a document without a text."""
    return InputError(f"the document {clip(document)} of {name} has no text; fill it, or remove it")


def unreachable(name: str, error: Exception, documents: int = 0) -> StoreError:
    """The error for an unavailable server, at the start or after some documents were read."""
    if documents:
        return StoreError(
            f"{name} became unavailable after {documents:,} documents ({_line(error)}); nothing was changed: repeat "
            "the command"
        )
    return StoreError(
        f"{name} cannot be reached ({_line(error)}); check that the server is running and that you have access"
    )


def refuse(name: str, error: Exception, check: str) -> InputError:
    """The error for a rejected request; `check` says what to examine."""
    return InputError(f"{name} rejected the request ({_line(error)}); check {check}")


def _line(error: Exception) -> str:
    return clip(" ".join(str(error).split()), 200)
