"""A store of documents: what `scan`, `quarantine`, the retriever of any store and the red team need of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from unpoison.errors import InputError, StoreError, clip
from unpoison.utils.closing import Closing

__all__ = ["TEXT_FIELDS", "Store", "VectorStore", "refuse", "textless", "unreachable"]

TEXT_FIELDS = ("text", "content", "page_content", "document")
"""Fields that hold the text, the first that is there; frameworks keep the rest in `metadata`."""


class Store(Closing, ABC):
    """One collection. Raw documents are what the store holds, as JSON has it, whatever it is; `id` names them.

    Attributes:
        name: What messages call it, without secrets.
    """

    name: str

    @abstractmethod
    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        """The raw documents of these ids; ids that are not there are left out."""

    @abstractmethod
    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        """Write raw documents, each in the place of the one that has its id."""

    @abstractmethod
    def take(self, ids: Collection[str]) -> None:
        """Take documents out. Only `quarantine` calls it, when they are seen to be in another store."""

    def shares_with(self, other: Store) -> bool:
        """Whether a document of one may be the very same in the other, so that nothing can be moved between them."""
        return self.name == other.name


class VectorStore(Store):
    """A store with a vector for each document: iterated, searched, added to, taken from, all fields kept."""

    @abstractmethod
    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Every document as fields: `text`, `id`, `embedding`, and what else the store holds.

        Raises:
            InputError: A document without a text.
            StoreError: It cannot be reached, or went away meanwhile.
        """

    @abstractmethod
    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        """The nearest documents by the store's own measure, best first: the fields of `rows`, and `score`.

        Args:
            vector: Of the store's dimensions, shape (d,).
            count: How many at most.

        Returns:
            A similarity where the store compares by cosine or product, a negated distance where by distance; higher is
            better.

        Raises:
            InputError: Other dimensions, or a document without a text.
            StoreError: It cannot be reached.
        """

    @abstractmethod
    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """What `put` takes, of a document that comes from elsewhere.

        Args:
            fields: `id`, `text`, `embedding`, and perhaps `title`, `source` and `metadata`; what the store has no place
                for is left out.
        """


def textless(name: str, document: object) -> InputError:
    """The error for a document without a text."""
    return InputError(f"the document {clip(document)} of {name} has no text; fill it, or take it out")


def unreachable(name: str, error: Exception, documents: int = 0) -> StoreError:
    """The error for a server that does not answer, or that went away after some documents were read."""
    if documents:
        return StoreError(
            f"{name} went away after {documents:,} documents ({_line(error)}); nothing was changed in it: run the same "
            "command again"
        )
    return StoreError(f"{name} cannot be reached ({_line(error)}); see whether the server runs and lets you in")


def refuse(name: str, error: Exception, check: str) -> InputError:
    """The error for what a server does not take; `check` says what to look at."""
    return InputError(f"{name} refuses this ({_line(error)}); see {check}")


def _line(error: Exception) -> str:
    return clip(" ".join(str(error).split()), 200)
