"""Several keys: who may do what, how often, and a file that changes while the service runs."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beliefs.conftest import started
from service_doubles import Marked, Serving, body, problem
from unpoison.errors import InputError, OptionError
from unpoison.models import ScriptedGenerator
from unpoison.serve.keys import (
    LOOK,
    MAX_FILE_BYTES,
    PAUSE,
    Key,
    KeyFile,
    Keys,
    LocalRates,
    RedisRates,
    digest,
    read_keys,
)

SCREEN, ANSWER = "a key that may screen", "a key that may answer"


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def row(name: str, text: str, more: str = "") -> str:
    return f'[[key]]\nname = "{name}"\nsha256 = "{digest(text)}"\n{more}\n'


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.toml"
    path.write_text(row("one", SCREEN, 'scopes = ["screen"]') + row("two", ANSWER, 'scopes = ["answer"]\nrate = 2'))
    return path


def test_a_key_opens_what_its_scopes_say_and_nothing_else(serving: Serving, file: Path) -> None:
    answering = Marked(generator=ScriptedGenerator("Stockholm"))
    client = serving({"marked": answering}, keys=KeyFile(file))
    for path, text, status in [
        ("/v1/screen", SCREEN, 200),
        ("/inspect", SCREEN, 200),
        ("/v1/answer", SCREEN, 403),
        ("/v1/answer", ANSWER, 200),
        ("/v1/screen", ANSWER, 403),
        ("/v1/screen", "a wrong key", 401),
        ("/v1/screen", "a key that may scre\u00e9n", 401),
    ]:
        headers = {"Authorization": f"Bearer {text}".encode("latin-1", "replace")}
        assert client.post(path, json=body(), headers=headers).status_code == status, (path, text)
    assert client.post("/v1/screen", json=body()).status_code == 401
    assert client.post("/v2/rerank", json={"query": "q", "documents": ["a"]}, headers=bearer(ANSWER)).status_code == 403
    assert client.get("/metrics", headers=bearer(ANSWER)).status_code == 200
    assert client.get("/metrics").status_code == 401
    assert "one may not answer" in problem(client.post("/v1/answer", json=body(), headers=bearer(SCREEN)), 403)


def test_log_and_metrics_name_the_key_and_hold_no_text_of_it(
    serving: Serving, file: Path, logged: Callable[[], list[dict[str, Any]]]
) -> None:
    client = serving(keys=KeyFile(file))
    client.post("/v1/screen", json=body(), headers=bearer(SCREEN))
    assert logged()[-1]["key"] == "one"
    told = client.get("/metrics", headers=bearer(SCREEN)).text
    assert 'unpoison_key_requests_total{key="one",status="200"} 1.0' in told
    assert SCREEN not in told + json.dumps(logged())
    assert digest(SCREEN) not in told + json.dumps(logged())


def test_too_often_is_refused_and_says_when_again(serving: Serving, file: Path, clock: Clock) -> None:
    client = serving(
        {"marked": Marked(generator=ScriptedGenerator("Oslo"))}, keys=KeyFile(file), rates=LocalRates(clock=clock)
    )
    ask = lambda: client.post("/v1/answer", json=body(), headers=bearer(ANSWER))  # noqa: E731
    assert [ask().status_code for _ in range(4)] == [200, 200, 429, 429]
    assert ask().headers["Retry-After"] == "1"
    assert "key two may ask 2 times a second; try again in 0.5 s" in problem(ask(), 429)
    assert client.get("/v1/defenses", headers=bearer(ANSWER)).status_code == 200
    clock.now += 0.5
    assert [ask().status_code for _ in range(2)] == [200, 429]


def test_keys_are_rotated_without_a_restart(serving: Serving, file: Path, clock: Clock) -> None:
    client = serving(keys=KeyFile(file, clock=clock))
    status = lambda text: client.post("/v1/screen", json=body(), headers=bearer(text)).status_code  # noqa: E731
    file.write_text(row("one", SCREEN) + row("one-new", "a new key for one"))
    assert status("a new key for one") == 401
    clock.now += LOOK
    assert (status("a new key for one"), status(SCREEN)) == (200, 200)
    file.write_text(row("one-new", "a new key for one"))
    clock.now += LOOK
    assert (status("a new key for one"), status(SCREEN)) == (200, 401)


@pytest.mark.parametrize("broken", ["[[key", None, "", "[[key]]\nname = 'x'"])
def test_keys_before_a_broken_file_stay_and_the_log_says_so(
    file: Path, clock: Clock, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    keys = KeyFile(file, (Key.of("the environment's"),), clock)
    assert keys.holder("the environment's")
    file.unlink() if broken is None else file.write_text(broken)
    clock.now += LOOK
    with caplog.at_level(logging.ERROR, "unpoison.service"):
        assert keys.holder(SCREEN)
    assert "the keys before it still count" in caplog.text
    caplog.clear()
    clock.now += LOOK
    assert keys.holder(SCREEN)
    assert not caplog.records  # once for each state of the file
    file.write_text(row("three", "third"))
    clock.now += LOOK
    assert keys.holder("third")
    assert keys.holder("the environment's")
    assert not keys.holder(SCREEN)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must hold tables"),
        ("x = 1", "must hold tables"),
        ("key = 3", "must hold tables"),
        ("key = []", "must hold tables"),
        (row("a b", "x"), "a key's name must be"),
        ("[[key]", "is no TOML"),
        ('[[key]]\nname = "a"\nsha256 = "short"', "sha256 of key a"),
        (row("a", "x", 'scope = ["screen"]'), "no field 'scope'"),
        (row("a", "x", 'scopes = ["rule"]'), "has the scope 'rule'"),
        (row("a", "x", "scopes = 3"), "scopes must be a list"),
        (row("a", "x", "rate = 0"), "rate of key a"),
        (row("a", "x", "rate = nan"), "rate of key a"),
        (row("a", "x", "rate = true"), "rate of key a"),
        (row("a", "x", "rate = 1\nburst = 0.5"), "burst of key a"),
        (row("a", "x", "burst = 5"), "a burst and no rate"),
        (row("a", "x") + row("a", "y"), "two keys with the name of a"),
        (row("a", "x") + row("b", "x"), "two keys with the digest of a"),
        ("#" * (MAX_FILE_BYTES + 1), "must hold tables"),
    ],
)
def test_mistakes_of_the_file_are_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "keys.toml").write_text(text)
    with pytest.raises(InputError) as error:
        read_keys(tmp_path / "keys.toml")
    assert said in str(error.value)
    with pytest.raises(InputError):
        KeyFile(tmp_path / "keys.toml")


def test_one_key_or_several(serving: Serving) -> None:
    with pytest.raises(OptionError, match="not both"):
        serving(key="a", keys=Keys([]))


@given(st.lists(st.floats(0, 3), min_size=1, max_size=60), st.floats(0.5, 10), st.floats(1, 10))
def test_no_window_of_time_lets_more_through_than_burst_and_rate(
    pauses: list[float], rate: float, burst: float
) -> None:
    clock, key = Clock(), Key("k", digest("k"), rate=rate, burst=burst)
    rates, passed = LocalRates(clock=clock), list[float]()
    for pause in pauses:
        clock.now += pause
        wait = rates.take(key)
        assert wait >= 0
        if not wait:
            passed.append(clock.now)
        else:
            clock.now += wait + 1e-6
            assert rates.take(key) == 0  # what was promised is kept
            passed.append(clock.now)
    for i, start in enumerate(passed):
        for j in range(i, len(passed)):
            assert j - i + 1 <= burst + rate * (passed[j] - start) + 1e-3


def test_shares_of_several_processes_come_to_one_rate() -> None:
    clock, key = Clock(), Key("k", digest("k"), rate=8, burst=8)
    both = [LocalRates(0.5, clock) for _ in range(2)]
    assert sum(rates.take(key) == 0 for rates in both for _ in range(20)) == 8


def test_a_share_of_less_than_one_request_lets_one_through() -> None:
    clock, key = Clock(), Key("k", digest("k"), rate=1, burst=1)
    rates = LocalRates(0.25, clock)
    assert rates.take(key) == 0
    assert rates.take(key) == pytest.approx(4)
    clock.now += 4
    assert rates.take(key) == 0


@pytest.mark.parametrize("differs", ["time", "inode", "size"])
def test_any_trace_of_another_file_is_enough_to_read_it_again(tmp_path: Path, clock: Clock, differs: str) -> None:
    """The other two may be as they were: a copy keeps its times, a rewrite its inode, a rotation its size."""
    path, other = tmp_path / "keys.toml", tmp_path / "other.toml"
    path.write_text(row("one", "the old key"))
    before = path.stat()
    keys = KeyFile(path, clock=clock)
    written = other if differs == "inode" else path
    written.write_text(row("two", "another key", "# longer" if differs == "size" else ""))
    later = before.st_mtime_ns + (1 if differs == "time" else 0)
    os.utime(written, ns=(later, later))
    written.replace(path)
    after = path.stat()
    assert [
        after.st_mtime_ns != before.st_mtime_ns,
        after.st_ino != before.st_ino,
        after.st_size != before.st_size,
    ] == [differs == name for name in ("time", "inode", "size")]
    clock.now += LOOK
    holder = keys.holder("another key")
    assert holder is not None
    assert holder.name == "two"


def test_a_file_that_is_as_it_was_is_not_read_again(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(row("one", "the old key"))
    keys, readings = KeyFile(path, clock=clock), []
    monkeypatch.setattr("unpoison.serve.keys.read_keys", lambda file: readings.append(file) or read_keys(file))
    path.write_text(row("one", "the old key", "# longer"))
    for _ in range(3):
        clock.now += LOOK
        assert keys.holder("the old key") is not None
    assert readings == [path]


@pytest.fixture(scope="module")
def redis() -> Iterator[Any]:
    yield from started("redis")


def test_several_processes_count_together_in_redis(redis: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unpoison.serve.keys.TIMEOUT", 60.0)  # a service does not wait so long, and counts by itself
    key = Key("shared", digest("x"), rate=0.01, burst=5)

    async def work() -> list[float]:
        both = [RedisRates(redis.url) for _ in range(2)]
        waits = [await rates.wait(key) for _ in range(5) for rates in both]
        assert await both[0].wait(Key("free", digest("y"))) == 0
        for rates in both:
            await rates.close()
        return waits

    waits = asyncio.run(work())
    assert [wait == 0 for wait in waits] == [True] * 5 + [False] * 5
    assert all(90 < wait <= 100 for wait in waits[5:])


def test_where_redis_is_gone_each_process_counts_and_is_not_held_up(caplog: pytest.LogCaptureFixture) -> None:
    key = Key("k", digest("k"), rate=0.01, burst=2)
    asked = []

    class Gone:
        def register_script(self, _: str) -> Any:
            async def take(**_: Any) -> str:
                asked.append(1)
                raise ConnectionError("redis://user:password@host is gone")

            return take

        async def aclose(self) -> None: ...

    async def work() -> list[float]:
        rates = RedisRates("", client=Gone())
        return [await rates.wait(key) for _ in range(4)]

    with caplog.at_level(logging.WARNING, "unpoison.service"):
        waits = asyncio.run(work())
    assert [wait == 0 for wait in waits] == [True, True, False, False]
    assert len(asked) == 1  # and again after the pause
    assert PAUSE > 0
    assert "password" not in str([vars(record) for record in caplog.records])
