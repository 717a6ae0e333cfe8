"""Files with questions and replies are for their owner alone; hostile ones are refused before they cost anything."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from unpoison.beliefs import open_beliefs
from unpoison.errors import InputError, OptionError, UnpoisonError
from unpoison.models import CachedEncoder, CachedGenerator, FakeEncoder, OpenAIGenerator, ScriptedGenerator
from unpoison.models.prompts import Prompt


def test_caches_and_beliefs_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    CachedGenerator(ScriptedGenerator("x"), path=tmp_path / "replies.db").generate(Prompt("free", "s", "q"))
    CachedEncoder(FakeEncoder(), path=tmp_path / "vectors.db").encode(["a"])
    open_beliefs(f"sqlite:{tmp_path / 'beliefs.db'}")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert {"replies.db", "vectors.db", "beliefs.db"} <= set(modes)
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN INSERT INTO entries (value) VALUES (zeroblob(1000000)); END",
        "CREATE VIEW v AS SELECT 1",
    ],
)
def test_a_cache_with_a_trigger_or_view_is_refused(tmp_path: Path, statement: str) -> None:
    """A recursive trigger once hung and wrote 1.5 GB."""
    path = tmp_path / "replies.db"
    CachedGenerator(ScriptedGenerator("x"), path=path)
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(InputError, match="contains more than a cache of replies"):
        CachedGenerator(ScriptedGenerator("x"), path=path)


@pytest.mark.parametrize("spec", ["rediss:u:s3cret@host", "redis:s3cret@host", "postgresql:u:s3cret@host/db"])
def test_a_misspelt_address_makes_no_file_and_is_not_repeated(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match="with two slashes") as refused:
        open_beliefs(spec)
    assert "s3cret" not in str(refused.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.needs("openai")
def test_extra_fields_of_requests_appear_in_no_name() -> None:
    given = [
        OpenAIGenerator("m", api_key="x", extra_body=body) for body in ({"token": "s3cret"}, {"token": "other"}, None)
    ]
    assert "s3cret" not in json.dumps([one.name for one in given]) + repr(given)
    assert len({one.name for one in given}) == 3, "a cache still tells them apart"


@pytest.mark.parametrize(
    "url",
    [f"postgresql://u:s3cret@{place}" for place in ("127.0.0.1:1/db", "127.0.0.1:nonsense/db", "[::1")],
)
@pytest.mark.needs("psycopg")
def test_a_password_of_a_database_appears_in_no_message(url: str) -> None:
    with pytest.raises(UnpoisonError) as refused:
        open_beliefs(url)
    assert "s3cret" not in str(refused.value)
