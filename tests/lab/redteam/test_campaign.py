"""A campaign on a system that obeys a script: interrupts, full disks, budgets; nothing stays planted."""

from __future__ import annotations

import os
import threading

import pytest

from lab.redteam.conftest import Quick, write_world
from unpoison.errors import TargetError
from unpoison_lab.redteam.campaign import run_test
from unpoison_lab.redteam.config import Config
from unpoison_lab.redteam.http_client import Hosts
from unpoison_lab.redteam.journal import RunJournal
from unpoison_lab.redteam.targets import TargetDocument, TargetReply


class Scripted:
    """A system in memory that obeys a script."""

    name = "scripted"

    def __init__(self, **behaviour) -> None:
        self.documents: dict[str, str] = {}
        self.asked = 0
        self.lock = threading.Lock()
        self.behaviour = behaviour

    def ask(self, question: str) -> TargetReply:
        with self.lock:
            self.asked += 1
            if (act := self.behaviour.get("ask")) is not None:
                act(self)
            texts = tuple(self.documents.values())
        return TargetReply(texts[0] if texts else "I don't know", texts)

    def plant(self, documents: list[TargetDocument]) -> list[str]:
        with self.lock:
            for document in documents:
                self.documents[document.canary] = document.text
        if (act := self.behaviour.get("plant")) is not None:
            act(self)
        return [document.canary for document in documents]

    def remove(self, handles: list[str]) -> None:
        with self.lock:
            for handle in handles:
                self.documents.pop(handle, None)


def tried(folder, target, clock=None, **more):
    write_world(folder, more.pop("questions", 3))
    values = {"target": {"python": "x:y"}, "questions": "questions.jsonl", "wait": {"seconds": 0}, **more}
    config = Config.of(values, folder)
    journal = folder / "j.jsonl"
    return run_test(config, journal, hosts=Hosts(), target=target, clock=clock or Quick())


def test_a_full_disk_plants_nothing(tmp_path, monkeypatch):
    target = Scripted()
    real = os.fsync

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        tried(tmp_path, target)
    assert not target.documents
    monkeypatch.setattr(os, "fsync", real)


def test_a_disk_that_is_full_after_planting_takes_it_back(tmp_path, monkeypatch):
    target, real, syncs = Scripted(), os.fsync, []

    def full(descriptor: int) -> None:
        syncs.append(1)
        if len(syncs) > 6:  # the folder, the run, the rehearsal's two, the first document's mark
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        tried(tmp_path, target, limits={"in_flight": 1})
    assert len(syncs) > 6
    assert not target.documents


def test_an_interrupt_takes_everything_back(tmp_path, monkeypatch):
    """As Ctrl-C: the main thread is interrupted while questions are in flight."""
    from unpoison_lab.redteam import campaign

    target, real, waits = Scripted(), campaign.wait, []

    def interrupted(futures, **options):
        waits.append(1)
        if len(waits) == 5:
            raise KeyboardInterrupt
        return real(futures, **options)

    monkeypatch.setattr(campaign, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tried(tmp_path, target, questions=30, limits={"in_flight": 3})
    assert not target.documents
    with RunJournal(tmp_path / "j.jsonl") as journal:
        assert journal.history.planted
        assert not journal.history.open


def test_a_try_that_may_have_planted_is_not_repeated(tmp_path):
    def broken(system: Scripted) -> None:
        raise TargetError("the connection broke", retryable=True)

    target = Scripted(plant=broken)
    results = None
    with pytest.raises(TargetError, match="nothing could be planted"):
        results = tried(tmp_path, target)
    assert results is None
    assert len(target.documents) == 1  # once, and its mark is named
    (canary,) = target.documents
    with RunJournal(tmp_path / "j.jsonl") as journal:
        assert [plant.canary for plant in journal.history.open] == [canary]


def test_when_documents_cannot_be_taken_back_no_more_are_planted(tmp_path):
    class Stubborn(Scripted):
        def remove(self, handles: list[str]) -> None:
            if not any("harmless document" in self.documents.get(handle, "") for handle in handles):
                raise TargetError("out of order")
            super().remove(handles)

    target = Stubborn()
    results = tried(tmp_path, target, questions=30, limits={"in_flight": 2})
    assert any("nothing more is planted: out of order" in problem for problem in results.problems)
    assert 3 <= len(target.documents) <= 5
    assert {canary for canary, _ in results.remaining} == target.documents.keys()
