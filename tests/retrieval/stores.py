"""Vector stores with the same documents in them, each written by its own client, not by our code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval import stand_in_search
from unpoison.io.file_rows import json_line
from unpoison.retrieval.store import VectorStore
from unpoison.scan.stores import open_vector_store

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
    library = pytest.importorskip("chromadb", reason="CHROMA ABSENT: pip install 'unpoison[chroma]'")
    with library.PersistentClient(str(folder)) as client:
        client.create_collection("docs", embedding_function=None).add(
            ids=[row["id"] for row in ROWS],
            documents=[row["text"] for row in ROWS],
            embeddings=VECTORS,
            metadatas=[{n: v for n, v in row.items() if n not in ("id", "text")} for row in ROWS],
        )
    return lambda name, **options: open_vector_store(f"chroma:{folder}#{name}", **options)


def open_lancedb(folder: Path) -> Open:
    library = pytest.importorskip("lancedb", reason="LANCEDB ABSENT: pip install 'unpoison[lancedb]'")
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), VECTORS.shape[1])
    table = pa.Table.from_pylist(ROWS).append_column("vector", vectors)
    when = pa.array([datetime(2026, 1, 31, tzinfo=UTC)] * COUNT, pa.timestamp("us", "UTC"))
    library.connect(str(folder)).create_table("docs", table.append_column("added_at", when))
    return lambda name, **options: open_vector_store(f"lancedb:{folder}#{name}", **options)


def open_milvus(folder: Path) -> Open:
    library = pytest.importorskip("pymilvus", reason="MILVUS ABSENT: pip install 'unpoison[milvus]'")
    pytest.importorskip("milvus_lite", reason="MILVUS LITE ABSENT: pip install 'unpoison[milvus]'")
    address = folder / "milvus.db"
    client = library.MilvusClient(str(address))
    schema, index = client.create_schema(enable_dynamic_field=True), client.prepare_index_params()
    schema.add_field("id", library.DataType.VARCHAR, is_primary=True, max_length=64)
    schema.add_field("text", library.DataType.VARCHAR, max_length=1000)
    schema.add_field("vector", library.DataType.FLOAT_VECTOR, dim=VECTORS.shape[1])
    index.add_index("vector", index_type="FLAT", metric_type="IP")
    client.create_collection("docs", schema=schema, index_params=index)
    client.insert("docs", [{**row, "vector": vector} for row, vector in zip(ROWS, VECTORS.tolist(), strict=True)])
    client.close()
    return lambda name, **options: open_vector_store(f"milvus:{address}#{name}", **options)


def end_servers(folder: Path) -> None:
    """Milvus Lite keeps a server for each file until the process ends."""
    if (manager := sys.modules.get("milvus_lite.server_manager")) is not None:
        manager.server_manager_instance.release_server(str(folder / "milvus.db"))


def open_faiss(folder: Path) -> Open:
    library = pytest.importorskip("faiss", reason="FAISS ABSENT: pip install 'unpoison[faiss]'")
    index = library.IndexFlatIP(VECTORS.shape[1])
    index.add(VECTORS)
    library.write_index(index, str(folder / "docs.index"))
    (folder / "docs.jsonl").write_bytes(b"".join(map(json_line, ROWS)))
    return lambda name, **o: open_vector_store(f"faiss:{folder / name}.index,{folder / name}.jsonl", **o)


def open_qdrant(folder: Path) -> Open:
    library = pytest.importorskip("qdrant_client", reason="QDRANT ABSENT: pip install 'unpoison[qdrant]'")
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


@contextmanager
def open_elasticsearch(version: str = "9.2.0") -> Iterator[Open]:
    library = pytest.importorskip("elasticsearch", reason="ELASTICSEARCH ABSENT: pip install 'unpoison[elasticsearch]'")
    with stand_in_search.serve(stand_in_search.StandIn("elasticsearch", version)) as address:
        with library.Elasticsearch(address) as client:
            vector = {"type": "dense_vector", "dims": VECTORS.shape[1], "index": True, "similarity": "dot_product"}
            client.indices.create(index="docs", mappings={"properties": {"text": {"type": "text"}, "vector": vector}})
            client.bulk(operations=_operations(), refresh=True)
        yield lambda name, **options: open_vector_store(f"elasticsearch:{address}#{name}", **options)


@contextmanager
def open_opensearch(version: str = "2.19.0") -> Iterator[Open]:
    library = pytest.importorskip("opensearchpy", reason="OPENSEARCH ABSENT: pip install 'unpoison[opensearch]'")
    with stand_in_search.serve(stand_in_search.StandIn("opensearch", version)) as address:
        with library.OpenSearch(address) as client:
            vector = {"type": "knn_vector", "dimension": VECTORS.shape[1], "space_type": "innerproduct"}
            mapping = {"properties": {"text": {"type": "text"}, "vector": vector}}
            client.indices.create(index="docs", body={"mappings": mapping, "settings": {"index.knn": True}})
            client.bulk(body=_operations(), params={"refresh": "true"})
        yield lambda name, **options: open_vector_store(f"opensearch:{address}#{name}", **options)


def _operations() -> list[dict[str, Any]]:
    """Two lines for each document."""
    return [
        line
        for row, vector in zip(ROWS, VECTORS.tolist(), strict=True)
        for line in (
            {"index": {"_index": "docs", "_id": row["id"]}},
            {**{name: value for name, value in row.items() if name != "id"}, "vector": vector},
        )
    ]


@contextmanager
def open_weaviate() -> Iterator[Open]:
    library = pytest.importorskip("weaviate", reason="WEAVIATE ABSENT: pip install 'unpoison[weaviate]'")
    from retrieval import stand_in_weaviate

    with (
        stand_in_weaviate.serve(stand_in_weaviate.StandIn()) as (address, grpc),
        pytest.MonkeyPatch.context() as environment,
    ):
        environment.setenv("WEAVIATE_GRPC", grpc)
        with library.connect_to_custom(
            "127.0.0.1", int(address.rpartition(":")[2]), False, "127.0.0.1", int(grpc.rpartition(":")[2]), False,
            skip_init_checks=True,
        ) as client:  # fmt: skip
            kinds = {"price": "number"}
            names = ["_original_id", *(name for name in ROWS[0] if name != "id")]
            client.collections.create_from_dict(
                {
                    "class": "Docs",
                    "properties": [{"name": name, "dataType": [kinds.get(name, "text")]} for name in names],
                    "vectorIndexConfig": {"distance": "dot"},
                }
            )
            rows = [{("_original_id" if name == "id" else name): value for name, value in row.items()} for row in ROWS]
            many = zip(rows, VECTORS.tolist(), strict=True)
            made = library.classes.data.DataObject
            client.collections.use("Docs").data.insert_many([made(properties=r, vector=v) for r, v in many])
        yield lambda name, **options: open_vector_store(f"weaviate:{address}#{name.capitalize()}", **options)


SERVERS = {
    "elasticsearch": open_elasticsearch,
    "elasticsearch-8": partial(open_elasticsearch, "8.15.0"),
    "opensearch": open_opensearch,
    "weaviate": open_weaviate,
}
"""Stores whose server is a stand-in that ends with the test."""

IN_FOLDERS = {"chroma": open_chroma, "faiss": open_faiss, "lancedb": open_lancedb, "milvus": open_milvus}
"""Stores whose files can be copied at any moment, as the end of a process would leave them."""


def open_empty(prefix: str, folder: Path) -> VectorStore:
    """One of these that is made when something is put into it."""
    library, place = {
        "chroma:": ("chromadb", f"{folder}#wiki"),
        "faiss:": ("faiss", f"{folder}/wiki.index,{folder}/wiki.jsonl"),
        "lancedb:": ("lancedb", f"{folder}#wiki"),
    }[prefix]
    pytest.importorskip(library, reason=f"{library.upper()} ABSENT: pip install 'unpoison[{prefix[:-1]}]'")
    return open_vector_store(f"{prefix}{place}", new=True)
