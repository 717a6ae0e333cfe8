"""The promises that every vector store keeps, and what a move that is broken off leaves in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval.stores import COUNT, ROWS, STORES, VECTORS, Open, open_chroma, open_pgvector
from unpoison.core.passages import Passage, Query
from unpoison.errors import InputError, OptionError, StoreError
from unpoison.models import FakeEncoder
from unpoison.retrieval import StoreRetriever
from unpoison.retrieval.store import STORES as FORMS
from unpoison.retrieval.store import VectorStore
from unpoison.scan.documents import Document
from unpoison.scan.quarantine import earlier_moves, move
from unpoison.scan.sources import read_documents
from unpoison.scan.stores import open_store

IDS = [row["id"] for row in ROWS]
NEW = {"id": "new", "text": "another text", "title": "Another", "source": "https://new.example"}


@pytest.fixture(params=[*STORES, "pgvector"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens stores of one kind, and closes them in the end."""
    if request.param == "pgvector":
        opener = open_pgvector(request.getfixturevalue("connection"))
    else:
        opener = STORES[request.param](tmp_path)

    def open_and_close(name: str, **options: Any) -> VectorStore:
        store = opener(name, **options)
        request.addfinalizer(store.close)
        return store

    return open_and_close


@pytest.fixture
def docs(opened: Open) -> VectorStore:
    return opened("docs")


def contents(store: VectorStore) -> dict[str, str]:
    """Everything that it holds, byte for byte as the journal would have it."""
    return {name: json.dumps(raw, sort_keys=True, default=str) for name, raw in store.fetch([*IDS, "new"]).items()}


def test_rows_bring_every_field_and_the_vector(docs: VectorStore) -> None:
    rows = {row["id"]: row for row in docs.rows()}
    assert sorted(rows) == sorted(IDS)
    for row, vector in zip(ROWS, VECTORS, strict=True):
        assert rows[row["id"]].items() >= row.items()
        assert np.array_equal(np.asarray(rows[row["id"]]["embedding"], np.float32), vector)
    document = Document.of_row(rows["d3"])
    assert (document.passage.title, document.passage.source) == ("Title 3", "https://wiki.example/3")
    assert document.added_at is not None


def test_search_finds_what_the_exact_search_finds_best_first(docs: VectorStore) -> None:
    query = VECTORS[4] + 0.1 * VECTORS[7]
    order = np.argsort(-(VECTORS @ query)).tolist()
    for count in (0, 3, COUNT + 5):
        hits = docs.search(query.tolist(), count)
        assert [hit["id"] for hit in hits] == [IDS[i] for i in order[:count]]
        assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    (first,) = docs.search(query.tolist(), 1)
    held = next(row for row in docs.rows() if row["id"] == "d4")
    assert {name: list(v) if name == "embedding" else v for name, v in first.items() if name != "score"} == {
        name: list(v) if name == "embedding" else v for name, v in held.items()
    }


def test_a_query_of_other_dimensions_is_refused(docs: VectorStore) -> None:
    with pytest.raises(InputError):
        docs.search([1.0, 2.0], 3)


def test_documents_from_elsewhere_are_added_replaced_and_removed(docs: VectorStore) -> None:
    before = contents(docs)
    for text in ("first words", "second words"):
        docs.put({"new": docs.raw({**NEW, "text": text, "embedding": VECTORS[0].tolist()})})
        (row,) = (row for row in docs.rows() if row["id"] == "new")
        assert row.items() >= {**NEW, "text": text}.items()
        assert len(list(docs.rows())) == COUNT + 1
    assert {name: raw for name, raw in contents(docs).items() if name != "new"} == before
    docs.take(["new", "never there"])
    docs.take([])
    assert contents(docs) == before


def test_one_that_is_not_there_is_refused_or_made_when_something_is_put(
    opened: Open, request: pytest.FixtureRequest
) -> None:
    if request.node.callspec.params["opened"] != "faiss":  # which is in memory
        with pytest.raises(InputError):
            opened("made")
    made = opened("made", new=True)
    assert (list(made.rows()), made.fetch(["new"]), made.search(VECTORS[0].tolist(), 3)) == ([], {}, [])
    made.put({"new": made.raw({**NEW, "embedding": VECTORS[0].tolist()})})
    (row,) = opened("made").rows()
    assert row.items() >= NEW.items()


def test_documents_of_another_kind_are_refused(docs: VectorStore) -> None:
    before = contents(docs)
    with pytest.raises(InputError, match="of the same kind"):
        docs.put({"new": {"id": "new", "bytes": "00"}})
    assert contents(docs) == before


