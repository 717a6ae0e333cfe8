"""Weaviate: what does not come whole with an object is refused, and everything else goes and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from unpoison.errors import InputError, StoreError
from unpoison.retrieval.weaviate import WeaviateStore
from unpoison.scan.quarantine import earlier_moves, move
from unpoison.scan.stores import open_vector_store

A, B, C = (str(UUID(int=number)) for number in (1, 2, 3))
VECTOR = np.array([1.0, 0.25], "<f4").tobytes()


class Server:
    """A server with the collection Docs, and stores of it."""

    def __init__(self, state: Any, address: str) -> None:
        self.state, self.address = state, address
        self.stores = list[WeaviateStore]()

    def open(self, name: str = "Docs", **options: Any) -> WeaviateStore:
        store: Any = open_vector_store(f"weaviate:{self.address}#{name}", **options)
        self.stores.append(store)
        return store  # type: ignore[no-any-return]

    def make(self, name: str = "Docs", *, kinds: dict[str, str] | None = None, **options: Any) -> None:
        """A collection with texts and properties of these kinds."""
        properties = [{"name": key, "dataType": [kind]} for key, kind in {"text": "text", **(kinds or {})}.items()]
        self.state.make({"class": name, "properties": properties, **options})

    def add(self, uuid: str, vectors: dict[str, bytes] | None = None, **properties: Any) -> None:
        held = {"default": VECTOR} if vectors is None else vectors
        self.state.objects["Docs"][uuid] = ({"text": "a text", **properties}, held)

    def held(self, name: str = "Docs") -> Any:
        """Everything in a collection."""
        return deepcopy(self.state.objects.get(name, {}))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    pytest.importorskip("weaviate", reason="WEAVIATE ABSENT: pip install 'unpoison[weaviate]'")
    from retrieval import stand_in_weaviate

    state = stand_in_weaviate.StandIn()
    with stand_in_weaviate.serve(state) as (address, grpc):
        monkeypatch.setenv("WEAVIATE_GRPC", grpc)
        served = Server(state, address)
        try:
            yield served
        finally:
            for store in served.stores:
                store.close()


@pytest.mark.parametrize("kind", ["blob", "geoCoordinates", "phoneNumber", "Author", "object of blobs"])
def test_objects_with_what_does_not_come_whole_are_not_moved(server: Server, kind: str, tmp_path: Path) -> None:
    if kind == "object of blobs":
        inner = [{"name": "extra", "dataType": ["blob"]}]
        deep = {"name": "deep", "dataType": ["object"], "nestedProperties": inner}
        server.state.make({"class": "Docs", "properties": [{"name": "text", "dataType": ["text"]}, deep]})
    else:
        server.make(kinds={"extra": kind})
    server.add(A)
    before = server.held()
    with pytest.raises(InputError, match="extra do not come"):
        move([A], server.open(), server.open("Held", new=True), tmp_path / "journal")
    assert (server.held(), server.state.objects.keys()) == (before, {"Docs"})
    assert not (tmp_path / "journal").exists()
    if kind != "Author":
        assert [row["id"] for row in server.open().rows()] == [A]


def test_every_type_goes_and_comes_back(server: Server, tmp_path: Path) -> None:
    inner = [{"name": "page", "dataType": ["int"]}, {"name": "when", "dataType": ["date"]}]
    kinds = {
        "n": "int",
        "x": "number",
        "on": "boolean",
        "at": "date",
        "ref": "uuid",
        "tags": "text[]",
        "xs": "number[]",
    }
    properties = [{"name": key, "dataType": [kind]} for key, kind in {"text": "text", **kinds}.items()]
    metadata = {"name": "metadata", "dataType": ["object"], "nestedProperties": inner}
    server.state.make({"class": "Docs", "properties": [*properties, metadata]})
    when = "2026-01-31T10:00:00.123456+01:00"
    server.add(
        A, n=2**53, x=1 / 3, on=True, at=when, ref=B, tags=["ä", "b"], xs=[0.1, 2.0],
        metadata={"page": 7, "when": when},
    )  # fmt: skip
    server.add(B, vectors={})
    docs, held, before = server.open(), server.open("Held", new=True), server.held()
    move([A, B], docs, held, tmp_path / "journal")
    assert (server.held(), server.held("Held")) == ({}, before)
    move(earlier_moves(tmp_path / "journal", docs, held), held, docs, tmp_path / "journal")
    assert (server.held(), server.held("Held")) == (before, {})
    row = next(iter(docs.rows()))
    assert (row["page"], row["at"], row["embedding"]) == (7, when, [1.0, 0.25])


def test_a_number_that_would_be_rounded_is_refused(server: Server) -> None:
    server.make(kinds={"n": "int"})
    server.add(A, n=2**53 + 2)
    with pytest.raises(InputError, match="would round"):
        server.open().fetch([A])


def test_named_vectors_are_kept_and_the_first_is_searched(server: Server, tmp_path: Path) -> None:
    named = {"vectorizer": {"none": {}}, "vectorIndexType": "hnsw"}
    far = {**named, "vectorIndexConfig": {"distance": "l2-squared"}}
    server.make(vectorConfig={"body": far, "head": {**named, "vectorIndexConfig": {"distance": "cosine"}}})
    other = np.array([0.0, 1.0], "<f4").tobytes()
    server.add(A, vectors={"body": VECTOR, "head": other})
    server.add(B, vectors={"body": other})
    docs, held, before = server.open(), server.open("Held", new=True), server.held()
    assert [(hit["id"], hit["score"]) for hit in docs.search([1.0, 0.25], 5)] == [(A, 0.0), (B, -1.5625)]
    move([A, B], docs, held, tmp_path / "journal")
    assert server.held("Held") == before
    assert server.state.schemas["Held"]["vectorConfig"]["body"]["vectorIndexConfig"]["distance"] == "l2-squared"
    move([A, B], held, docs, tmp_path / "journal")
    assert server.held() == before


@pytest.mark.parametrize(("measure", "score"), [("cosine", 0.6), ("dot", 3.0), ("l2-squared", -20.0)])
def test_the_score_is_a_similarity_or_a_negated_distance(server: Server, measure: str, score: float) -> None:
    server.make(vectorIndexConfig={"distance": measure})
    server.add(A, vectors={"default": np.array([3.0, 4.0], "<f4").tobytes()})
    (hit,) = server.open().search([1.0, 0.0], 1)
    assert hit["score"] == pytest.approx(score)


def test_an_error_of_one_object_is_an_error(server: Server, tmp_path: Path) -> None:
    server.make()
    server.add(A)
    server.add(B, text="bad words")
    server.state.refusing = "bad words"
    before = server.held()
    for ids in ([A, B], [B]):  # of some, and of all
        with pytest.raises(InputError, match="refused by the stand-in"):
            move(ids, server.open(), server.open("Held", new=True), tmp_path / "journal")
    assert server.held() == before


def test_two_objects_of_one_name_are_not_moved(server: Server) -> None:
    server.make(kinds={"_original_id": "text"})
    server.add(A, _original_id="one")
    server.add(B, _original_id="one")
    with pytest.raises(InputError, match="several objects named 'one'"):
        server.open().fetch(["one"])


def test_without_a_place_for_names_documents_are_found_by_their_uuid(server: Server) -> None:
    server.make(kinds={"source": "text"})
    docs = server.open()
    docs.put({"n": docs.raw({"id": "n", "text": "new", "source": "S", "title": "T", "embedding": [1.0, 0.0]})})
    ((properties, _),) = server.state.objects["Docs"].values()
    assert properties == {"text": "new", "source": "S"}
    docs.take(["n"])
    assert server.held() == {}


def test_many_objects_are_read_once_each(server: Server) -> None:
    server.make()
    for number in range(1, 251):
        server.add(str(UUID(int=number)), text=f"text {number}")
    assert [row["text"] for row in server.open().rows()] == [f"text {number}" for number in range(1, 251)]


def test_between_an_alias_and_its_collection_nothing_is_moved(server: Server, tmp_path: Path) -> None:
    server.make()
    server.make("Others")
    server.add(A)
    server.state.aliases["Current"] = "Docs"
    with pytest.raises(InputError, match="is where the documents are"):
        move([A], server.open("Current"), server.open(), tmp_path / "journal")
    assert not server.open("Current").shares_with(server.open("Others"))


def test_a_collection_with_tenants_is_refused(server: Server) -> None:
    server.make(multiTenancyConfig={"enabled": True})
    with pytest.raises(InputError, match="has tenants"):
        server.open()


def test_an_object_without_a_text_is_named(server: Server) -> None:
    server.make(kinds={"body": "text"})
    server.add(A, text=None, body="words")
    with pytest.raises(InputError, match="has no text"):
        list(server.open().rows())


def test_the_key_comes_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.make()
    monkeypatch.setenv("WEAVIATE_API_KEY", "a-key")
    list(server.open().rows())
    assert "Bearer a-key" in server.state.keys


def test_a_server_that_does_not_answer_is_named(server: Server) -> None:
    with pytest.raises(StoreError, match="cannot be reached"):
        open_vector_store("weaviate:http://127.0.0.1:9#Docs")


def test_a_server_that_goes_away_while_it_is_read_is_named(server: Server) -> None:
    server.make()
    for number in range(1, 251):
        server.add(str(UUID(int=number)))
    reading = server.open().rows()
    next(reading)
    server.state.late = True
    with pytest.raises(StoreError, match="went away after 100 documents"):
        list(reading)
