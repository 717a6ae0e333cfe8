"""QdrantRetriever against Qdrant's local mode, and against a server that is not there."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest

from unpoison.errors import InputError, OptionError, StoreError
from unpoison.models import FakeEncoder
from unpoison.retrieval import DenseRetriever, QdrantRetriever
from unpoison.scan.stores import open_vector_store
from unpoison.types import Passage, Query

qdrant = pytest.importorskip("qdrant_client", reason="QDRANT ABSENT: pip install 'unpoison[qdrant]'")
SIZE = qdrant.models.VectorParams(size=32, distance=qdrant.models.Distance.COSINE)


@pytest.fixture
def client():
    retrieved = qdrant.QdrantClient(":memory:")
    retrieved.create_collection("wiki", vectors_config=SIZE)
    yield retrieved
    retrieved.close()


@pytest.fixture
def retriever(client, encoder, passages):
    retrieved = QdrantRetriever(client, "wiki", encoder)
    retrieved.add(passages)
    return retrieved


def test_it_finds_what_the_exact_search_finds_and_brings_the_vectors(retriever, encoder, passages):
    exact = DenseRetriever(encoder, passages)
    encoder.calls.clear()
    for k in (1, 7, 20, 25):
        retrieved, expected = retriever.retrieve("text number 3", k), exact.retrieve("text number 3", k)
        assert [p.id for p in retrieved] == [p.id for p in expected]
        np.testing.assert_allclose([p.score for p in retrieved], [p.score for p in expected], atol=1e-6)
        np.testing.assert_allclose([p.embedding for p in retrieved], [p.embedding for p in expected], atol=1e-6)
    assert all(texts == ("text number 3",) for texts in encoder.calls)  # the hits were not encoded again


def test_a_given_query_embedding_is_not_encoded_again(retriever, encoder):
    query = Query("something else", encoder.encode(["text number 5"])[0])
    encoder.calls.clear()
    assert retriever.retrieve(query, 1)[0].id == "p5"
    assert encoder.calls == []


def test_no_passages_are_no_error(client, encoder, retriever):
    client.create_collection("empty", vectors_config=SIZE)
    empty = QdrantRetriever(client, "empty", encoder)
    assert empty.retrieve("q", 5) == ()
    assert retriever.retrieve("q", 0) == ()
    empty.add([])


def test_fields_come_back_and_the_point_itself(client, encoder):
    retriever = QdrantRetriever(client, "wiki", encoder, text="body")
    retriever.add([Passage("a", id="1", title="A", source="https://a", metadata={"author": "ann"})])
    (passage,) = retriever.retrieve("a", 1)
    assert passage.metadata["author"] == "ann"
    assert (passage.text, passage.id, passage.title, passage.source) == ("a", "1", "A", "https://a")
    assert passage.original.payload["body"] == "a"


def test_named_vectors(client, encoder, passages):
    client.create_collection("named", vectors_config={"mine": SIZE, "other": SIZE})
    retriever = QdrantRetriever(client, "named", encoder, vector="mine")
    retriever.add(passages)
    (passage,) = retriever.retrieve("text number 2", 1)
    assert (passage.id, passage.embedding.shape) == ("p2", (32,))


def test_an_id_again_or_a_text_again_replaces_the_passage(retriever, client):
    retriever.add([Passage("new text", id="p0"), "no id", "no id"])
    assert client.count("wiki").count == 21
    assert retriever.retrieve("new text", 1)[0].id == "p0"
    assert retriever.retrieve("no id", 1)[0].text == "no id"


def test_points_that_somebody_else_wrote(client, encoder):
    point = qdrant.models.PointStruct
    vectors = encoder.encode(["a", "b"]).tolist()
    client.upsert("wiki", [point(id=7, vector=vectors[0], payload={"text": "a", "title": 3, "url": "https://b"})])
    retriever = QdrantRetriever(client, "wiki", encoder)
    (passage,) = retriever.retrieve("a", 5)
    assert (passage.id, passage.title, passage.source) == ("7", None, "https://b")
    for payload in ({}, {"text": None}, {"text": ["list"]}, {"content": "b"}):
        client.upsert("wiki", [point(id=8, vector=vectors[1], payload=payload)])
        with pytest.raises(InputError, match=r"point 8 of .* has no text in the payload field 'text'"):
            retriever.retrieve("b", 1)


def test_what_qdrant_refuses_is_an_input_error(client, encoder, retriever):
    with pytest.raises(InputError, match="Collection nowhere not found"):
        QdrantRetriever(client, "nowhere", encoder).retrieve("q", 1)
    with pytest.raises(InputError, match="refuses this"):
        QdrantRetriever(client, "wiki", FakeEncoder(dimensions=5)).retrieve("q", 1)
    with pytest.raises(InputError, match="expected dim: 32, got 3"):
        retriever.add([Passage("a", id="a", embedding=[1, 2, 3])])
    with pytest.raises(InputError, match="embedding of passage 'b' has 2 dimensions and the index 3"):
        retriever.add([Passage("a", id="a", embedding=[1, 2, 3]), Passage("b", id="b", embedding=[1, 2])])
    with pytest.raises(OptionError, match="k must be a whole number from 0 to 5,000"):
        retriever.retrieve("q", -1)


def test_a_server_that_is_down_is_a_store_error(encoder):
    retriever = QdrantRetriever(
        qdrant.QdrantClient("http://127.0.0.1:1", timeout=1, check_compatibility=False), "wiki", encoder
    )
    with pytest.raises(StoreError, match="cannot be reached"):
        retriever.retrieve("q", 1)


@pytest.mark.parametrize(("status", "kind"), [(404, InputError), (503, StoreError)])
def test_the_servers_status_decides_whose_fault_it_is(encoder, status, kind):
    def query_points(*_, **__):
        raise qdrant.http.exceptions.UnexpectedResponse(status, "reason", b"{}", None)

    with pytest.raises(kind, match=str(status)):
        QdrantRetriever(SimpleNamespace(query_points=query_points), "wiki", encoder).retrieve("q", 1)


def test_asynchronously_by_either_client(retriever, encoder, passages):
    expected = retriever.retrieve("text number 9", 4)

    async def both():
        client = qdrant.AsyncQdrantClient(":memory:")
        await client.create_collection("wiki", vectors_config=SIZE)
        native = QdrantRetriever(client, "wiki", encoder)
        points = [retriever._point(p, v) for p, v in zip(passages, encoder.encode([p.text for p in passages]))]
        await client.upsert("wiki", points)
        with pytest.raises(OptionError, match="retrieve needs a QdrantClient"):
            native.retrieve("text number 9", 4)
        with pytest.raises(OptionError, match="add needs a QdrantClient"):
            native.add([])
        assert await native.aretrieve("text number 9", 0) == ()
        return await native.aretrieve("text number 9", 4), await retriever.aretrieve("text number 9", 4)

    for retrieved in asyncio.run(both()):
        assert [p.id for p in retrieved] == [p.id for p in expected]
        np.testing.assert_allclose([p.embedding for p in retrieved], [p.embedding for p in expected], atol=1e-6)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the client forgets its lock's file
def test_a_folder_that_another_client_has_open_is_named_with_the_way_out(tmp_path):
    address = f"qdrant:{tmp_path / 'local'}"
    with (
        open_vector_store(f"{address}#docs", new=True),
        pytest.raises(StoreError, match="name collections of two folders, or run a Qdrant server"),
    ):
        open_vector_store(f"{address}#held", new=True)