def test_quarantined_and_restored_everything_is_byte_for_byte_as_before(
    docs: VectorStore, opened: Open, tmp_path: Path
) -> None:
    held, journal, before = opened("held", new=True), tmp_path / "journal.jsonl", contents(docs)
    assert move(["d2", "d5"], docs, held, journal).moved == ("d2", "d5")
    assert contents(docs) == {name: raw for name, raw in before.items() if name not in ("d2", "d5")}
    assert contents(held) == {name: before[name] for name in ("d2", "d5")}
    assert len(docs.search(VECTORS[2].tolist(), COUNT)) == COUNT - 2
    move(earlier_moves(journal, docs, held), held, docs, journal)
    assert (contents(docs), contents(held)) == (before, {})
    assert docs.search(VECTORS[2].tolist(), 1)[0]["id"] == "d2"


@pytest.mark.parametrize("back", [False, True], ids=["quarantine", "restore"])
def test_killed_at_any_step_it_goes_on_and_comes_back(back: bool, tmp_path: Path) -> None:
    """The files are copied before and after each step: they are what a process that ends there leaves behind."""
    live = tmp_path / "live"
    live.mkdir()
    opener = open_chroma(live)
    with opener("docs") as docs, opener("held", new=True) as held:
        before = contents(docs)
        if back:
            move(["d2", "d5"], docs, held, live / "journal.jsonl")
        here, there = (held, docs) if back else (docs, held)
        copies = copy_at_every_step(live, here, there, lambda: move(["d2", "d5"], here, there, live / "journal.jsonl"))
    assert len(copies) == 4
    for copy in copies:  # takes the place of the folder, for the journal names the stores that it knows
        shutil.rmtree(live)
        copy.rename(live)
        check_goes_on(opener, live / "journal.jsonl", before, back)


def copy_at_every_step(live: Path, here: VectorStore, there: VectorStore, act: Callable[[], object]) -> list[Path]:
    """The folder before and after each change of `act` to a store, with the journal as it is then."""
    copies: list[Path] = []

    def copied(call: Callable[..., Any]) -> Callable[..., Any]:
        def with_copies(*arguments: Any) -> Any:
            copies.append(shutil.copytree(live, live.with_name(f"copy-{len(copies)}")))
            result = call(*arguments)
            copies.append(shutil.copytree(live, live.with_name(f"copy-{len(copies)}")))
            return result

        return with_copies

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(there, "put", copied(there.put))
        patch.setattr(here, "take", copied(here.take))
        act()
    return copies


def check_goes_on(opener: Open, journal: Path, before: dict[str, str], back: bool) -> None:
    """Nothing is lost; the same call ends the move; and `--restore` brings all back."""
    with opener("docs") as docs, opener("held", new=True) as held:
        assert {**contents(held), **contents(docs)} == before  # in one of them or in both, whole
        here, there = (held, docs) if back else (docs, held)
        moved = move(["d2", "d5"], here, there, journal)
        assert {*moved.moved, *moved.before} == {"d2", "d5"}
        assert not here.fetch(["d2", "d5"])
        if not back:
            assert contents(docs) == {name: raw for name, raw in before.items() if name not in ("d2", "d5")}
            move(earlier_moves(journal, docs, held), held, docs, journal)
        assert (contents(docs), contents(held)) == (before, {})


@pytest.mark.parametrize("source", ["chrome:folder#docs", "s3://bucket/docs", "mongodb://host/docs#rows"])
def test_an_unknown_prefix_is_answered_with_the_known_ones(source: str) -> None:
    for call in (open_store, lambda name: list(read_documents(name, lambda failure: None))):
        with pytest.raises(OptionError, match="unknown store prefix") as caught:
            call(source)
        assert all(form in str(caught.value) for form in FORMS)


@pytest.mark.parametrize("form", FORMS)
def test_a_string_that_lacks_a_part_is_answered_with_its_form(form: str) -> None:
    with pytest.raises(OptionError, match="a store of this kind has the form") as caught:
        open_store(form.partition("#")[0])
    assert form in str(caught.value)


@pytest.mark.needs("chromadb")
def test_a_folder_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no"):
        open_store(f"chroma:{tmp_path / 'nowhere'}#docs")
    assert not any(tmp_path.iterdir())


@pytest.mark.needs("qdrant_client")
def test_a_server_that_is_down_is_a_store_error() -> None:
    import qdrant_client as qdrant

    from unpoison.retrieval.qdrant import QdrantStore

    client = qdrant.QdrantClient("http://127.0.0.1:1", timeout=1, check_compatibility=False)
    with pytest.raises(StoreError, match="cannot be reached"):
        QdrantStore("", "docs", client=client)


