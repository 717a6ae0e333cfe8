"""A table with pgvector as a store that is scanned, and between which documents are moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from unpoison.errors import InputError
from unpoison.scan.quarantine import move

psycopg = pytest.importorskip("psycopg", reason="POSTGRES CLIENT ABSENT: pip install 'unpoison[pgvector]'")


def test_rows_are_read_moved_and_moved_back(connection, encoder, passages, tmp_path: Path) -> None:
    from unpoison.retrieval import PgvectorRetriever
    from unpoison.scan.store_pgvector import PgvectorStore

    connection.execute("DROP TABLE IF EXISTS held")
    PgvectorRetriever(connection, "passages", encoder).add(passages)
    here = PgvectorStore("", "passages", connection=connection)
    there = PgvectorStore("", "held", new=True, connection=connection)
    before = {d.id: (d.passage.text, d.passage.embedding.tolist()) for d in here.documents()}
    assert len(before) == 20
    assert move(["p3", "p7"], here, there, tmp_path / "journal").moved == ("p3", "p7")
    assert sorted(d.id for d in there.documents()) == ["p3", "p7"]
    assert len(list(here.documents())) == 18
    assert move(["p3", "p7"], there, here, tmp_path / "journal").moved == ("p3", "p7")
    assert {d.id: (d.passage.text, d.passage.embedding.tolist()) for d in here.documents()} == before
    with pytest.raises(InputError, match="the table 'nothing' is not there"):
        PgvectorStore("", "nothing", connection=connection)
