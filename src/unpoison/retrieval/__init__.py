"""Retrievers: BM25, dense vectors, and any vector store.

The names below are imported when they are first used; a store's library is imported when the store is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.utils.extras import lazy_names

if TYPE_CHECKING:
    from unpoison.retrieval.base import HybridRetriever, Retriever
    from unpoison.retrieval.langchain import LangChainStore
    from unpoison.retrieval.memory import BM25Retriever, DenseRetriever
    from unpoison.retrieval.store import StoreRetriever

_HOMES = {
    "base": "HybridRetriever Retriever",
    "langchain": "LangChainStore",
    "memory": "BM25Retriever DenseRetriever",
    "store": "StoreRetriever",
}

__all__ = ["BM25Retriever", "DenseRetriever", "HybridRetriever", "LangChainStore", "Retriever", "StoreRetriever"]


__getattr__ = lazy_names(__name__, _HOMES)