@pytest.mark.needs("qdrant_client")
def test_qdrant_searches_the_first_of_several_vectors_and_reads_what_others_wrote(encoder: FakeEncoder) -> None:
    import qdrant_client as qdrant

    from unpoison.retrieval.qdrant import QdrantStore

    client, size = qdrant.QdrantClient(":memory:"), qdrant.models.VectorParams(size=32, distance="Cosine")
    client.create_collection("named", vectors_config={"mine": size, "other": size})
    vector = encoder.encode(["a"])[0].tolist()
    point = qdrant.models.PointStruct
    client.upsert("named", [point(id=7, vector={"mine": vector}, payload={"content": "a", "title": 3, "url": "u"})])
    retriever = StoreRetriever(QdrantStore("", "named", client=client), encoder)
    (passage,) = retriever.retrieve("a", 5)
    assert (passage.id, passage.text, passage.title, passage.source) == ("7", "a", None, "u")
    client.upsert("named", [point(id=8, vector={"mine": vector}, payload={"text": None})])
    with pytest.raises(InputError, match=r"the document 8 of .* has no text"):
        retriever.retrieve("a", 5)


@pytest.mark.needs("psycopg")
def test_pgvector_quotes_names_and_leaves_no_transaction_open(connection: Any, encoder: FakeEncoder) -> None:
    import psycopg

    from unpoison.retrieval.pgvector import PgvectorStore

    connection.execute('CREATE TABLE "odd "" name; --" (id text PRIMARY KEY, text text, embedding vector)')
    retriever = StoreRetriever(PgvectorStore("", 'odd " name; --', connection=connection), encoder)
    hostile = "'); DROP TABLE passages; --"
    retriever.add([Passage(hostile, id="7")])
    assert [(p.text, p.id) for p in retriever.retrieve(hostile, 3)] == [(hostile, "7")]
    with pytest.raises(InputError, match="0x00"):  # PostgreSQL takes no NUL in texts
        retriever.add([Passage("a\x00b", id="nul")])
    with pytest.raises(InputError, match="dimensions"):
        retriever.retrieve(Query("q", [1.0] * 5), 1)
    connection.commit()
    retriever.retrieve("q", 1)
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    connection.close()
    with pytest.raises(StoreError, match="cannot be reached"):
        retriever.retrieve("q", 1)


@pytest.mark.parametrize("metric", ["IP", "L2"])
@pytest.mark.parametrize("kind", ["Flat", "HNSW8", "IVF2,Flat"])
@pytest.mark.needs("faiss")
def test_a_faiss_index_of_the_user(kind: str, metric: str, capfd: pytest.CaptureFixture[str]) -> None:
    import faiss

    from unpoison.retrieval.faiss import FaissStore

    index = faiss.index_factory(8, kind, {"IP": faiss.METRIC_INNER_PRODUCT, "L2": faiss.METRIC_L2}[metric])
    index.train(VECTORS)
    index.add(VECTORS)
    if kind != "Flat":
        if kind.startswith("IVF"):
            with pytest.raises(InputError, match="make_direct_map"):
                FaissStore(index, ROWS).search(VECTORS[4].tolist(), 3)
            index.make_direct_map()
        with pytest.raises(InputError, match="cannot remove single vectors"):
            FaissStore(index, ROWS).take(["d1"])
    hits = FaissStore(index, ROWS).search(VECTORS[4].tolist(), 3)
    assert hits[0]["id"] == "d4"
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    with pytest.raises(InputError, match="has 12 vectors and 11 rows were passed"):
        FaissStore(index, ROWS[1:])


@pytest.mark.needs("langchain_core")
def test_langchain_stores_are_named_by_python_and_documents_move_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_stores.py").write_text(
        "from langchain_core.embeddings import DeterministicFakeEmbedding as Fake\n"
        "from langchain_core.vectorstores import InMemoryVectorStore as Made\n"
        "docs, held = Made(Fake(size=8)), Made(Fake(size=8))\n"
        "docs.add_texts(['one text', 'another'], [{'source': 'https://a'}, {}], ids=['a', 'b'])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    docs, held = open_store("langchain:my_stores:docs"), open_store("langchain:my_stores:held")
    before = docs.fetch(["a", "b"])
    assert move(["a", "nowhere"], docs, held, tmp_path / "journal").missing == ("nowhere",)
    assert (list(docs.fetch(["a", "b"])), held.fetch(["a"])) == (["b"], {"a": before["a"]})
    move(earlier_moves(tmp_path / "journal", docs, held), held, docs, tmp_path / "journal")
    assert (docs.fetch(["a", "b"]), held.fetch(["a"])) == (before, {})
    for wrong in ("my_stores:nothing", "no_such_module:docs", "my_stores:__name__"):
        with pytest.raises(OptionError, match="langchain:"):
            open_store(f"langchain:{wrong}")
