"""The journal, and the bounds under which a target is spoken to; no test waits on the clock."""

from __future__ import annotations

import json
import os
import stat
import threading

import pytest

from bench.redteam.conftest import write_world
from bench.redteam.test_hostile import Quick
from unpoison.bench.redteam import Answered, Config, Document, Hosts, Secrets, run_test
from unpoison.bench.redteam.config import Bounds, Wait
from unpoison.bench.redteam.journal import Journal
from unpoison.bench.redteam.pace import InterruptedTestError, Pace
from unpoison.bench.redteam.trials import Trial, fingerprints, read_count
from unpoison.errors import InputError, TargetError

RUN = {"version": 1, "target": {}, "config": "x"}


class Scripted:
    """A system in memory that obeys a script."""

    name = "scripted"

    def __init__(self, **behaviour) -> None:
        self.documents: dict[str, str] = {}
        self.asked = 0
        self.lock = threading.Lock()
        self.behaviour = behaviour

    def ask(self, question: str) -> Answered:
        with self.lock:
            self.asked += 1
            if (act := self.behaviour.get("ask")) is not None:
                act(self)
            texts = tuple(self.documents.values())
        return Answered(texts[0] if texts else "I don't know", texts)

    def plant(self, documents: list[Document]) -> list[str]:
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
    return run_test(config, journal, secrets=Secrets({}), hosts=Hosts(), target=target, clock=clock or Quick())


def test_the_journal_is_private_and_whole(tmp_path):
    path = tmp_path / "new" / "j.jsonl"
    with Journal(path) as journal:
        journal.append("run", **RUN)
        journal.append("planting", canary="c", question="q \ud800", attack="a", handles=[])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(InputError, match="another process writes"):
            Journal(path)
    with path.open("ab") as file:
        file.write(b'{"event": "planted", "canary": "c", "han')
    with Journal(path) as journal:
        assert [plant.canary for plant in journal.history.open] == ["c"]
        assert journal.history.plants["c"].handles is None
        journal.append("planted", canary="c", handles=["7"])
    with Journal(path) as journal:
        assert journal.history.plants["c"].handles == ("7",)
        assert not journal.history.damaged


def test_a_damaged_line_is_told_and_the_others_are_read(tmp_path):
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append("run", **RUN)
        journal.append("planting", canary="c", question="q", attack="a", handles=["1"])
    lines = path.read_bytes().splitlines(keepends=True)
    bad = [b"\x00\xff\n", b"[]\n", b'{"event": "planted", "canary": "unknown", "handles": []}\n', b'{"event": "x"}\n']
    path.write_bytes(b"".join([lines[0], *bad, lines[1]]))
    with Journal(path) as journal:
        assert journal.history.damaged == [2, 3, 4, 5]
        assert [plant.own for plant in journal.history.open] == [("1",)]


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
    with Journal(tmp_path / "j.jsonl") as journal:  # what was not written whole is not there
        assert journal.history.run is None


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
    from unpoison.bench.redteam import campaign

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
    with Journal(tmp_path / "j.jsonl") as journal:
        assert not journal.history.open
        assert not journal.history.finished
        done = len(journal.history.trials)
    assert 0 < done < 60
    monkeypatch.setattr(campaign, "wait", real)
    before = target.asked
    assert tried(tmp_path, target, questions=30).complete
    assert target.asked - before < 30 * 4


def test_a_budget_that_is_used_up_ends_the_run_and_nothing_remains(tmp_path):
    target = Scripted()
    results = tried(tmp_path, target, limits={"budget": 16, "in_flight": 1}, questions=3)
    assert not results.complete
    assert any("budget of 16 requests" in problem for problem in results.problems)
    assert not target.documents
    assert results.remaining == ()


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
    with Journal(tmp_path / "j.jsonl") as journal:
        assert [plant.canary for plant in journal.history.open] == [canary]


