"""Counts of origins: what is kept, by whom, and how much of it."""

from __future__ import annotations

import sqlite3
import stat
import threading
from datetime import date, timedelta
from pathlib import Path

import pytest

from unpoison.errors import StoreError
from unpoison.sources import history as module
from unpoison.sources.history import History, question_hash
from unpoison.sources.sources import Sources

DAY = date(2026, 3, 1)


@pytest.fixture(params=["memory", "file"])
def history(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setattr(History, "busy", 60.0)
    return History(tmp_path / "h.db" if request.param == "file" else None)


def test_questions_count_once(history: History) -> None:
    assert not history
    history.record("Who won the cup in 2022?", {"cnn.com": "seen", "bbc.com": "agreed", "": "seen"}, DAY)
    history.record("the cup of 2022: who won", {"cnn.com": "agreed"}, DAY)
    history.record("Who hosts it?", {"cnn.com": "contested"}, DAY + timedelta(1))
    history.record("Who hosts it?", {"cnn.com": "seen"}, DAY + timedelta(1))
    assert history
    cnn, bbc = history.rows()
    assert cnn == ("cnn.com", DAY, DAY + timedelta(1), 2, 1, 1, 0)
    assert bbc == ("bbc.com", DAY, DAY, 1, 1, 0, 0)
    assert history.past(["cnn.com", "none"], question_hash("who hosts it")) == {
        "cnn.com": ("cnn.com", DAY, DAY + timedelta(1), 1, 1, 0, 0)
    }


def test_the_last_outcome_of_a_question_is_the_one_that_counts(history: History) -> None:
    for outcome in ("seen", "agreed", "dropped", "contested", "seen"):
        history.record("q", {"a.com": outcome}, DAY)
    [past] = history.rows()
    assert (past.questions, past.agreed, past.contested, past.dropped) == (1, 0, 1, 0)


def test_a_clock_that_goes_back_makes_nobody_older(history: History) -> None:
    history.record("one", {"a.com": "seen"}, DAY)
    history.record("two", {"a.com": "seen"}, DAY - timedelta(9_000))
    history.record("three", {"a.com": "seen"}, DAY)
    [past] = history.rows()
    assert (past.first_day, past.last_day, past.questions) == (DAY, DAY, 3)


def test_no_question_and_no_text_is_in_the_file(tmp_path: Path) -> None:
    history = History(tmp_path / "h.db")
    history.record("Where is the zanzibar-secret kept?", {"cnn.com": "seen"}, DAY)
    history.close()
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"cnn.com" in content and b"zanzibar" not in content
    assert stat.S_IMODE((tmp_path / "h.db").stat().st_mode) == 0o600


def test_threads_lose_no_count(history: History) -> None:
    def work(number: int) -> None:
        for i in range(25):
            history.record(f"question t{number} i{i}", {"a.com": "agreed", "b.com": "seen"}, DAY)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(past.questions, past.agreed) for past in history.rows()] == [(150, 150), (150, 0)]


def test_a_locked_file_is_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(History, "busy", 0.01)
    history = History(tmp_path / "h.db")
    history.record("q", {"a.com": "seen"}, DAY)
    other = sqlite3.connect(tmp_path / "h.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"cannot be used \(database is locked\)"):
        history.record("r", {"a.com": "seen"}, DAY)
    assert history.past(["a.com"])["a.com"].questions == 1  # readers wait for nobody
    other.execute("ROLLBACK")
    other.close()
    history.record("r", {"a.com": "seen"}, DAY)
    assert history.past(["a.com"])["a.com"].questions == 2


def test_origins_are_bounded_and_the_established_stay(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ORIGINS", 100)
    monkeypatch.setattr(module, "PRUNED_EVERY", 10)
    for i in range(3):
        history.record(f"question {i}", {"old.com": "seen"}, DAY - timedelta(900))
    for i in range(150):
        history.record("flood", {f"f{i}.com": "seen"}, DAY + timedelta(i))
    names = {past.origin for past in history.rows()}
    assert len(names) <= 110
    assert {"old.com", "f149.com"} <= names and "f0.com" not in names


def test_a_history_counts_owners_and_not_their_pages():
    pages = [f"https://{host}.news.example/{n}" for host in ("a", "b") for n in range(5)]
    sources = Sources()
    sources.learn(
        [{"query": "who built it", "passages": [{"text": str(n), "url": page} for n, page in enumerate(pages)]}]
    )
    (row,) = sources.history.rows()
    assert (row.origin, row.questions) == ("news.example", 1)
