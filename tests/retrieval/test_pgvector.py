"""PgvectorRetriever against a real PostgreSQL with pgvector."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from unpoison.errors import InputError, OptionError, StoreError
from unpoison.models import FakeEncoder
from unpoison.retrieval import DenseRetriever, PgvectorRetriever
from unpoison.retrieval.pgvector import PgvectorStore
from unpoison.scan.documents import Document
from unpoison.scan.quarantine import move
from unpoison.types import Passage, Query

psycopg = pytest.importorskip("psycopg", reason="POSTGRES CLIENT ABSENT: pip install 'unpoison[pgvector]'")


@pytest.fixture
def retriever(connection, encoder, passages):
    retrieved = PgvectorRetriever(connection, "passages", encoder)
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


def test_no_passages_are_no_error(connection, encoder, retriever):
    assert retriever.retrieve("text number 3", 0) == ()
    connection.execute("DELETE FROM passages")
    assert retriever.retrieve("text number 3", 5) == ()
    retriever.add([])


def test_titles_and_sources_come_from_the_columns_that_are_named(connection, encoder):
    columns = {"id": "id", "text": "text", "embedding": "embedding", "title": "title", "source": "source"}
    retriever = PgvectorRetriever(connection, "public.passages", encoder, columns=columns)
    retriever.add([Passage("a", id="1", title="A", source="https://a"), Passage("b", id="2")])
    assert [(p.title, p.source) for p in retriever.retrieve("a", 2)] == [("A", "https://a"), (None, None)]


def test_names_are_quoted_and_values_passed(connection, encoder):
    connection.execute('CREATE TABLE IF NOT EXISTS "odd "" name; --" ("Id" integer PRIMARY KEY, "t" text, "v" vector)')
    connection.execute('DELETE FROM "odd "" name; --"')
    hostile = "'); DROP TABLE passages; --"
    retriever = PgvectorRetriever(
        connection, 'odd " name; --', encoder, columns={"id": "Id", "text": "t", "embedding": "v"}
    )
    retriever.add([Passage(hostile, id=7)])
    (passage,) = retriever.retrieve(hostile, 3)
    assert (passage.text, passage.id) == (hostile, "7")
    assert connection.execute("SELECT count(*) FROM passages").fetchone() == (0,)


def test_the_same_id_again_replaces_the_passage(retriever, connection):
    retriever.add([Passage("new text", id="p0"), Passage("newer text", id="p0")])
    assert connection.execute("SELECT text FROM passages WHERE id = 'p0'").fetchall() == [("newer text",)]
    assert retriever.retrieve("newer text", 1)[0].id == "p0"


def test_adding_is_all_or_nothing(retriever, connection):
    wrong = [Passage("fine", id="fine"), *(Passage(f"m{i}", id=f"m{i}", embedding=np.ones(3)) for i in range(1))]
    with pytest.raises(InputError, match=r"embedding of passage 'm0' has 3 dimensions and the index 32"):
        retriever.add(wrong)
    with pytest.raises(InputError, match=r"passages\[1\] has no id"):
        retriever.add([Passage("fine", id="fine"), "no id"])
    with pytest.raises(InputError, match="expected 32 dimensions, not 3"):
        retriever.add([Passage("a", id="fine", embedding=[1, 2, 3])])
    with pytest.raises(InputError, match=r"0x00"):  # PostgreSQL takes no NUL in texts
        retriever.add([Passage("fine", id="fine"), Passage("a\x00b", id="nul")])
    with pytest.raises(InputError, match="surrogates not allowed"):
        retriever.add([Passage("fine", id="fine"), Passage("lone \ud800", id="lone")])
    assert connection.execute("SELECT count(*) FROM passages").fetchone() == (20,)
    assert len(retriever.retrieve("text number 1", 30)) == 20  # and the connection is still usable


def test_rows_that_cannot_be_used(connection, encoder, retriever):
    connection.execute("INSERT INTO passages VALUES ('none', 'not embedded', NULL, NULL, NULL)")
    zeros = [0.0] * 32
    connection.execute("INSERT INTO passages VALUES ('zero', 'nothing in it', NULL, NULL, %s)", (str(zeros),))
    passages = retriever.retrieve("text number 1", 30)
    assert len(passages) == 21
    assert (passages[-1].id, passages[-1].score) == ("zero", 0.0)  # cosine to nothing: last
    connection.execute("ALTER TABLE passages ALTER text DROP NOT NULL")
    connection.execute("UPDATE passages SET text = NULL WHERE id = 'p3'")
    with pytest.raises(InputError, match=r"row 'p3' of .* has no text"):
        retriever.retrieve("text number 3", 1)


def test_equal_distances_go_by_id(connection, encoder):
    retriever = PgvectorRetriever(connection, "passages", encoder)
    vector = encoder.encode(["x"])[0]
    retriever.add([Passage("x", id=name, embedding=vector) for name in "dacb"])
    assert [p.id for p in retriever.retrieve("x", 4)] == ["a", "b", "c", "d"]


def test_an_index_is_used(connection, retriever, encoder):
    connection.execute("CREATE INDEX ON passages USING hnsw (embedding vector_cosine_ops)")
    connection.execute("SET LOCAL enable_seqscan = off")
    statement = retriever._search.as_string(connection)
    parameters = retriever._parameters(encoder.encode(["x"])[0], 3)
    plan = connection.execute("EXPLAIN " + statement, parameters).fetchall()
    assert any("Index Scan using passages_embedding_idx" in line for (line,) in plan), plan
    assert retriever.retrieve("text number 4", 1)[0].id == "p4"


def test_what_the_database_refuses_is_an_input_error(connection, encoder):
    with pytest.raises(InputError, match=r"relation .* does not exist"):
        PgvectorRetriever(connection, "nowhere", encoder).retrieve("q", 1)
    connection.execute("SELECT 1")  # the transaction of the caller goes on
    retriever = PgvectorRetriever(connection, "passages", FakeEncoder(dimensions=5))
    with connection.transaction():
        connection.execute("INSERT INTO passages (id, text, embedding) VALUES ('a', 'a', %s)", (str([1.0] * 32),))
    with pytest.raises(InputError, match="different vector dimensions 32 and 5"):
        retriever.retrieve("q", 1)


def test_a_closed_connection_is_a_store_error(pgvector_url, encoder):
    with psycopg.connect(pgvector_url) as connection:
        pass
    with pytest.raises(StoreError, match="cannot be reached"):
        PgvectorRetriever(connection, "passages", encoder).retrieve("q", 1)


def test_a_table_without_a_key_takes_nothing(connection, encoder):
    connection.execute("CREATE TEMPORARY TABLE keyless (id text, text text, embedding vector)")
    with pytest.raises(InputError, match="no unique or exclusion constraint"):
        PgvectorRetriever(connection, "keyless", encoder).add([Passage("a", id="a")])


def test_no_transaction_is_left_open(retriever, connection):
    connection.commit()
    retriever.retrieve("text number 1", 1)
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


@pytest.mark.parametrize(
    "columns", [{}, {"id": "id", "text": "text"}, {"id": "i", "text": "t", "embedding": "e", "score": "s"}]
)
def test_columns_are_checked(encoder, columns):
    with pytest.raises(OptionError, match="columns must name those of id, text and embedding"):
        PgvectorRetriever(object(), "passages", encoder, columns=columns)


def test_asynchronously_by_either_connection(retriever, connection, pgvector_url, encoder):
    connection.commit()
    expected = retriever.retrieve("text number 9", 4)

    async def both():
        async with await psycopg.AsyncConnection.connect(pgvector_url) as retrieved:
            native = PgvectorRetriever(retrieved, "passages", encoder)
            with pytest.raises(OptionError, match="use aretrieve"):
                native.retrieve("text number 9", 4)
            with pytest.raises(OptionError, match=r"add needs a psycopg\.Connection"):
                native.add([])
            at_once = await asyncio.gather(*(native.aretrieve("text number 9", 4) for _ in range(5)))
            return [*at_once, await retriever.aretrieve("text number 9", 4)]

    assert asyncio.run(both()) == [expected] * 6


def test_several_threads_at_once(retriever):
    retrieved = {}
    threads = [
        threading.Thread(target=lambda i=i: retrieved.update({i: retriever.retrieve(f"text number {i}", 1)[0].id}))
        for i in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert retrieved == {i: f"p{i}" for i in range(12)}


def test_the_password_is_not_shown(pgvector_url, encoder):
    with psycopg.connect(pgvector_url, password="very secret") as connection:
        assert "secret" not in repr(PgvectorRetriever(connection, "passages", encoder))


def test_rows_are_read_moved_and_moved_back(connection, encoder, passages, tmp_path):
    connection.execute("DROP TABLE IF EXISTS held")
    PgvectorRetriever(connection, "passages", encoder).add(passages)
    here = PgvectorStore("", "passages", connection=connection)
    there = PgvectorStore("", "held", new=True, connection=connection)
    before = {d.id: (d.passage.text, d.passage.embedding.tolist()) for d in map(Document.of_row, here.rows())}
    assert len(before) == 20
    assert move(["p3", "p7"], here, there, tmp_path / "journal").moved == ("p3", "p7")
    assert sorted(d.id for d in map(Document.of_row, there.rows())) == ["p3", "p7"]
    assert len(list(map(Document.of_row, here.rows()))) == 18
    assert move(["p3", "p7"], there, here, tmp_path / "journal").moved == ("p3", "p7")
    assert {d.id: (d.passage.text, d.passage.embedding.tolist()) for d in map(Document.of_row, here.rows())} == before
    with pytest.raises(InputError, match="the table 'nothing' is not there"):
        PgvectorStore("", "nothing", connection=connection)


def test_every_type_of_column_comes_back_to_the_letter(connection, tmp_path):
    """Of those that Python rounds (numeric, jsonb), and those that PostgreSQL fills in itself."""
    connection.execute("DROP TABLE IF EXISTS held")
    connection.execute("DROP TABLE IF EXISTS typed")
    connection.execute(
        "CREATE TABLE typed (id bigint GENERATED ALWAYS AS IDENTITY, text varchar(99), price numeric(12, 6),"
        " extra jsonb, tags text[], added_at timestamptz, embedding vector(3),"
        " length int GENERATED ALWAYS AS (length(text)) STORED)"
    )
    connection.execute(
        "INSERT INTO typed (text, price, extra, tags, added_at, embedding) SELECT 'text ' || n, n / 7.0,"
        """ '{"a": [1.10, null, 12345678901234567890.5]}', '{"a, b", NULL}', '2026-01-31 12:00:00.000001+02',"""
        " '[0.1, -0.2, 3e-9]' FROM generate_series(1, 3) n"
    )
    everything = "SELECT t::text FROM typed t ORDER BY id"
    before = connection.execute(everything).fetchall()
    here = PgvectorStore("", "typed", connection=connection)
    there = PgvectorStore("", "held", new=True, connection=connection)
    move(["1", "3"], here, there, tmp_path / "journal")
    assert connection.execute(everything).fetchall() == before[1:2]
    move(["1", "3"], there, here, tmp_path / "journal")
    assert connection.execute(everything).fetchall() == before
