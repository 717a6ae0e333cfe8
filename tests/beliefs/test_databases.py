"""The promises of every belief store, kept against real files and servers."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unpoison.beliefs import Belief, BeliefStore, SqliteBeliefs, belief_key, open_beliefs, update
from unpoison.errors import InputError, OptionError, StoreError

A, B = Belief("Ada", 0.8, 0.1, "Who?"), Belief("Bea", 0.5, 0.25)


def test_what_is_put_is_got(store):
    assert isinstance(store, BeliefStore)
    assert store.get("k") is None
    assert store.put("k", A)
    found = store.get("k")
    assert found == A
    assert found.query == "Who?"
    assert found.version
    assert found.created == found.updated == pytest.approx(time.time(), abs=60)


def test_compare_and_set(store):
    assert store.put("k", A, expected="")
    assert not store.put("k", B, expected="")
    first = store.get("k")
    assert not store.put("k", B, expected="somebody-else")
    assert store.put("k", B, expected=first.version)
    assert not store.put("k", A, expected=first.version)
    second = store.get("k")
    assert second == B
    assert second.version != first.version
    assert second.created == first.created
    assert second.updated >= first.updated
    assert not store.put("other", A, expected="somebody-else")
    assert store.get("other") is None


def test_update_starts_again_when_somebody_was_faster(store):
    store.put("k", Belief("0", 0.5, 0.5))
    seen = []

    def change(belief):
        seen.append(belief.answer)
        if len(seen) == 1:
            store.put("k", Belief("10", 0.5, 0.5))
        return Belief(str(int(belief.answer) + 1), 0.5, 0.5)

    assert update(store, "k", change).answer == "11"
    assert seen == ["0", "10"]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(answer=st.text(max_size=2000), query=st.text(max_size=500), support=st.floats(0, 1), conflict=st.floats(0, 1))
def test_no_text_breaks_it_and_none_is_larger_than_a_kilobyte(store, answer, query, support, conflict):
    belief = Belief(answer, support, conflict, query)
    store.put("k", belief)
    found = store.get("k")
    assert (found.answer, found.weights, found.query) == (belief.answer, belief.weights, belief.query)
    held = json.dumps({"key": "k" * 32, **found.to_dict(), "version": found.version}, ensure_ascii=False)
    assert len(held.encode()) - held.count("\\") <= 1024


@pytest.mark.parametrize("key", ["", "white space", "new\nline", "nul\0", "x" * 129, None, 7, "\u200b"])
def test_keys_that_some_store_could_not_hold(store, key):
    for operation in (store.get, lambda found: store.put(found, A)):
        with pytest.raises(InputError, match="key"):
            operation(key)


def test_options_are_checked():
    for spec in ("mysql://host", "sqlite:", ""):
        with pytest.raises(OptionError, match="no belief store"):
            open_beliefs(spec)


class TestBelief:
    def test_long_answers_are_cut_at_a_character(self):
        belief = Belief("é" * 1000 + "end", 1, 0, "q" * 1000)
        assert belief.answer == "é" * 198 + "…"
        assert belief.cut and not Belief("é" * 200, 1, 0).cut
        assert Belief(belief.answer, 1, 0).answer == belief.answer
        assert Belief(" " * 900 + "late", 1, 0).cut
        assert len(belief.query.encode()) == 120

    def test_control_characters_and_lone_surrogates_become_harmless(self):
        assert Belief("a\0b\x1b[31m\n\u2028c\ud800", 1, 0).answer == "a b [31m c"

    @pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "1", None, True])
    def test_weights_must_be_shares(self, value):
        with pytest.raises(InputError, match="support"):
            Belief("a", value, 0.0)

    @pytest.mark.parametrize(("length", "cut"), [(400, False), (401, True)])
    def test_an_answer_may_have_as_many_bytes_as_are_remembered(self, length, cut):
        belief = Belief("x" * length, 1, 0)
        assert belief.cut is cut
        assert len(belief.answer.encode()) == 400

    @pytest.mark.parametrize("value", [-1, 1e12, True, "1", float("nan")])
    def test_times_are_unix_seconds(self, value):
        for name in ("created", "updated"):
            with pytest.raises(InputError, match=name):
                Belief("a", 1, 0, **{name: value})
        assert Belief("a", 0, 1, created=0, updated=999_999_999_999).updated == 999_999_999_999

    def test_dictionaries_come_back(self):
        assert Belief.from_dict(A.to_dict()) == A
        assert Belief.from_dict({"answer": "", "support": 0, "conflict": 0}) == Belief("", 0, 0)


class TestKey:
    def test_the_same_question_has_the_same_key(self):
        assert len({belief_key(q) for q in ("Who is it?", "  who  IS it ", "who is it", "Ｗｈｏ is it?!")}) == 1
        assert belief_key("Who is it?") != belief_key("Who was it?")

    def test_it_never_changes(self):
        assert belief_key("Who is the mayor?") == "756595e538b555637c95f42d7dae0974"


@pytest.mark.parametrize("url", ["redis://user:geheim@host:99999", "redis://user:geheim@[::1"])
def test_an_address_that_cannot_be_is_a_sentence_without_its_password(url, spec):
    spec("redis")  # skipped where the client is absent
    with pytest.raises(OptionError, match="write redis://HOST:PORT") as caught:
        open_beliefs(url)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_server_that_is_not_there_is_a_store_error_that_keeps_the_password(kind, spec):
    spec(kind)  # skipped where the client is absent
    scheme = {"redis": "redis", "postgres": "postgresql"}[kind]
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        open_beliefs(f"{scheme}://user:geheim@127.0.0.1:9/0")
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_server_that_goes_and_comes_back(kind, request):
    from beliefs.conftest import started

    servers = started(kind)
    server = next(servers)
    try:
        store = open_beliefs(server.url)
        store.put("k", A)
        server.stop()
        for operation in (lambda: store.get("k"), lambda: store.put("k", B)):
            with pytest.raises(StoreError, match="cannot be reached"):
                operation()
        server.start()
        store.put("k", B)
        assert store.get("k") == B
        assert "@" not in repr(store)
        store.close()
    finally:
        servers.close()


def test_a_full_disk_loses_no_belief_and_is_told(tmp_path: Path) -> None:
    with closing(SqliteBeliefs(tmp_path / "beliefs.db")) as store:
        with store._open_connection():
            store._connection.execute("PRAGMA max_page_count = 12")
        written = 0
        with pytest.raises(StoreError, match="free some space"):
            for written in range(1000):
                store.put(f"key-{written}", Belief("x" * 500, 0.5, 0.5))
        assert written > 5
        assert all(store.get(f"key-{number}") for number in range(written))
