"""Wrong answers of a stand-in: who is named, what is repaired, and what a run that is broken off leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lab.incident.stand_in import CLEAN, QUESTION, RIGHT, WRONG, StandIn, documents_of, votes, write_store
from unpoison.errors import InputError, TargetError
from unpoison.scan.incident import DocumentVerdict, Incident
from unpoison.scan.quarantine import earlier_moves, move
from unpoison.scan.stores import open_store
from unpoison_lab.incident import investigate
from unpoison_lab.redteam.targets import RequestLimits, TargetReply, Wait


class Run:
    """An incident in a folder."""

    def __init__(self, folder: Path, poisons: int = 1, **system: Any) -> None:
        self.store = write_store(folder / "docs.jsonl", poisons, system.pop("more", None))
        self.held, self.journal = folder / "held.jsonl", folder / "journal.jsonl"
        self.target = StandIn(self.store, **system)
        self.before = documents_of(self.store)

    def __call__(self, target: Any = None, answer: str = WRONG, **options: Any) -> Incident:
        options = {
            "wait": Wait(seconds=0.02, every=0.01),
            "bounds": RequestLimits(retries=0),
            "right": (RIGHT,),
            **options,
        }
        stores = str(self.store), str(self.held), self.journal
        return investigate(QUESTION, answer, target or self.target, *stores, **options)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    return lambda *arguments, **more: Run(tmp_path, *arguments, **more)


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("poisons", [1, 3])
def test_poisons_are_named_and_the_answer_is_right_again(run: Callable[..., Run], poisons: int, silent: bool) -> None:
    made = run(poisons, k=4, silent=silent)
    found = made()
    assert found.verdict is DocumentVerdict.REPAIRED
    assert found.guilty and all(name.startswith("lie-") for name in found.guilty)
    assert (found.after, found.quarantined) == ("It was built in 1200.", found.guilty)
    assert set(documents_of(made.held)) == set(found.guilty)
    assert documents_of(made.store).items() >= CLEAN.items()
    assert found.asked <= made.target.calls <= 100


def test_each_of_two_guilty_brings_the_answer_alone_and_two_halves_do_not(run: Callable[..., Run]) -> None:
    made = run(2, reader=lambda question, texts: WRONG if "1606." in "".join(texts) else RIGHT)
    made.store.write_text(made.store.read_text().replace("as the year above its door says.", "so 1606."))
    found = made(repair=False)
    assert (found.verdict, sorted(found.guilty), documents_of(made.held)) == (
        DocumentVerdict.PROVEN,
        ["lie-0", "lie-1"],
        {},
    )
    assert [(p.with_it.wrong, p.without.wrong) for p in found.proofs] == [(4, 0), (4, 0)]

    def both(question: str, texts: Sequence[str]) -> str:
        return WRONG if sum("town hall of Alderton was built in 1606" in text for text in texts) > 1 else RIGHT

    found = run(2, reader=both)()
    assert (found.verdict, len(found.guilty)) == (DocumentVerdict.REPAIRED, 1)  # without either half there is no lie


def test_what_only_agrees_stays_and_is_said(run: Callable[..., Run]) -> None:
    more = {"echo": "A guide for visitors says that the town hall of Alderton was built in 1606."}

    def first(question: str, texts: Sequence[str]) -> str:
        return WRONG if any(text.startswith("In which year was") for text in texts) else RIGHT

    found = run(1, more=more, k=8, reader=first)()
    assert found.guilty == found.quarantined == ("lie-0",)
    assert any("other documents that state this answer: echo" in note for note in found.notes)


def test_another_lie_that_comes_in_its_place_is_looked_into(run: Callable[..., Run]) -> None:
    more = {f"other-{i}": f"The town hall of Alderton was built in 1777, says guide {i}." for i in range(2)}
    found = run(3, more=more, k=8)()
    assert found.verdict is DocumentVerdict.REPAIRED
    assert {name.partition("-")[0] for name in found.guilty} == {"lie", "other"}


def test_what_is_not_so_is_said_and_changes_nothing(run: Callable[..., Run]) -> None:
    made = run(1)
    assert made(answer="1999").verdict is DocumentVerdict.NOT_REPRODUCED
    assert made(budget=5).verdict is DocumentVerdict.UNFINISHED
    stubborn = run(1, reader=lambda question, texts: "It was built in 1606.")
    assert stubborn().verdict is DocumentVerdict.NO_DOCUMENT
    assert (documents_of(stubborn.store), documents_of(stubborn.held)) == (stubborn.before, {})
    with pytest.raises(InputError, match="pass another one with --quarantine"):
        stores = str(made.store), str(made.store), made.journal
        investigate(QUESTION, WRONG, made.target, *stores)


def test_a_system_that_reads_from_a_cache_is_refused_and_all_is_put_back(run: Callable[..., Run]) -> None:
    made = run(1)
    cached = made.target.ask(QUESTION)

    class Cached:
        def ask(self, question: str) -> TargetReply:
            return cached

    with pytest.raises(TargetError, match="still reads 'lie-0'"):
        made(Cached())
    assert (documents_of(made.store), documents_of(made.held)) == (made.before, {})


class Killed(BaseException):
    """What no handler of ours may catch."""


@pytest.mark.parametrize("calls", [5, 6, 8, 12])
def test_a_run_that_is_killed_loses_nothing_and_the_next_begins_with_everything_in_its_place(
    run: Callable[..., Run], calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run(2)

    def dying(question: str, texts: Sequence[str]) -> str:
        if made.target.calls == calls:
            monkeypatch.setattr("unpoison_lab.incident.Experiment.__exit__", lambda *_: None)
            raise Killed
        return votes(question, texts)

    made.target.reader = dying
    with pytest.raises(Killed):
        made()
    monkeypatch.undo()
    assert documents_of(made.store) | documents_of(made.held) == made.before
    made.target.reader = votes
    found = made()
    assert found.verdict is DocumentVerdict.REPAIRED
    again = made(answer="1203")  # what was repaired is not taken for what was broken off
    assert again.verdict is DocumentVerdict.NOT_REPRODUCED
    assert set(documents_of(made.held)) == set(found.quarantined)
    with open_store(str(made.store)) as index, open_store(str(made.held)) as held:
        move(earlier_moves(made.journal, index, held), held, index, made.journal)
    assert documents_of(made.store) == made.before
