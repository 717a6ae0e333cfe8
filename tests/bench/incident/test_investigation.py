"""Wrong answers of a stand-in: who is named, what is repaired, and what a kill at any moment leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.incident.stand_in import CLEAN, QUESTION, RIGHT, WRONG, StandIn, documents_of, votes, write_store
from unpoison.bench.incident import Case, Incident, Settings, Verdict, investigate, undo
from unpoison.bench.incident.experiment import Experiment
from unpoison.bench.incident.page import incident_page
from unpoison.bench.redteam.config import Bounds, Wait
from unpoison.bench.redteam.targets import Answered
from unpoison.errors import InputError, OptionError, TargetError
from unpoison.scan.stores import RowsStore

CASE = Case(QUESTION, WRONG, right=(RIGHT,))
FAST = Wait(seconds=0.02, every=0.01)


class Run:
    """An incident in a folder."""

    def __init__(self, folder: Path, poisons: int = 1, **system: Any) -> None:
        self.store, self.held = (
            write_store(folder / "docs.jsonl", poisons, system.pop("more", None)),
            folder / "held.jsonl",
        )
        self.journal = folder / "incident.journal"
        self.target = StandIn(self.store, **system)
        self.before = documents_of(self.store)

    def __call__(self, case: Case = CASE, target: Any = None, **settings: Any) -> Incident:
        settings = {"wait": FAST, "bounds": Bounds(retries=0), **settings}
        return investigate(
            case, target or self.target, str(self.store), str(self.held), self.journal, Settings(**settings)
        )

    @property
    def whole(self) -> dict[str, str]:
        """What both stores hold together."""
        return documents_of(self.store) | documents_of(self.held)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    return lambda *arguments, **more: Run(tmp_path, *arguments, **more)


@pytest.mark.parametrize("poisons", [1, 5])
def test_poisons_are_named_and_the_answer_is_right_again(run: Callable[..., Run], poisons: int) -> None:
    # Of five, those are named that bring the answer; with accomplices all are out.
    made = run(poisons, k=4)
    found = made(accomplices=True)
    assert found.verdict is Verdict.REPAIRED
    assert found.guilty
    assert all(name.startswith("lie-") for name in found.guilty)
    assert found.after == ("It was built in 1200.",)
    assert documents_of(made.store) == CLEAN
    assert set(documents_of(made.held)) == {f"lie-{i}" for i in range(poisons)}
    assert found.asked == made.target.calls <= 100


@pytest.mark.parametrize("silent", [False, True])
def test_each_of_two_guilty_brings_the_answer_alone(run: Callable[..., Run], silent: bool) -> None:
    """A reader that believes the first liar: each lie brings the answer by itself."""
    made = run(2, reader=lambda question, texts: WRONG if "1606." in "".join(texts) else RIGHT, silent=silent)
    (made.store).write_text(made.store.read_text().replace("as the year above its door says.", "so 1606."))
    found = made()
    assert sorted(found.guilty) == ["lie-0", "lie-1"]
    assert [len(proof.documents) for proof in found.proofs] == [1, 1]
    assert all(proof.certain for proof in found.proofs)
    assert all((proof.with_them.wrong, proof.without_them.wrong) == (4, 0) for proof in found.proofs)


def test_two_halves_of_one_lie_are_a_group(run: Callable[..., Run]) -> None:
    def both(question: str, texts: Sequence[str]) -> str:
        return WRONG if sum("town hall of Alderton was built in 1606" in text for text in texts) > 1 else RIGHT

    found = run(2, reader=both)()
    assert [sorted(document.id for document in proof.documents) for proof in found.proofs] == [["lie-0", "lie-1"]]
    assert found.verdict is Verdict.REPAIRED


def test_a_clean_document_that_only_agrees_is_not_named_though_it_states_the_answer(run: Callable[..., Run]) -> None:
    more = {"rumour": "Some say the town hall of Alderton is of 1606, others that it is older."}
    found = run(1, more=more, k=8)()
    assert found.guilty == ("lie-0",)
    assert found.quarantined == ("lie-0",)
    assert "rumour" in {suspect.id for suspect in found.suspects}


def test_what_states_the_same_wrong_answer_and_stays_in_the_store_is_said(run: Callable[..., Run]) -> None:
    """The report shall not read as if every lie were out."""

    def first(question: str, texts: Sequence[str]) -> str:
        return WRONG if any(text.startswith("In which year was") for text in texts) else RIGHT

    more = {"echo": "A guide for visitors says that the town hall of Alderton was built in 1606."}
    found = run(2, more=more, k=8, reader=first)()
    assert (found.guilty, [one.id for one in found.accomplices]) == (("lie-0",), ["lie-1"])
    said = [sentence for sentence in found.remaining if "states the wrong answer too" in sentence]
    assert len(said) == 1 and "echo" in said[0]
    assert not any(name in said[0] for name in ("lie-0", "lie-1", "cedar", "elm"))


def test_another_lie_behind_the_first_is_found_where_the_right_answer_is_known(run: Callable[..., Run]) -> None:
    def first(question: str, texts: Sequence[str]) -> str:
        lies = [
            year for year in ("1606", "1777") if any(f"hall of Alderton was built in {year}" in text for text in texts)
        ]
        return f"It was built in {lies[0]}." if lies else "It was built in 1200."

    made = run(1, more={"other": "In which year? The town hall of Alderton was built in 1777."}, reader=first)
    found = made()
    assert sorted(found.guilty) == ["lie-0", "other"]
    assert found.after == ("It was built in 1200.",)
    undo(made.journal)

    made.journal = made.journal.with_name("poor.journal")
    found = made(budget=12)
    assert (found.verdict, found.guilty, found.asked) == (Verdict.NOT_RIGHT, ("lie-0",), 12)
    assert found.after == ("It was built in 1777.",)
    assert set(documents_of(made.held)) == {"lie-0"}
    undo(made.journal)

    made.journal = made.journal.with_name("again.journal")
    found = made(Case(QUESTION, WRONG))
    assert found.guilty == ("lie-0",)
    assert found.after == ("It was built in 1777.",), "nobody said that this is wrong, too"


def test_what_nobody_reads_any_more_and_what_is_in_the_model(run: Callable[..., Run]) -> None:
    made = run(0)
    assert made().verdict is Verdict.NOT_REPRODUCED
    assert made.whole == made.before

    made.journal.unlink()
    found = made(target=StandIn(made.store, reader=lambda question, texts: WRONG))
    assert found.verdict is Verdict.NO_DOCUMENT
    assert (found.guilty, documents_of(made.held)) == ((), {})
    assert documents_of(made.store) == made.before


def test_an_answer_that_varies_is_asked_for_more_often(run: Callable[..., Run]) -> None:
    made = run(1)

    def moody(question: str, texts: Sequence[str]) -> str:
        return RIGHT if made.target.calls % 3 == 1 else votes(question, texts)

    made.target.reader = moody
    found = made()
    assert found.stability.wrong < found.stability.asked
    assert found.guilty == ("lie-0",)
    assert found.verdict is Verdict.REPAIRED


def test_a_cache_is_noticed_and_nothing_is_proven(run: Callable[..., Run]) -> None:
    made = run(1)
    first = made.target.ask(QUESTION)
    with pytest.raises(TargetError, match=r"reads 'lie-0', 0\.02 s after it was withheld: it answers from a .*loaded"):
        made(target=type("Cached", (), {"ask": lambda self, question: first})())
    assert documents_of(made.store) == made.before


def test_of_a_huge_reply_the_beginning_is_read_and_kept(run: Callable[..., Run]) -> None:
    made = run(1)

    def ask(question: str) -> Answered:
        said = made.target.ask(question)
        assert said.passages is not None
        return Answered(said.answer + " x" * 100_000, (*said.passages, "long " * 200_000, "more"), said.ids)

    found = made(target=type("Huge", (), {"ask": staticmethod(ask)})())
    assert found.guilty == ("lie-0",)
    assert sum("longer than is read" in note for note in found.notes) == 1, "said once"
    rows = [json.loads(line) for line in made.journal.read_text().splitlines()]
    assert {len(row["answer"]) for row in rows if row["event"] == "asked"} == {10_000}
    assert all(sum(map(len, row["passages"])) <= 200_000 for row in rows if row["event"] == "asked")


def test_the_budget_is_kept_and_a_larger_one_goes_on(run: Callable[..., Run]) -> None:
    made = run(3)
    found = made(budget=6)
    assert found.verdict is Verdict.UNFINISHED
    assert made.target.calls == found.asked == 6
    assert documents_of(made.store) == made.before
    assert "the budget of 6 questions is used up; give a larger --budget to go on" in found.notes
    again = made(budget=60)
    assert again.verdict is Verdict.REPAIRED
    assert again.asked == made.target.calls  # those of the first run count, and none is asked anew


class Killed(BaseException):
    """The process ends here."""


def kill_at(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End everything at the n-th write of a store or question, so that nothing can be put back afterwards."""
    left = [number]

    def counted(work: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            done = work(*arguments)
            if left[0] == 1:  # and behind it
                left[0] = 0
                raise Killed
            return done

        return wrapper

    for owner, name in ((RowsStore, "put"), (RowsStore, "take"), (Experiment, "_send")):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    monkeypatch.setattr(Experiment, "__exit__", lambda self, *_: self.close())


@pytest.mark.parametrize("number", (1, 4, 7, 11, 16, 22, 30))
def test_killed_at_any_moment_nothing_is_lost(tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Run(tmp_path, 2)
    with monkeypatch.context() as patch:
        kill_at(number, patch)
        try:
            made()
        except Killed:
            pass
        else:
            pytest.fail("it was not killed")
    assert made.whole == made.before, "every document is in one store or the other"

    asked = made.target.calls
    found = made()
    assert found.verdict is Verdict.REPAIRED
    assert documents_of(made.store) == CLEAN | {
        name: text for name, text in made.before.items() if name not in found.guilty
    }
    assert found.asked <= made.target.calls + 1
    assert made.target.calls >= asked

    names = undo(made.journal)
    assert set(names) == set(found.guilty)
    assert documents_of(made.store) == made.before
    assert documents_of(made.held) == {}
    with pytest.raises(InputError, match="was undone"):
        made()


@pytest.mark.parametrize("number", [2, 6, 9])
def test_interrupted_it_puts_everything_back(run: Callable[..., Run], number: int) -> None:
    made = run(2)

    class Interrupted(StandIn):
        def ask(self, question: str) -> Answered:
            if self.calls + 1 == number:
                raise ConnectionError("gone")
            return super().ask(question)

    with pytest.raises(TargetError, match="gone"):
        made(target=Interrupted(made.store))
    assert documents_of(made.store) == made.before
    assert documents_of(made.held) == {}
    assert made().verdict is Verdict.REPAIRED


def test_proving_alone_leaves_the_store_as_it_was(run: Callable[..., Run]) -> None:
    made = run(1)
    found = made(repair=False)
    assert (found.verdict, found.guilty, found.quarantined) == (Verdict.PROVEN, ("lie-0",), ())
    assert found.after == ("It was built in 1200.",)
    assert documents_of(made.store) == made.before
    assert "run again without --prove-only" in " ".join(found.remaining)


def test_accomplices_are_named_and_go_back_where_other_questions_need_them(run: Callable[..., Run]) -> None:
    more = {"lie-note": "The town hall of Birchford was built in 1203, says the archive."}
    made = run(1, more=more)
    text = made.store.read_text().replace(
        '"lie-note", "text": "The town hall of Birchford was built in 1203, says the archive.", "author": "archive"',
        '"lie-note", "text": "The town hall of Birchford was built in 1999. The town hall of Birchford was built in '
        '1999.", "author": "mallory"',
    )
    made.store.write_text(text)
    birch = "In which year was the town hall of Birchford built?"
    found = made(regressions=[(birch, ("1999",)), ("In which year was the town hall of Cedarham built?", ())])
    assert [one.id for one in found.accomplices] == ["lie-note"]
    assert found.accomplices[0].reason == "the author 'mallory', as a guilty document has"
    assert found.quarantined == ("lie-0",)
    assert [one.broken for one in found.regressions] == [False, False]

    made.journal.unlink()
    undo_moves = made.journal.with_name("incident.journal.moves")
    undo_moves.unlink()
    write_back = {**documents_of(made.store), **documents_of(made.held)}
    assert "lie-0" in write_back
    rows = [*made.store.read_text().splitlines(), *made.held.read_text().splitlines()]
    made.store.write_text("\n".join(rows) + "\n")
    made.held.unlink()
    found = made(regressions=[(birch, ("1999",))], accomplices=True)
    assert found.quarantined == ("lie-0",), "the answer that the accomplice gave is wanted"
    assert "lie-note" in documents_of(made.store)
    assert any("accomplices" in note for note in found.notes)


def test_journals_and_settings_that_cannot_be_used(run: Callable[..., Run]) -> None:
    made = run(1)
    made()
    with pytest.raises(InputError, match=r"is of another incident \(question differs\)"):
        made(Case("another question", WRONG))
    made.journal.write_text('{"event": "run"}\n')
    with pytest.raises(InputError, match="is no journal of unpoison incident"):
        made()
    with pytest.raises(InputError, match="is no journal of unpoison incident"):
        undo(made.journal)
    with pytest.raises(OptionError, match="budget"):
        made(budget=0)
    made.journal.unlink()
    held, made.held = made.held, made.store
    with pytest.raises(InputError, match="name another store with --quarantine"):
        made()
    made.held = held.with_name("folder")
    with pytest.raises(InputError, match=r"takes files, and .* has none; name a store of its kind with --quarantine"):
        made()
    assert not made.journal.exists(), "nobody was asked, and another store may be named"


def test_the_page_and_the_json(run: Callable[..., Run], tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    rows = [
        {
            "audit": 1, "time": f"2026-03-0{day}T10:00:00+00:00", "query": "when was it built", "query_hash": "q1",
            "request": {"id": f"r{day}", "client": "10.0.0.7"}, "defense": "guard",
            "passages": [
                {"id": "lie-0", "kept": day > 1, "text": "x", "author": "mallory"},
                {"id": "lie-9", "kept": True, "text": "y", "author": "mallory"},
            ],
        }
        for day in (1, 2, 3)
    ]  # fmt: skip
    log.write_text("".join(json.dumps(row) + "\n" for row in rows) + "no row\n")
    more = {"<script>alert(1)</script>": "The town hall of <b>Alderton</b> of 1606."}
    found = run(1, more=more)(Case(QUESTION, WRONG, person="<i>Ann</i>"), logs=[str(log)])
    reach = found.reach
    assert reach is not None
    assert (reach.rows, reach.unreadable, reach.answers, reach.kept_away) == (3, 1, 2, 1)
    assert reach.people == [("10.0.0.7", 2)]
    assert reach.first_time == "2026-03-02T10:00:00+00:00"
    assert reach.company == {"the author 'mallory'": ["lie-9"]}
    page = incident_page(found)
    assert "<script>alert" not in page
    assert "<i>Ann" not in page
    for text in ("lie-0", "4 of 4 times", "0 of 4 times", "10.0.0.7", "OWASP LLM04:2025", "AML.T0070", "--undo"):
        assert text in page
    values = json.loads(found.to_json())
    assert values["verdict"] == "repaired"
    assert values["guilty"][0]["with"] == {"wrong": 4, "asked": 4, "interval": [0.5101, 1.0]}
    assert [row["event"] for row in values["timeline"]][:3] == ["incident", "reproduced", "proven"]
    assert values["guilty"][0]["documents"][0]["origins"] == ["the author 'mallory'"]
