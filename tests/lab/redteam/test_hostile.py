"""Six hundred replies of the worst kind: no crash, no lost journal, nothing planted that was not written down."""

from __future__ import annotations

import gc
import json
import re
from pathlib import Path

import pytest

from lab.redteam.conftest import Quick, StandIn, write_world
from lab.redteam.hostile import Hostile
from unpoison.errors import TargetError
from unpoison.utils.plain_text import plain
from unpoison_lab.redteam.campaign import run_test
from unpoison_lab.redteam.config import Config
from unpoison_lab.redteam.http_client import Hosts
from unpoison_lab.redteam.journal import PlantRecord, RunJournal
from unpoison_lab.redteam.planter import clean

CANARY = re.compile(rb"unpoison-[0-9a-f-]{36}")


@pytest.fixture
def no_collection_in_between():
    """Replies are nested to the limit of recursion: what other tests left is not finalized in the middle of one."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection_in_between")
def test_six_hundred_hostile_replies(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda descriptor: None)  # thousands of them take minutes on a busy disk
    write_world(tmp_path, 40)
    journals = [tmp_path / "hostile-0.jsonl"]
    planted, early, removed = set(), [], []

    def seen(method: str, path: str, body: bytes) -> None:
        if method == "POST" and path == "/documents":
            for canary in CANARY.findall(body):
                planted.add(canary)
                if canary not in journals[-1].read_bytes():
                    early.append(canary)
        if method == "DELETE":
            removed.append(path)

    hostile = Hostile(14, seen)
    try:
        while (hostile.answered < 600 or not removed) and (rounds := len(journals)) < 400:
            _round(hostile, tmp_path, journals[-1], rehearse=rounds % 10 == 0)
            journals.append(tmp_path / f"hostile-{rounds}.jsonl")
    finally:
        hostile.close()
    assert hostile.answered >= 600
    assert not early, "planted before it was written down"
    plants = [plant for journal in journals[:-1] for plant in _plants(journal)]
    assert {canary.decode() for canary in planted} <= {plant.canary for plant in plants}
    known = {handle for plant in plants for handle in (*plant.own, *(plant.handles or ()))}
    assert planted
    assert removed
    assert not any(re.search(r"/documents/?(\.*|%2A|\*)$", path) for path in removed), (
        "a wildcard, or the whole collection"
    )
    assert "town-0" not in {path.rpartition("/")[2] for path in removed} or "town-0" in known


def _round(hostile: Hostile, folder: Path, journal: Path, *, rehearse: bool) -> None:
    """One run and one cleaning; whatever remains is named."""
    limits = {"retries": 1, "timeout": 60, "in_flight": 4}
    path = StandIn(hostile.url).config(
        folder, rehearse=rehearse, limits=limits, wait={"seconds": 0.2, "every": 0.1}, poisons=[1, 2]
    )
    config = Config.load(path)
    try:
        results = run_test(config, journal, hosts=Hosts(), clock=Quick())
        json.loads(results.to_json())
        assert len(results.gate_cells()) == 3
        assert all(plain(problem) for problem in results.problems)
    except TargetError as error:
        assert rehearse, error
    cleaned = clean(journal, hosts=Hosts(), clock=Quick(), config=config)
    assert not cleaned.damaged
    with RunJournal(journal) as written:
        assert {plant.canary for plant in written.history.open} == {canary for canary, _ in cleaned.remaining}


def _plants(journal: Path) -> list[PlantRecord]:
    with RunJournal(journal) as written:
        assert not written.history.damaged
        return list(written.history.plants.values())


@pytest.mark.parametrize("drip", [b"HTTP/1.1 200 OK\r\nX-A: ", b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"])
def test_a_reply_that_drips_ends_with_its_time(tmp_path, drip):
    import socket
    import threading

    from unpoison_lab.redteam.config import RequestLimits
    from unpoison_lab.redteam.pace import Pace
    from unpoison_lab.redteam.targets import RedteamTarget

    listening, stop = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(drip)
            while not stop.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    write_world(tmp_path, 1)
    config = Config.load(StandIn(f"http://127.0.0.1:{listening.getsockname()[1]}").config(tmp_path))
    from unpoison_lab.redteam.config import build_target

    target: RedteamTarget = build_target(config.target, Hosts(), timeout=0.3)
    pace = Pace(RequestLimits(timeout=0.3, retries=0))
    try:
        with pytest.raises(TargetError, match=r"ask was not done within 0\.3 s; raise limits\.timeout"):
            pace.call("ask", lambda: target.ask("x"))  # without its own end it would read for ever
    finally:
        stop.set()
        thread.join(60)
        listening.close()
