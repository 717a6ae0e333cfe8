"""The journal of what was planted: private, whole, and read although lines are damaged."""

from __future__ import annotations

import stat

import pytest

from unpoison.errors import InputError, UnknownNameError
from unpoison_lab.redteam.config import Config
from unpoison_lab.redteam.http_client import Hosts
from unpoison_lab.redteam.journal import RunJournal
from unpoison_lab.redteam.planter import clean

RUN = {"version": 1, "target": {}, "config": "x"}


def test_the_journal_is_private_and_whole(tmp_path):
    path = tmp_path / "new" / "j.jsonl"
    with RunJournal(path) as journal:
        journal.append("run", **RUN)
        journal.append("planting", canary="c", question="q \ud800", attack="a", handles=[])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(InputError, match="another process writes"):
            RunJournal(path)
    with path.open("ab") as file:
        file.write(b'{"event": "planted", "canary": "c", "han')
    with RunJournal(path) as journal:
        assert [plant.canary for plant in journal.history.open] == ["c"]
        assert journal.history.plants["c"].handles is None
        journal.append("planted", canary="c", handles=["7"])
    with RunJournal(path) as journal:
        assert journal.history.plants["c"].handles == ("7",)
        assert not journal.history.damaged


def test_a_damaged_line_is_told_and_the_others_are_read(tmp_path):
    path = tmp_path / "j.jsonl"
    with RunJournal(path) as journal:
        journal.append("run", **RUN)
        journal.append("planting", canary="c", question="q", attack="a", handles=["1"])
    lines = path.read_bytes().splitlines(keepends=True)
    bad = [b"\x00\xff\n", b"[]\n", b'{"event": "planted", "canary": "unknown", "handles": []}\n', b'{"event": "x"}\n']
    path.write_bytes(b"".join([lines[0], *bad, lines[1]]))
    with RunJournal(path) as journal:
        assert journal.history.damaged == [2, 3, 4, 5]
        assert [plant.own for plant in journal.history.open] == [("1",)]


def test_unknown_journals_and_files_are_left_alone(tmp_path):
    for content in ("a note of mine", '{"a": 1}\n', "x\ny\n"):
        path = tmp_path / "mine.txt"
        path.write_text(content)
        with pytest.raises(InputError, match="no journal of unpoison redteam"):
            clean(path, hosts=Hosts())
        assert path.read_text() == content
    with pytest.raises(InputError, match="does not exist"):
        clean(tmp_path / "none", hosts=Hosts())
    with pytest.raises(UnknownNameError):
        Config.of({"target": {"a": 1}, "questions": "q", "attacks": ["x"]})
