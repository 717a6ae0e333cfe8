"""Many processes at once, processes that are killed, files that are damaged, and schemas that change."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from unpoison.beliefs import Belief, SqliteBeliefs, open_beliefs
from unpoison.errors import InputError, OptionError, StoreError

WRITERS = Path(__file__).with_name("writers.py")
KILLS = int(os.environ.get("UNPOISON_KILLS", "40"))
A = Belief("Ada", 0.8, 0.1)


def run(*arguments: object) -> dict[str, int]:
    command = [sys.executable, str(WRITERS), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", done.stdout)}


@pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])
def test_eight_processes_lose_no_update(kind, spec):
    assert run("updates", spec(kind), 8, 10, 10) == {"failed": 0, "least": 80, "most": 80}


def test_killed_processes_leave_no_torn_belief(tmp_path):
    result = run("crashes", tmp_path / "beliefs.db", KILLS)
    assert result["kills"] == KILLS
    assert result["torn"] == 0
    assert result["between"] > 0  # some were killed in the middle


def test_a_forked_process_has_a_connection_of_its_own(tmp_path):
    path = tmp_path / "beliefs.db"
    program = f"""
import os
from unpoison.beliefs import Belief, SqliteBeliefs
store = SqliteBeliefs({str(path)!r})
store.put("parent", Belief("p", 1, 0))
child = os.fork()
if child == 0:
    store.put("child", Belief("c", 1, 0))
    os._exit(0)
os.waitpid(child, 0)
store.put("parent", Belief("again", 1, 0))
print([store.get(key).answer for key in ("child", "parent")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "['c', 'again']\n", done.stderr


class TestFiles:
    @pytest.mark.parametrize("content", [b"not a database", b"\0" * 5000, b"SQLite format 3\0" + b"x" * 5000])
    def test_what_is_no_database_is_refused_and_left_alone(self, tmp_path, content):
        path = tmp_path / "beliefs.db"
        path.write_bytes(content)
        with pytest.raises((InputError, StoreError), match=r"damaged|cannot be used"):
            SqliteBeliefs(path)
        assert path.read_bytes() == content

    def test_a_damaged_page_is_refused(self, tmp_path):
        path = tmp_path / "beliefs.db"
        store = SqliteBeliefs(path)
        for number in range(200):
            store.put(f"k{number:03}", Belief("word " * 60, 0.5, 0.5))
        store.close()
        content = bytearray(path.read_bytes())
        content[4096 * 3 : 4096 * 12] = os.urandom(4096 * 9)
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"damaged|no belief"):
            store = SqliteBeliefs(path)
            [store.get(f"k{number:03}") for number in range(200)]

    def test_a_value_that_is_no_belief_is_refused(self, tmp_path):
        path = tmp_path / "beliefs.db"
        store = SqliteBeliefs(path)
        store.put("k", A)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE beliefs SET support = 7")
        connection.close()
        with pytest.raises(InputError, match=r"no belief: belief\.support"):
            store.get("k")
        store.close()

    def test_a_folder_that_is_not_there(self, tmp_path):
        with pytest.raises(StoreError, match="cannot be used"):
            SqliteBeliefs(tmp_path / "absent" / "beliefs.db")

    def test_a_path_that_no_file_can_have(self):
        with pytest.raises(OptionError, match="the store of beliefs must be the path of a file"):
            SqliteBeliefs("a\0b")

    def test_a_locked_file(self, tmp_path, monkeypatch):
        monkeypatch.setattr(SqliteBeliefs, "busy", 0.05)
        store = SqliteBeliefs(tmp_path / "beliefs.db")
        with sqlite3.connect(tmp_path / "beliefs.db", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="locked"):
                store.put("k", A)
        other.close()
        store.close()


class TestForeign:
    @pytest.mark.needs("psycopg")
    def test_postgres(self, postgres_server):
        import psycopg

        with psycopg.connect(postgres_server.url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE foreign_tables")
        foreign = postgres_server.url.replace("/postgres", "/foreign_tables")
        with psycopg.connect(foreign, autocommit=True) as connection:
            connection.execute("CREATE TABLE unpoison_beliefs (anything text)")
        with pytest.raises(InputError, match="made by something else"):
            open_beliefs(foreign)

    @pytest.mark.needs("redis")
    def test_redis(self, redis_server):
        import redis

        store, client = open_beliefs(redis_server.url), redis.Redis.from_url(redis_server.url)
        client.hset("unpoison:beliefs:foreign", "answer", "a")
        with pytest.raises(InputError, match="something else"):
            store.get("foreign")
        for value in ("a string", "v 1.0 [1]", "v x {}", b"\xff", 'v 1.0 {"answer": "a", "support": 3, "conflict": 0}'):
            client.set("unpoison:beliefs:odd", value)
            with pytest.raises(InputError, match="no belief"):
                store.get("odd")
        for opened in (store, client):
            opened.close()
