"""Where passages come from: BM25, vectors, FAISS, Qdrant, pgvector, and any other vector store.

The names below are imported when they are first used; a store's library is imported when the retriever is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.utils.lazy import lazy_names

if TYPE_CHECKING:
    from unpoison.retrieval.base import Retriever
    from unpoison.retrieval.bm25 import BM25Retriever
    from unpoison.retrieval.dense import DenseRetriever
    from unpoison.retrieval.faiss import FaissRetriever
    from unpoison.retrieval.hybrid import HybridRetriever
    from unpoison.retrieval.pgvector import PgvectorRetriever
    from unpoison.retrieval.qdrant import QdrantRetriever
    from unpoison.retrieval.store_retriever import StoreRetriever

_HOMES = {
    "BM25Retriever": "bm25",
    "DenseRetriever": "dense",
    "FaissRetriever": "faiss",
    "HybridRetriever": "hybrid",
    "PgvectorRetriever": "pgvector",
    "QdrantRetriever": "qdrant",
    "Retriever": "base",
    "StoreRetriever": "store_retriever",
}

__all__ = [
    "BM25Retriever", "DenseRetriever", "FaissRetriever", "HybridRetriever", "PgvectorRetriever", "QdrantRetriever",
    "Retriever", "StoreRetriever",
]  # fmt: skip


__getattr__ = lazy_names(__name__, _HOMES)
