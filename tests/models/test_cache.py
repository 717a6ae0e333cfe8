"""Caches in memory and in files."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from unpoison.core.answers import Reply
from unpoison.errors import InputError, ModelError, OptionError, StoreError
from unpoison.models import CachedEncoder, CachedGenerator, FakeEncoder, LexicalEncoder, ScriptedGenerator, cache
from unpoison.models.prompts import Prompt, answer_prompt
from unpoison.models.protocols import AsyncGenerator, BatchGenerator, Encoder, Generator, Models
from unpoison.models.requests import generate
from unpoison.runtime.driver import arun, run

PROMPT = answer_prompt("Where?", ["Here."])


def prompts(count):
    return [answer_prompt(f"Which is number {i}?", ["text"]) for i in range(count)]


@pytest.fixture(params=["memory", "file"])
def path(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "cache.db"


class Plain:
    """A generator that offers `generate` alone."""

    name = "plain"

    def __init__(self):
        self.requests = []

    def generate(self, prompt, /, *, timeout=None):
        self.requests.append(prompt)
        return Reply(f"reply {len(self.requests)}", 7, 2, "length")


class Batch(Plain):
    name = "batch"

    def generate_batch(self, prompts, /, *, timeout=None):
        return [self.generate(prompt) for prompt in prompts]


def test_each_text_is_encoded_once(path):
    encoder = FakeEncoder()
    cached = CachedEncoder(encoder, path=path)
    first = cached.encode(["a", "b", "a", "\ud800"])
    second = cached.encode(["b", "c", "a"])
    assert encoder.calls == [("a", "b", "\ud800"), ("c",)]
    assert first.dtype == second.dtype == np.float32
    assert np.array_equal(first, FakeEncoder().encode(["a", "b", "a", "\ud800"]))
    assert np.array_equal(second, FakeEncoder().encode(["b", "c", "a"]))
    assert cached.encode([]).shape == (0, 32)
    assert cached.name == "fake"
    assert isinstance(cached, Encoder)


def test_a_file_serves_the_next_instance_and_holds_no_more_than_the_limit(tmp_path):
    path = tmp_path / "cache.db"
    CachedEncoder(FakeEncoder(), path=path, limit=3).encode(["a", "b", "c", "d"])
    encoder = FakeEncoder()
    CachedEncoder(encoder, path=path, limit=3).encode(["a", "b", "c", "d"])
    assert encoder.calls == [("a",)]
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (3,)
    connection.close()


def test_encoders_of_whole_sets_and_impossible_limits_are_refused(path):
    with pytest.raises(OptionError, match="depend on the other texts"):
        CachedEncoder(LexicalEncoder(), path=path)
    with pytest.raises(OptionError, match="limit must be a whole number of at least 1, got 0"):
        CachedEncoder(FakeEncoder(), path=path, limit=0)
    with pytest.raises(OptionError, match="limit"):
        CachedGenerator(ScriptedGenerator("x"), path=path, limit=-1)


def test_each_prompt_is_asked_once_and_the_reply_says_so(path):
    generator = Plain()
    cached = CachedGenerator(generator, path=path)
    assert cached.generate(PROMPT) == Reply("reply 1", 7, 2, "length", cached=False)
    assert cached.generate(PROMPT) == Reply("reply 1", 7, 2, "length", cached=True)
    longer = Prompt(PROMPT.task, PROMPT.system, PROMPT.question, PROMPT.passages, max_tokens=999)
    assert cached.generate(longer).text == "reply 2"
    assert generator.requests == [PROMPT, longer]
    assert cached.name == "plain"


def test_it_offers_what_the_wrapped_generator_offers():
    plain, batch, asynchronous = (CachedGenerator(g) for g in (Plain(), Batch(), ScriptedGenerator("x")))
    assert isinstance(plain, Generator)
    assert not isinstance(plain, (AsyncGenerator, BatchGenerator))
    assert isinstance(batch, BatchGenerator)
    assert not isinstance(batch, AsyncGenerator)
    assert isinstance(asynchronous, AsyncGenerator)
    assert not isinstance(asynchronous, BatchGenerator)


def test_a_batch_asks_only_what_is_missing(path):
    generator = Batch()
    cached = CachedGenerator(generator, path=path)
    requests = prompts(4)
    cached.generate(requests[2])
    replies = cached.generate_batch([requests[0], requests[2], requests[3], requests[0]])
    assert [reply.text for reply in replies] == ["reply 2", "reply 1", "reply 3", "reply 2"]
    assert [reply.cached for reply in replies] == [False, True, False, False]
    assert generator.requests == [requests[2], requests[0], requests[3]]
    assert cached.generate_batch([]) == []


def test_failures_are_not_kept(path):
    cached = CachedGenerator(ScriptedGenerator([ModelError("down"), "Paris"]), path=path)
    with pytest.raises(ModelError, match="down"):
        cached.generate(PROMPT)
    assert cached.generate(PROMPT).text == "Paris"
    assert cached.generate(PROMPT).cached


def test_the_driver_accounts_for_cached_replies_in_both_worlds(path):
    generator = ScriptedGenerator(lambda prompt: prompt.question)
    models = Models(generator=CachedGenerator(generator, path=path))
    requests = prompts(5)
    for drive, cached in ((run, False), (run, True), (lambda *given: asyncio.run(arun(*given)), True)):
        replies, calls = drive(generate(requests), models)
        assert [reply.text for reply in replies] == [prompt.question for prompt in requests]
        assert [call.cached for call in calls] == [cached] * 5
    assert len(generator.prompts) == 5


@pytest.mark.parametrize("moment", ["before it is opened", "while it is open"])
def test_a_damaged_cache_is_set_aside_and_a_fresh_one_used(
    tmp_path: Path, moment: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cache.db"

    def asked() -> list[bool]:
        return [generator.generate(prompt).cached for prompt in prompts(20)]

    generator = CachedGenerator(Plain(), path=path)
    asked()
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes(byte ^ 0xFF for byte in whole[100:]))
    if moment == "before it is opened":
        generator = CachedGenerator(Plain(), path=path)
    assert asked() == [False] * 20
    assert asked() == [True] * 20
    (warning,) = caplog.messages
    assert "was damaged; a fresh one is used" in warning
    assert path.with_name(f"{path.name}.damaged").read_bytes().startswith(whole[:100])


def test_a_reply_that_cannot_be_kept_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(connection: sqlite3.Connection) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    generator = CachedGenerator(Plain(), path=tmp_path / "cache.db")
    with monkeypatch.context() as patch:
        patch.setattr(cache, "transaction", full)
        assert [generator.generate(prompt).text for prompt in prompts(2)] == ["reply 1", "reply 2"]
    (warning,) = caplog.messages
    assert "free some space; what is computed now is not kept" in warning
    assert not generator.generate(PROMPT).cached
    assert generator.generate(PROMPT).cached


@pytest.mark.parametrize(
    "make", [lambda path: CachedEncoder(FakeEncoder(), path=path), lambda path: CachedGenerator(Plain(), path=path)]
)
def test_files_that_are_no_such_cache_are_refused_in_a_sentence(tmp_path, make):
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"this is no database " * 500)
    with pytest.raises(InputError, match=r"garbage\.db' is damaged or no SQLite file"):
        make(garbage)
    assert garbage.read_bytes().startswith(b"this is no database")
    foreign = tmp_path / "foreign.db"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE entries (mine TEXT)")
    connection.close()
    with pytest.raises(InputError, match=r"no cache of (vectors|replies)"):
        make(foreign)
    for path in (tmp_path / "absent" / "cache.db", tmp_path):
        with pytest.raises(StoreError, match="cannot be used"):
            make(path)
