"""A check of a running system: asked only, or planted into; interrupted, killed, and lied to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.check.rag_server import Rag, serve_rag
from lab.redteam.conftest import Quick
from unpoison.check.check import CheckResult
from unpoison.errors import InputError, TargetError
from unpoison_lab.check import live as module
from unpoison_lab.check.live import LiveRetrieval, check_system
from unpoison_lab.evaluation.examples import Example
from unpoison_lab.redteam.config import Config
from unpoison_lab.redteam.http_client import Hosts
from unpoison_lab.redteam.http_target import HttpTarget
from unpoison_lab.redteam.pace import Pace, RequestLimits
from unpoison_lab.redteam.planter import PlantOutcome
from unpoison_lab.redteam.targets import TargetReply


@pytest.fixture
def rag() -> Iterator[Rag]:
    with serve_rag() as running:
        yield running


def checked(where: str, folder: Path, **options: Any) -> CheckResult:
    given = {"questions": 1, "reader": False, "clock": Quick(), **options}
    return check_system(where, journal=folder / "check.journal", **given)


def test_without_consent_it_is_only_asked(rag: Rag, tmp_path: Path) -> None:
    result = checked(rag.url, tmp_path)
    assert (result.documents, rag.planted, result.live is not None) == (3, [], True)
    assert len(result.outcomes) == 15
    assert list(tmp_path.iterdir()) == []


def test_every_attack_is_planted_judged_and_removed(rag: Rag, tmp_path: Path) -> None:
    result = checked(rag.url, tmp_path, plant=True)
    assert result.live is not None
    assert (result.live.planted, result.live.problems) == (len(rag.planted), ())
    assert set(rag.documents) == {"first-0", "first-1", "first-2"}
    assert len(rag.planted) == 1 + 4 * (1 + 3) + 3  # a harmless one; of each attack one text and three; three copies
    outcomes = {(one.attack, one.owner): one for one in result.outcomes}
    assert outcomes["injection", "one"].plain.hits == 1
    assert all(one.answered_plain is not None for one in result.outcomes)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_check_leaves_nothing_when_it_is_started_again(
    rag: Rag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = HttpTarget.remove, []

    def killed(target: HttpTarget, handles: Any) -> Any:
        calls.append(handles)
        if len(calls) > 3:
            raise MemoryError("as if the process were gone")
        return real(target, handles)

    monkeypatch.setattr(HttpTarget, "remove", killed)
    with pytest.raises(TargetError, match="could not be removed"):
        checked(rag.url, tmp_path, plant=True)
    assert len(rag.documents) > 3
    monkeypatch.setattr(HttpTarget, "remove", real)
    result = checked(rag.url, tmp_path, plant=True)
    assert (result.documents, len(rag.documents)) == (3, 3)
    assert not any("unpoison" in text for text, _ in rag.documents.values())


def test_interrupted_it_takes_back_what_is_planted(rag: Rag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = HttpTarget.ask

    def interrupted(target: HttpTarget, question: str) -> Any:
        if len(rag.planted) > 3:
            raise KeyboardInterrupt
        return real(target, question)

    monkeypatch.setattr(HttpTarget, "ask", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checked(rag.url, tmp_path, plant=True)
    assert len(rag.documents) == 3


def test_where_it_cannot_be_planted_into_the_next_command_is_named(rag: Rag, tmp_path: Path) -> None:
    rag.openapi = None
    with pytest.raises(InputError, match="unpoison redteam init"):
        checked(f"{rag.url}/ask", tmp_path, plant=True)
    rag.shows = False
    with pytest.raises(InputError, match="shows no passages"):
        checked(f"{rag.url}/ask", tmp_path)


def test_a_target_file(rag: Rag, tmp_path: Path) -> None:
    ask = {"url": f"{rag.url}/chat", "body": {"query": "{question}"}, "answer": "$.answer", "passages": "$.sources[*]"}
    (tmp_path / "t.yaml").write_text(json.dumps({"target": {"ask": ask}}))
    assert checked(str(tmp_path / "t.yaml"), tmp_path).documents == 3


EXAMPLES = [
    Example.of({
        "id": f"q{i}", "question": f"How many days of leave has group {i}?", "correct_answers": ["30 days"],
        "incorrect_answers": ["90 days"],
        "passages": [{"text": "There are 30 days.", "label": "gold", "source": "own.md"}],
    })
    for i in range(4)
]  # fmt: skip


class Scripted:
    """A planter that does as it is told, and keeps what it was asked to plant."""

    def __init__(self, outcome: PlantOutcome) -> None:
        self.outcome, self.planted = outcome, list[Any]()

    def ask(self, question: str) -> tuple[TargetReply, float]:
        return TargetReply("30 days", ("There are 30 days.",)), 0.0

    def ask_planted(self, documents: Any, question: str, **fields: Any) -> PlantOutcome:
        self.planted.append((question, [one.text for one in documents], fields))
        return self.outcome


def retrieval(outcome: PlantOutcome, examples: Sequence[Example] = EXAMPLES) -> tuple[LiveRetrieval, Scripted]:
    planter: Any = Scripted(outcome)
    return LiveRetrieval(planter, Pace(RequestLimits(), Quick()), examples), planter


def test_texts_that_do_not_depend_on_their_owner_are_planted_once() -> None:
    reply = TargetReply("90 days", ("There are 30 days.", "A piece of the lie"))
    live, planter = retrieval(PlantOutcome(1, reply, read=1, positions={1: 0}), EXAMPLES[:2])
    for owner in ("one", "own", "several", "one"):
        for seen in live.attacked("lie", owner):
            assert seen is not None and seen.answer == "90 days"
            context = seen.context
            assert (len(context), context.poison, context.injected) == (
                2,
                frozenset({1}),
                3 if owner == "several" else 1,
            )
            assert context.passages[1].text == "A piece of the lie"
            assert (context.passages[1].source == "own.md") is (owner == "own")
    assert [len(texts) for _, texts, _ in planter.planted] == [1, 1, 3, 3]
    assert {fields["attack"] for _, _, fields in planter.planted} == {"lie"}
    assert all(len(fields["honest"]) == 1 for _, _, fields in planter.planted)
    assert [one.answer for one in live.clean()] == ["30 days"] * 2 and live.problems == []


def test_after_three_questions_that_failed_nothing_more_is_planted() -> None:
    live, planter = retrieval(PlantOutcome(1, stage="ask", error="timed out"), EXAMPLES[:2])
    assert list(live.attacked("lie", "one")) == [None, None]
    assert live.problems == [f"{example.question} timed out" for example in EXAMPLES[:2]]
    with pytest.raises(TargetError, match=f"3 questions failed, the last one: {EXAMPLES[0].question[:-1]}. timed out"):
        list(live.attacked("copies", "one"))
    assert len(planter.planted) == 3


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (PlantOutcome(1, left="403"), r"planted: 403; it is removed at the next start$"),
        (
            PlantOutcome(1, TargetReply("x"), still_read=True),
            r"the system still reads it; .* give wait\.seconds in a target file; it is removed at the next start$",
        ),
    ],
)
def test_what_cannot_be_taken_back_ends_the_check_with_what_to_do(outcome: PlantOutcome, why: str) -> None:
    live, planter = retrieval(outcome)
    with pytest.raises(TargetError, match=why):
        list(live.attacked("lie", "one"))
    assert len(planter.planted) == 1


def test_a_journal_that_cannot_be_cleaned_names_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, config = tmp_path / "j", Config.of({"target": {"a": 1}})
    for remaining, said in (
        ((("unpoison-1", "403"), ("unpoison-2", "404")), "2 planted documents, such as unpoison-1: 403; "),
        ((), "1 planted documents, such as a document whose line is damaged: see the journal; "),
    ):
        cleaned = SimpleNamespace(clean=False, remaining=remaining)
        monkeypatch.setattr(module, "take_back", lambda path, cleaned=cleaned, **options: cleaned)
        with pytest.raises(InputError, match=f"an earlier check has left {said}.*clean {journal}"):
            module._remove_old(journal, config, Hosts())
