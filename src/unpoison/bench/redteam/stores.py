"""Where documents are planted in a Python system: our retrievers, and the stores of LangChain, LlamaIndex and Haystack.

All of them take ids that the caller chooses, so the id is known before anything is planted, and what a killed run left
behind can be removed without looking for it. None of their libraries is imported: an object is known by its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from unpoison.bench.redteam.targets import Document
from unpoison.core.passages import Passage
from unpoison.errors import OptionError, clip
from unpoison.retrieval import HybridRetriever
from unpoison.utils.extras import require

__all__ = ["Store", "store_of"]


class Store(NamedTuple):
    """How to add documents, each under its `uuid`, and how to remove them by it."""

    add: Callable[[Sequence[Document]], object]
    remove: Callable[[list[str]], object]


def store_of(value: Any) -> Store:
    """The store behind an object.

    A retriever of `unpoison.retrieval`, or any object with `add` and `remove`; a LangChain vector store; a LlamaIndex
    index; a Haystack document store.

    Raises:
        OptionError: None of these.
    """
    if isinstance(value, HybridRetriever):
        return _several([store_of(part) for part in value.retrievers])
    for methods, adapter in _ADAPTERS:
        if all(callable(getattr(value, name, None)) for name in methods):
            return adapter(value)
    raise OptionError(
        f"nothing can be planted into {clip(value)}; give a retriever of unpoison.retrieval, a LangChain vector "
        "store, a LlamaIndex index, a Haystack document store, or an object with ask, plant and remove"
    )


def metadata(document: Document) -> dict[str, Any]:
    """What an operator finds beside the text."""
    return {"canary": document.canary} | ({} if document.title is None else {"title": document.title})


def _several(stores: Sequence[Store]) -> Store:
    def add(documents: Sequence[Document]) -> None:
        for store in stores:
            store.add(documents)

    def remove(ids: list[str]) -> None:
        for store in stores:
            store.remove(ids)

    return Store(add, remove)


def _langchain(store: Any) -> Store:
    def add(documents: Sequence[Document]) -> None:
        texts, marks = [d.text for d in documents], [metadata(d) for d in documents]
        store.add_texts(texts, metadatas=marks, ids=[d.uuid for d in documents])

    return Store(add, lambda ids: store.delete(ids=ids))


def _llamaindex(index: Any) -> Store:
    nodes = require("llama_index.core.schema", "planting into a LlamaIndex index")

    def add(documents: Sequence[Document]) -> None:
        index.insert_nodes([nodes.TextNode(text=d.text, id_=d.uuid, metadata=metadata(d)) for d in documents])

    return Store(add, lambda ids: index.delete_nodes(ids, delete_from_docstore=True))


def _haystack(store: Any) -> Store:
    dataclasses = require("haystack.dataclasses", "planting into a Haystack document store")

    def add(documents: Sequence[Document]) -> None:
        store.write_documents([dataclasses.Document(id=d.uuid, content=d.text, meta=metadata(d)) for d in documents])

    return Store(add, store.delete_documents)


def _retriever(retriever: Any) -> Store:
    def add(documents: Sequence[Document]) -> None:
        retriever.add([Passage(d.text, id=d.uuid, title=d.title, source=d.canary) for d in documents])

    return Store(add, retriever.remove)


_ADAPTERS: tuple[tuple[tuple[str, ...], Callable[[Any], Store]], ...] = (
    (("add_texts", "delete"), _langchain),
    (("insert_nodes", "delete_nodes"), _llamaindex),
    (("write_documents", "delete_documents"), _haystack),
    (("add", "remove"), _retriever),
)
"""The methods by which each is known."""
