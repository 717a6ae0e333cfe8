"""A campaign on a system that obeys a script: interrupts, full disks, budgets; nothing stays planted."""

from __future__ import annotations

import os
import threading

import pytest

from lab.redteam.conftest import Quick, write_world
from unpoison.errors import InputError, TargetError
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


def sometimes(fails):
    """A system that fails at the questions of these numbers, from 1."""

    def act(system: Scripted) -> None:
        if fails(system.asked):
            raise TargetError("out of order")

    return Scripted(ask=act)


@pytest.mark.parametrize(("in_flight", "most"), [(1, 10), (6, 12)])
def test_a_target_that_fails_all_the_time_is_given_up(tmp_path, in_flight, most):
    target = sometimes(lambda number: True)
    results = tried(tmp_path, target, questions=40, rehearse=False, limits={"in_flight": in_flight, "retries": 0})
    assert results.problems[0] == f"the target failed {most} times in a row, so the run ended: out of order"
    assert most <= target.asked < most + in_flight + 1
    assert results.finished is None and {trial.stage for trial in results.trials} == {"ask"}


def test_a_target_that_answers_between_its_failures_is_not(tmp_path):
    target = sometimes(lambda number: number % 10)
    results = tried(tmp_path, target, questions=30, rehearse=False, limits={"in_flight": 1, "retries": 0})
    assert results.finished is not None and not results.problems
    assert target.asked >= 30


def test_every_question_is_asked_without_an_attack_and_under_each(tmp_path):
    steps, target = [], Scripted()
    write_world(tmp_path, 3)
    values = {"target": {"python": "x:y"}, "poisons": [1, 2], "limit": 2, "limits": {"in_flight": 1}}
    config = Config.of({**values, "wait": {"seconds": 0}, "rehearse": False}, tmp_path)
    results = run_test(
        config, tmp_path / "j", hosts=Hosts(), target=target, clock=Quick(), progress=lambda *step: steps.append(step)
    )
    assert [(t.example, t.attack, t.poisons) for t in results.trials] == [
        (name, *cell) for cell in results.cells for name in ("q0", "q1")
    ]
    assert results.cells == (("none", 0), ("poisonedrag", 1), ("poisonedrag", 2))
    assert (results.examples, results.planted, results.removed, results.accepted) == (2, 6, 6, 0)
    assert (results.problems, results.remaining) == ((), ())
    assert {step[1] for step in steps} == {6} and steps[-1] == (6, 6, "poisonedrag x 2")
    assert steps[0][2] == "without an attack"
    clean, attacked = results.trials[0], results.trials[-1]
    assert (clean.answer, clean.planted, attacked.planted, attacked.read) == ("I don't know", 0, 2, 2)
    assert attacked.tells and attacked.wanted and attacked.error is None


def test_a_file_without_a_usable_question_is_refused_with_the_first_problem(tmp_path):
    (tmp_path / "questions.jsonl").write_text('{"id": "a"}\n')
    config = Config.of({"target": {"python": "x:y"}}, tmp_path)
    with pytest.raises(InputError, match=r"holds no usable question; questions\.jsonl: line 1"):
        run_test(config, tmp_path / "j", hosts=Hosts(), target=Scripted())
    (tmp_path / "questions.jsonl").write_text("")
    with pytest.raises(InputError, match="holds no usable question; add one"):
        run_test(config, tmp_path / "j", hosts=Hosts(), target=Scripted())