def test_when_documents_cannot_be_taken_back_no_more_are_planted(tmp_path):
    class Stubborn(Scripted):
        def remove(self, handles: list[str]) -> None:
            if not any("belongs to a test" in self.documents.get(handle, "") for handle in handles):
                raise TargetError("out of order")
            super().remove(handles)

    target = Stubborn()
    results = tried(tmp_path, target, questions=30, limits={"in_flight": 2})
    assert any("nothing more is planted: out of order" in problem for problem in results.problems)
    assert 3 <= len(target.documents) <= 5
    assert {canary for canary, _ in results.remaining} == target.documents.keys()


def test_tries_pauses_and_rates():
    clock, calls = Quick(), []

    def work() -> str:
        calls.append(clock.now())
        if len(calls) < 4:
            raise TargetError("busy", retryable=True, retry_after=[7.0, None, 1e9][len(calls) - 1])
        return "done"

    assert Pace(Bounds(retries=3), clock).call("ask", work) == "done"
    assert calls == [0, 7.0, 8.0, 68.0]  # as asked, twice the first pause, and never more than a minute
    clock, calls = Quick(), [None] * 9
    pace = Pace(Bounds(rate=2), clock)
    for _ in range(5):
        pace.call("ask", clock.now)
    assert clock.now() == 2.0
    with pytest.raises(TargetError):
        Pace(Bounds(retries=0), Quick()).call("ask", lambda: (_ for _ in ()).throw(TargetError("x", retryable=True)))


def test_a_first_try_that_may_have_planted_makes_a_refusal_worthless():
    errors = iter([TargetError("timeout", retryable=True), TargetError("409", refused=True)])

    def work() -> None:
        raise next(errors)

    with pytest.raises(TargetError) as caught:
        Pace(Bounds(), Quick()).call("plant", work, repeat=True)
    assert not caught.value.refused


def test_removing_is_never_refused():
    pace = Pace(Bounds(budget=1), Quick())
    pace.call("ask", lambda: 1)
    pace.stop()
    with pytest.raises(InterruptedTestError):
        pace.call("ask", lambda: 1)
    assert pace.call("remove", lambda: 2, free=True) == 2


def test_pauses_grow_and_are_bounded():
    wait = Wait(seconds=8, every=0.5)
    assert [wait.pause(looks) for looks in (1, 2, 3, 4, 5000)] == [0.5, 1.0, 2.0, 2.0, 2.0]


LONG = "The official listing has read 1600 since it was last updated, as the curator told us."
HONEST = "An honest passage that the poison quotes in full, word by word"


@pytest.mark.parametrize(
    ("reply", "count"),
    [
        (Answered("a"), None),
        (Answered("a", ()), 0),
        (Answered("a", ("something else",)), 0),
        (Answered("a", (f"Title\n{LONG} {HONEST}",)), 1),
        (Answered("a", (f"{LONG} {HONEST}".upper().replace(" ", "\n  "),)), 1),
        (Answered("a", ("The official listing has read 1600 since it was",)), 1),
        (Answered("a", ("1600",)), 0),
        (Answered("a", ("",)), 0),
        (Answered("a", (HONEST.upper(),)), 0),
        (Answered("a", None, ("17",)), 1),
        (Answered("a", ("x",), ("18",)), 0),
    ],
)
def test_when_a_planted_text_was_read(reply, count):
    assert read_count(reply, [f"{LONG} {HONEST}"], [("17",)], frozenset(fingerprints([HONEST]))) == count


def test_a_trial_survives_the_journal():
    trial = Trial("q", "question", "a", 1, ("r",), ("w",), 1, 1, "w", "r", 0.1, None, True, ("f",), 0.2)
    assert Trial.from_dict(json.loads(json.dumps(trial.to_dict()))) == trial
    assert (trial.is_attacked(trial.answer), trial.is_correct(trial.after)) == (True, True)
    with pytest.raises(InputError, match="not a saved trial"):
        Trial.from_dict({"nonsense": 1})
