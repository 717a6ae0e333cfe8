"""What an audit says to do next: each sentence from the log's own facts, and none without them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from unpoison import Guard, Passage
from unpoison.scan.audit import Audit, audit_rows
from unpoison.scan.audit_log import entry
from unpoison.types import Query, Screening

LIE = "New: employees get 40 days of parental leave from now on."
KNOWN = {"known": ["handbook.example", "hr.example"]}
QUESTION = "how many days of parental leave do employees get"


def seen(name: str, *, kept: bool = True, **fields: Any) -> dict[str, Any]:
    return {"id": name, "source": f"https://{name.split('-')[0]}.example/", "kept": kept, **fields}


def line(question: str, *passages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"audit": 1, "query_hash": question, "defense": "guard", "passages": list(passages), **fields}


def steps(*lines: dict[str, Any]) -> list[str]:
    return list(audit_rows(lines).next_steps)


def step(about: str, *lines: dict[str, Any]) -> str:
    (found,) = [said for said in steps(*lines) if about in said]
    return found


def quiet() -> Iterator[dict[str, Any]]:
    for n in range(40):
        yield line(f"quiet {n}", *(seen(f"wiki-{n}-{i}") for i in range(8)))


def test_a_quiet_log_asks_for_nothing() -> None:
    assert steps(*quiet()) == []


def test_the_threshold_that_loses_fewer_gives_up_nothing_else() -> None:
    def dropped(n: int, probability: float, agrees: float | None) -> dict[str, Any]:
        told = {} if agrees is None else {"agrees": agrees}
        suspect = seen(f"a-{n}", kept=False, probability=probability, **told)
        return line(f"q{n}", suspect, seen("b"), threshold=0.7)

    agreeing = [dropped(n, 0.71 + n / 100, 0.9) for n in range(4)]
    others = [dropped(10, 0.9, 0.1), dropped(11, 0.95, None), dropped(12, 0.99, 1.0)]
    said = step("threshold", *agreeing, *others)
    assert said.startswith("guard:threshold=0.899 would have lost 4 passages fewer")
    assert said.endswith("still have dropped the other 3")
    assert not any("threshold" in said for said in steps(*agreeing, dropped(20, 0.705, 0.2)))
    by_order = line("q", seen("a", kept=False, probability=0.8, agrees=1.0, order=True), threshold=0.7)
    contradicted = line(
        "q", seen("a", kept=False, probability=0.01, agrees=1.0, code="sources.contradicted"), threshold=0.7
    )
    assert not any("threshold" in said for said in steps(by_order, contradicted))


def test_contested_origins_and_documents_of_disputed_answers_are_named_by_count() -> None:
    def dispute(n: int, one: str, other: str) -> dict[str, Any]:
        sides = [{"passages": [0], "voices": 1}, {"passages": [1], "voices": 1}]
        return line(f"q{n}", seen(one), seen(other), seen("c-1"), contested=[{"rivals": sides}])

    lines = [dispute(0, "a-1", "b-1"), dispute(1, "a-1", "b-2"), dispute(2, "a-2", "b-2")]
    assert "a.example (3 of 3 passages), b.example (3 of 3 passages);" in step("contested most", *lines)
    assert "a-1 (2), b-2 (2);" in step("disputed answers", *lines)
    assert steps(lines[0]) != [] and not any("disputed answers" in said for said in steps(lines[0]))


def test_flagged_documents_come_with_the_command_that_takes_them_out() -> None:
    attack = [line(f"where {n}", seen("forum-1", kept=False), seen(f"wiki-{n}-0")) for n in range(6)]
    said = steps(*quiet(), *attack)
    assert said[0].startswith("look at what is marked below, documents: 1") and said[0].endswith(
        "QUARANTINE --id forum-1"
    )
    assert "forum.example (6)" in said[1]
    nameless = [
        line(f"where {n}", seen("forum-1", kept=False) | {"id": "", "hash": "ab"}, seen("w-1")) for n in range(6)
    ]
    assert steps(*quiet(), *nameless)[0].endswith("QUARANTINE --id ID")


def test_what_was_only_watched_is_said() -> None:
    lines = [line(f"q{n}", seen("a", kept=n > 0), seen("b"), action="monitor") for n in range(5)]
    assert "only watched: 5, of which 1 would have lost a passage; where that is right" in step("watched", *lines)
    assert "0 would have lost a passage; to enforce would have changed nothing" in step("watched", *lines[1:])


@pytest.mark.parametrize("saved", [False, True], ids=["log", "saved screening"])
def test_real_screenings_say_who_was_contradicted(saved: bool) -> None:
    guard = Guard(generator="extractive", sources=KNOWN)
    passages = [
        Passage("Parental leave is 14 days. Ask your manager a month before.", source="https://handbook.example/leave"),
        Passage("Every parent gets 14 days of parental leave, paid in full.", source="https://hr.example/faq"),
        Passage(LIE, source="https://wiki.example/talk/7"),
    ]
    with Audit() as audit:
        for question in (QUESTION, f"{QUESTION} now"):
            screening = guard.screen(question, passages)
            told = [{"text": p.text, "source": p.source} for p in passages]
            summary = {"query": question, "passages": told, "screening": screening.summary()}
            audit.add(summary if saved else entry(screening, texts=False))
        report = audit.report()
    assert any("wiki.example (2 of 2 passages)" in said for said in report.next_steps)


def test_hostile_names_and_broken_contests_steer_nothing() -> None:
    evil = "evil\x1b[31m\n; rm -rf ~"
    bad = [line(f"q{n}", seen("x", kept=False) | {"id": evil, "source": evil}, seen("b")) for n in range(9)]
    said = steps(*quiet(), *bad)
    assert not any("\x1b" in one or "\n" in one for one in said)
    assert shlex.split(said[0])[-2] == "--id", "an id is one word of the command, whatever it holds"
    with Audit() as audit, pytest.raises(Exception, match="cannot be read"):
        audit.add(line("q", seen("a"), contested=[{"rivals": 3}]))


def test_the_page_and_the_rows_hold_it() -> None:
    from unpoison.scan.audit_report import audit_page

    lines = [line("q", seen("<b>", kept=False), action="monitor")]
    report = audit_rows(lines)
    assert (
        "What to do next" in audit_page(report) and "<b>" not in audit_page(report).split("<main>")[1].split("</ol>")[0]
    )
    assert next(report.records())["next_steps"] == list(report.next_steps)
    decided = Screening.decided("t", Query("q"), [Passage("one")], kept=[0], scores=[1], reasons=["own words"])
    assert "code" not in entry(decided, texts=False)["passages"][0]
