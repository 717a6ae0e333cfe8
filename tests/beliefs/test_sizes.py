"""A belief takes at most a kilobyte in every store, measured over the sample's answers and at its longest."""

from __future__ import annotations

import json

import pytest

from unpoison import Radar
from unpoison.beliefs import Belief, MemoryBeliefs, export_lines, import_lines, open_beliefs
from unpoison.bench.evaluation.adaptations import Answerer
from unpoison.bench.evaluation.streams import run_stream
from unpoison.bench.evaluation.timelines import load_timelines

KILOBYTE = 1024


@pytest.fixture(scope="module")
def sample() -> list[str]:
    """What RADAR remembers of the sample after the last step, as an export."""
    store = MemoryBeliefs()
    run_stream(Answerer(Radar("extractive", beliefs=store), "beliefs"), load_timelines("timeline"))
    return list(export_lines(store))


LONGEST = Belief("word " * 500, 1 / 3, 2 / 3, "why " * 500)


def test_exported(sample):
    assert max(len(line.encode()) for line in sample) <= KILOBYTE
    assert len(json.dumps({"key": "k" * 32, **LONGEST.to_dict()}).encode()) <= KILOBYTE


def test_sqlite_with_the_whole_file_counted(sample, spec, tmp_path):
    store = open_beliefs(spec("sqlite"))
    import_lines(store, sample)
    for number in range(100 - len(sample)):
        store.put(f"{number:032}", LONGEST)
    store.close()
    assert sum(path.stat().st_size for path in tmp_path.glob("beliefs.db*")) / 100 <= KILOBYTE


def test_redis_with_its_own_overhead(sample, spec, namespace):
    import redis

    store = open_beliefs(spec("redis"), namespace=namespace, ttl=3600)
    import_lines(store, sample)
    store.put("longest" + "k" * 25, LONGEST)
    client = redis.Redis.from_url(spec("redis"))
    sizes = [client.memory_usage(name) for name in client.scan_iter(match=f"*{namespace}:*", count=1000)]
    assert len(sizes) == len(sample) + 1
    assert max(sizes) <= KILOBYTE
    store.forget_all()
    store.close()
    client.close()


def test_postgres_with_its_index(sample, spec, namespace):
    import psycopg

    store = open_beliefs(spec("postgres"), namespace=namespace)
    import_lines(store, sample)
    store.put("longest" + "k" * 25, LONGEST)
    with psycopg.connect(spec("postgres")) as connection:
        rows = connection.execute(
            "SELECT pg_column_size(b.*) + pg_column_size(b.namespace) + pg_column_size(b.key) + 40"
            " FROM unpoison_beliefs b WHERE namespace = %s",
            (namespace,),
        ).fetchall()
    assert len(rows) == len(sample) + 1
    assert max(size for (size,) in rows) <= KILOBYTE
    store.forget_all()
    store.close()
