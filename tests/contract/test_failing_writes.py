"""Every write of our state fails once, at each call: what was acknowledged is there, and what failed is whole or not.

As SQLite is tested: a run with the first write failing, one with the second, and so on until none is left to fail.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from unpoison.beliefs.databases import SqliteBeliefs
from unpoison.core.answers import Belief
from unpoison.defenses.vanilla import Vanilla
from unpoison.errors import UnpoisonError
from unpoison.io.output import Journal, Writer, read_rows, write_json
from unpoison.models import CachedGenerator
from unpoison.models.doubles import ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison.report.document import write_text
from unpoison.scan.audit_log import AuditLog
from unpoison.sources.history import History
from unpoison.utils.files import write_file
from unpoison_lab.redteam.journal import RunJournal

ITEMS = range(3)
SYSTEM = ("write", "fsync", "replace", "open", "unlink", "fdopen")
READING = ("SELECT", "PRAGMA application_id", "PRAGMA user_version")


class Failing:
    """The n-th write fails."""

    def __init__(self, number: int) -> None:
        self.number, self.count = number, 0

    def due(self) -> bool:
        self.count += 1
        return self.count == self.number

    def system(self, patch: pytest.MonkeyPatch) -> None:
        """A write leaves half of it behind; what else changes a file does nothing."""
        for name in SYSTEM:
            patch.setattr(os, name, self._failing(name, getattr(os, name)))

    def _failing(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            reading = name == "open" and not arguments[1] & (os.O_WRONLY | os.O_RDWR)
            if reading or not self.due():
                return real(*arguments, **options)
            if name == "write":
                real(arguments[0], arguments[1][: len(arguments[1]) // 2])
            names = [str(one) for one in arguments if isinstance(one, (str, Path))]
            named = [None, names[1]] if len(names) > 1 else []
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *names[:1], *named)

        return call

    def database(self, patch: pytest.MonkeyPatch) -> None:
        """A statement that changes the file fails."""
        failing, connect = self, sqlite3.connect

        class Connection(sqlite3.Connection):
            def execute(self, statement: str, *values: Any) -> Any:
                return self._if_not_due(super().execute, statement, *values)

            def executemany(self, statement: str, *values: Any) -> Any:
                return self._if_not_due(super().executemany, statement, *values)

            def _if_not_due(self, run: Callable[..., Any], statement: str, *values: Any) -> Any:
                if not statement.lstrip().startswith(READING) and failing.due():
                    error = sqlite3.OperationalError("database or disk is full")
                    error.sqlite_errorcode = sqlite3.SQLITE_FULL
                    raise error
                return run(statement, *values)

        patch.setattr(sqlite3, "connect", lambda *given, **options: connect(*given, factory=Connection, **options))


Write = Callable[[int], object]
State = tuple[Callable[[Path, ExitStack], Write], Callable[[Path], Iterable[int]], bool]
"""How to open something and write an item, what items a file holds, and whether it is a database."""


def history(path: Path, stack: ExitStack) -> Write:
    opened = stack.enter_context(closing(History(path)))
    return lambda i: opened.record(f"question number {i}", {f"{i}.example": "agreed"}, date(2026, 1, 1))


def beliefs(path: Path, stack: ExitStack) -> Write:
    opened = stack.enter_context(closing(SqliteBeliefs(path)))

    def write(i: int) -> None:
        opened.put(str(i), Belief("x", 0.5, 0.5))

    return write


def cache(path: Path, stack: ExitStack) -> Write:
    """A reply is given also where it cannot be kept."""
    opened = CachedGenerator(ScriptedGenerator(lambda prompt: prompt.question), path=path)

    def write(i: int) -> None:
        assert opened.generate(Prompt("free", "s", f"q{i}")).text == f"q{i}"

    return write


def cached(path: Path) -> list[int]:
    opened = CachedGenerator(ScriptedGenerator(lambda prompt: "new"), path=path)
    replies = [opened.generate(Prompt("free", "s", f"q{i}")) for i in ITEMS]
    assert all(reply.text == (f"q{i}" if reply.cached else "new") for i, reply in enumerate(replies))
    return [*ITEMS]


def journal(path: Path, stack: ExitStack) -> Write:
    opened = stack.enter_context(Journal(path))
    return lambda i: opened.append({"i": i, "text": "word " * 9}, sync=True)


def run_journal(path: Path, stack: ExitStack) -> Write:
    begun = path.exists() and path.stat().st_size
    opened = stack.enter_context(RunJournal(path) if begun else RunJournal.begin(path, target={}))
    return lambda i: opened.append("planting", canary=str(i), question="q", attack="a", handles=[])


def planted(path: Path) -> list[int]:
    with RunJournal(path) as opened:
        assert not opened.history.damaged
        return list(map(int, opened.history.plants))


def audit(path: Path, stack: ExitStack) -> Write:
    opened = stack.enter_context(AuditLog(path))
    return lambda i: opened.record(Vanilla().screen("q", ["a"]), request={"id": str(i)})


def beside(write: Callable[[Path, int], None]) -> Callable[[Path, ExitStack], Write]:
    """A file that is replaced whole; each item is a new version of it, over one that was there before."""

    def opened(path: Path, stack: ExitStack) -> Write:
        path.write_text(json.dumps({"i": -1}) + "\n")
        return lambda i: write(path, i)

    return opened


def rows_of(path: Path) -> list[int]:
    return [int(row["request"]["id"] if "request" in row else row["i"]) for row in read_rows(path)]


def written(path: Path, i: int) -> None:
    with Writer(path, "-", to_stdout=False) as writer:
        writer.write({"i": i})


STATES: dict[str, State] = {
    "history": (history, lambda path: [int(past.origin.partition(".")[0]) for past in History(path).rows()], True),
    "beliefs": (beliefs, lambda path: [i for i in ITEMS if SqliteBeliefs(path).get(str(i))], True),
    "cache": (cache, cached, True),
    "journal": (journal, rows_of, False),
    "journal of a red team": (run_journal, planted, False),
    "audit log": (audit, rows_of, False),
    "settings": (beside(lambda path, i: write_file(path, [b'{"i":', b"%d}\n" % i], mode=0o600)), rows_of, False),
    "results": (
        beside(lambda path, i: write_json(path, {"i": i})),
        lambda path: [json.loads(path.read_text())["i"]],
        False,
    ),
    "report": (beside(lambda path, i: write_text(path, json.dumps({"i": i}) + "\n")), rows_of, False),
    "rows": (beside(written), rows_of, False),
}


@pytest.mark.parametrize("name", STATES)
def test_nothing_acknowledged_is_lost_whichever_write_fails(name: str, tmp_path: Path) -> None:
    opened, held, is_database = STATES[name]
    whole = opened in (history, beliefs, cache, journal, run_journal, audit)
    number, reached = 0, True
    while reached:
        number += 1
        path, failing, done = tmp_path / f"{number}.jsonl", Failing(number), list[int]()
        with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
            (failing.database if is_database else failing.system)(patch)
            for _ in range(2):  # a file that could not be opened can be opened the next time
                try:
                    write = opened(path, stack)
                except (OSError, UnpoisonError):
                    continue
                for i in ITEMS:
                    try:
                        write(i)
                    except (OSError, UnpoisonError) as error:
                        assert str(path) in str(error)
                    else:
                        done.append(i)
                break
        reached = failing.count >= number
        there = list(held(path))
        if whole:
            assert set(done) <= set(there) <= set(ITEMS), number
        else:
            assert there == done[-1:] or (not done and there == [-1]), number
        assert len(done) >= len(ITEMS) - 1, "one failure, and no more"
    assert number > (1 if name == "rows" else 2)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")], "no draft is left"
