"""Any LangChain `VectorStore` as a retriever and, if it can get and delete by id, as a store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any, Self

from unpoison.core.passages import Passage, Query, as_query
from unpoison.errors import InputError, OptionError, clip
from unpoison.retrieval.base import Retriever, by_trust, check_count, depth
from unpoison.retrieval.store import Store
from unpoison.sources.sources import Sources, SourcesOption

__all__ = ["LangChainStore"]


class LangChainStore(Store, Retriever):
    """A LangChain vector store, which embeds questions and documents itself.

    A document that is moved to another LangChain store is embedded there anew. LangChain has no way to list all
    documents, so such a store is not scanned.

    Args:
        store: Any `langchain_core.vectorstores.VectorStore`.
        sources: Multiplies the score by the trust in the passage's source (`retrieval.base`).
    """

    def __init__(self, store: Any, *, sources: SourcesOption = None) -> None:
        self.store, self.sources, self.encoder = store, Sources.of(sources), None
        self.name = f"the LangChain store {type(store).__name__} {id(store):x}"

    @classmethod
    def of_name(cls, name: str) -> Self:
        """The store with a Python name, `package.module:store`, or the result of a function with that name.

        Raises:
            OptionError: There is no such object, or it is not a vector store.
        """
        try:
            found = resolve_name(name)
        except (ImportError, AttributeError, ValueError) as error:
            raise OptionError(f"langchain:{name} cannot be loaded ({error}); write langchain:MODULE:STORE") from None
        store = found if hasattr(found, "similarity_search") or not callable(found) else found()
        if not hasattr(store, "similarity_search"):
            raise OptionError(f"langchain:{name} is a {type(store).__name__}, not a vector store; name a vector store")
        opened = cls(store)
        opened.name = f"the LangChain store {name}"
        return opened

    def retrieve(self, query: str | Query, k: int) -> tuple[Passage, ...]:
        question, count = as_query(query).text, check_count(k)
        question = question.encode("utf-8", "replace").decode()  # few embedders accept a lone surrogate
        wanted = depth(self.sources, count)
        if not wanted:
            return ()
        try:
            scored = self.store.similarity_search_with_relevance_scores(question, wanted)
        except NotImplementedError:  # the store does not define relevance scores
            scored = [(found, 1 / rank) for rank, found in enumerate(self.store.similarity_search(question, wanted), 1)]
        scored = sorted(scored, key=lambda pair: -pair[1])
        passages = [replace(Passage.of(found), score=float(score)) for found, score in scored]
        return by_trust(self.sources, question, passages, count)

    def add(self, passages: Iterable[Any]) -> None:
        """Write passages to the store, which embeds them; each needs an id."""
        self.put({row["id"]: row for row in (_row(Passage.of(one, i), i) for i, one in enumerate(passages))})

    def remove(self, ids: Iterable[str]) -> None:
        """Remove passages; unknown ids are ignored."""
        self.take(list(ids))

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        try:
            found = self.store.get_by_ids(list(ids)) if ids else []
        except NotImplementedError:
            raise InputError(f"{self.name} cannot get documents by id; name the underlying store") from None
        return {str(one.id): {"id": str(one.id), "text": one.page_content, "metadata": one.metadata} for one in found}

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        if any("text" not in row or "embedding" in row for row in raw.values()):
            raise InputError(f"{self.name} accepts texts with metadata; move documents to a store of the same kind")
        if raw:
            from langchain_core.documents import Document

            documents = [Document(row["text"], id=key, metadata=row.get("metadata") or {}) for key, row in raw.items()]
            self.store.add_documents(documents, ids=list(raw))

    def take(self, ids: Collection[str]) -> None:
        if ids and self.store.delete(list(ids)) is False:
            raise InputError(f"{self.name} did not delete {clip(sorted(ids))}; delete them in the underlying store")

    def __repr__(self) -> str:
        return f"LangChainStore({type(self.store).__name__})"


def _row(passage: Passage, position: int) -> dict[str, Any]:
    if passage.id is None:
        raise InputError(f"passages[{position}] has no id, which stores require; add one")
    named = {name: value for name in ("title", "source") if (value := getattr(passage, name))}
    return {"id": passage.id, "text": passage.text, "metadata": {**passage.metadata, **named}}
