"""Vector stores with the same documents in them, each written by its own client, not by our code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from needs import need
from unpoison.retrieval.store import VectorStore, open_vector_store

COUNT = 12
VECTORS = np.random.default_rng(0).normal(size=(COUNT, 8)).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)  # every measure orders them alike
ROWS = [
    {"id": f"d{i}", "text": f"Text {i} – ünïcode", "title": f"Title {i}", "source": f"https://wiki.example/{i}",
     "date": "2026-01-31", "price": i / 7}
    for i in range(COUNT)
]  # fmt: skip

Open = Callable[..., VectorStore]
"""Opens the collection of a name; `docs` holds `ROWS` and `VECTORS`."""


def open_chroma(folder: Path) -> Open:
    need("chromadb")
    import chromadb as library

    with library.PersistentClient(str(folder)) as client:
        client.create_collection("docs", embedding_function=None).add(
            ids=[row["id"] for row in ROWS],
            documents=[row["text"] for row in ROWS],
            embeddings=VECTORS,
            metadatas=[{n: v for n, v in row.items() if n not in ("id", "text")} for row in ROWS],
        )
    return lambda name, **options: open_vector_store(f"chroma:{folder}#{name}", **options)


def open_faiss(folder: Path) -> Open:
    need("faiss")
    import faiss as library

    from unpoison.retrieval.faiss import FaissStore

    index = library.IndexFlatIP(VECTORS.shape[1])
    index.add(VECTORS)
    opened = {"docs": FaissStore(index, ROWS)}  # in memory: opened again it is the same one
    return lambda name, **options: opened.setdefault(name, FaissStore())


def open_qdrant(folder: Path) -> Open:
    need("qdrant_client")
    import qdrant_client as library

    from unpoison.retrieval.qdrant import QdrantStore

    models, client = library.models, library.QdrantClient(":memory:")  # a folder lets one client in at a time
    client.create_collection("docs", vectors_config=models.VectorParams(size=8, distance=models.Distance.DOT))
    points = zip(range(COUNT), VECTORS.tolist(), ROWS, strict=True)
    client.upsert("docs", [models.PointStruct(id=i, vector=vector, payload=row) for i, vector, row in points])
    return lambda name, **options: QdrantStore("", name, client=client, **options)


def open_pgvector(connection: Any) -> Open:
    from unpoison.retrieval.pgvector import PgvectorStore

    connection.execute("DROP TABLE IF EXISTS docs, held, made")
    connection.execute(
        "CREATE TABLE docs (id text PRIMARY KEY, text text, title text, source text, date text, price float8,"
        " embedding vector(8))"
    )
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO docs VALUES (%s, %s, %s, %s, %s, %s, %s::float8[]::vector)",
            [[*row.values(), vector] for row, vector in zip(ROWS, VECTORS.tolist(), strict=True)],
        )
    connection.commit()
    return lambda name, **options: PgvectorStore("", name, connection=connection, **options)


STORES = {"chroma": open_chroma, "faiss": open_faiss, "qdrant": open_qdrant}
"""Stores that need a folder only."""
