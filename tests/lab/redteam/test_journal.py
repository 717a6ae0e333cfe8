"""The journal of what was planted: private, whole, and read although lines are damaged."""

from __future__ import annotations

import json
import os
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


def journal_of(path, *events, canary="c"):
    journal = RunJournal.begin(path, target={}, wait={})
    journal.append("planting", canary=canary, question="q", attack="a", handles=["own"])
    for event, fields in events:
        journal.append(event, canary=canary, **fields)
    return journal


@pytest.mark.parametrize(
    ("events", "still_open", "planted", "flags"),
    [
        ([], True, True, (False, False, False, False)),
        ([("planted", {"handles": ["7"]})], True, True, (False, False, False, False)),
        ([("refused", {})], False, False, (False, False, False, False)),
        ([("removing", {})], True, True, (True, False, False, False)),
        ([("removing", {}), ("kept", {"reason": "x"})], True, True, (False, False, False, False)),
        ([("removed", {"deleted": True, "confirmed": True})], False, True, (False, True, True, True)),
        ([("removed", {"deleted": False})], False, True, (False, True, False, False)),
        ([("removed", {"deleted": True, "confirmed": True}), ("kept", {})], True, True, (False, False, False, True)),
    ],
)
def test_what_is_open_follows_from_the_events(tmp_path, events, still_open, planted, flags):
    with journal_of(tmp_path / "j", *events) as journal:
        history = journal.history
    plant = history.plants["c"]
    assert (history.open == [plant], history.planted == [plant]) == (still_open, planted)
    assert (plant.interrupted, plant.removed, plant.confirmed, history.deleted) == flags
    with RunJournal(tmp_path / "j") as again:
        assert again.history.plants == history.plants and again.history.deleted == history.deleted


def test_a_new_run_begins_where_nothing_is_left_of_the_last_one(tmp_path):
    path = tmp_path / "j"
    journal_of(path).close()
    with path.open("ab") as file:
        file.write(b"damaged\n")
    with pytest.raises(InputError, match=f"{path} holds 2 documents that may still be planted; .* clean {path}"):
        RunJournal.begin(path, target={})
    path.unlink()
    journal_of(path, ("removed", {"deleted": True})).close()
    with RunJournal.begin(path, target={}, name="new") as journal:
        assert (journal.history.run["name"], journal.history.run["version"]) == ("new", 1)
        assert journal.history.plants == {}


def test_a_journal_of_another_version_is_none(tmp_path):
    path = tmp_path / "j"
    for line in ('{"event": "run", "version": 2, "target": {}}', '{"event": "run", "version": 1, "target": []}'):
        path.write_text(f"{line}\n")
        with pytest.raises(InputError, match="no journal of unpoison redteam"):
            RunJournal(path)
    for torn in ("", '{"event": "ru'):  # the process was killed at its first line
        path.write_text(torn)
        with RunJournal(path) as journal:
            assert journal.history.run is None


def test_an_id_that_two_documents_have_is_ambiguous(tmp_path):
    with journal_of(tmp_path / "j", ("planted", {"handles": ["own", "7"]})) as journal:
        assert journal.ambiguous_handles() == frozenset()
        journal.append("planting", canary="d", question="q", attack="a", handles=["9"])
        journal.append("planted", canary="d", handles=["7"])
        assert journal.ambiguous_handles() == {"7"}


def test_what_is_planted_is_on_the_disk_before_it_is_planted(tmp_path, monkeypatch):
    synced, real = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(1), real(descriptor))[1])
    with RunJournal.begin(tmp_path / "j", target={}) as journal:
        counts = []
        for event, fields in (
            ("planting", {"question": "q", "attack": "a", "handles": []}),
            ("planted", {"handles": ["1"]}),
            ("removing", {}),
            ("removed", {"deleted": True}),
        ):
            before = len(synced)
            journal.append(event, canary="c", **fields)
            counts.append(len(synced) - before)
    assert counts == [1, 1, 0, 0]


@pytest.mark.parametrize(
    "row", [{"canary": 3, "handles": []}, {"canary": "c", "handles": "7"}, {"canary": "c", "handles": [7]}]
)
def test_a_line_with_the_wrong_types_is_damaged(tmp_path, row):
    journal_of(tmp_path / "j").close()
    with (tmp_path / "j").open("a") as file:
        file.write(json.dumps({"event": "planted", **row}) + "\n")
    with RunJournal(tmp_path / "j") as journal:
        assert journal.history.damaged == [3] and journal.history.plants["c"].handles is None
