"""Which sources the attacker holds."""

from __future__ import annotations

import pytest

from unpoison.core.passages import Passage
from unpoison.errors import OptionError
from unpoison_lab.evaluation.contexts import Candidate
from unpoison_lab.evaluation.examples import Example
from unpoison_lab.evaluation.injection import frequent_sources, look_alike, with_owners
from unpoison_lab.evaluation.measures import measure
from unpoison_lab.evaluation.runs import Record
from unpoison_lab.evaluation.scenarios import Scenario
from unpoison_lab.evaluation.workbench import Workbench


def example(number: int, *hosts: str) -> Example:
    row = {
        "id": f"q{number}",
        "question": f"question number {number}",
        "correct_answers": ["yes"],
        "incorrect_answers": ["no"],
        "passages": [{"text": f"text of {host}", "url": f"https://www.{host}/{number}/a"} for host in hosts],
    }
    return Example.of(row, f"q{number}")


POISON = [Candidate(Passage(f"lie {i}", id=f"p{i}"), poison=True, target="q0") for i in range(4)]
EXAMPLES = [example(0, "a.com", "b.com"), example(1, "a.com", "c.com", "d.com"), example(2, "c.com", "d.com")]


def origins(owned: str, seed: int = 0) -> list[str]:
    known = frequent_sources(EXAMPLES)["q0"]
    return [c.passage.origin for c in with_owners(owned, EXAMPLES[0], POISON, known, seed)]


def test_one_and_each_are_new():
    assert len(set(origins("one"))) == 1
    assert len(set(origins("each"))) == 4
    assert not {"a.com", "b.com", "c.com", "d.com"} & {*origins("one"), *origins("each")}


def test_known_ones_are_taken_over_in_turn_and_never_the_questions_own():
    assert sorted(set(origins("known:2"))) == ["c.com", "d.com"]
    with pytest.raises(OptionError, match=r"known:3 takes over 3 sources .* names 2"):
        origins("known:3")


def test_sleepers_are_the_attackers_own_and_were_honest_before(tmp_path):
    assert origins("sleepers:2") == ["sleeper-0.example", "sleeper-1.example"] * 2
    bench = Workbench(tmp_path)
    known = bench.sources(Scenario("sample", attack="published", poisons=1, owned="sleepers:2", history="seen"))
    assert known.trust("sleeper-1.example") > 0.9
    assert known.trust("sleeper-2.example") < 0.1


def test_a_page_is_taken_over_imitated_or_quoted():
    assert origins("page") == ["a.com"] * 4
    assert origins("lookalike") == ["aa.com"] * 4
    assert look_alike("google.com") == "g00g1e.com"
    assert len(set(origins("user"))) == 1 and origins("user")[0].startswith("medium.com/@")
    quoted = with_owners("quote", EXAMPLES[0], POISON, (), 0)
    assert [c.passage.text for c in quoted[:1]] == ["As a.com reports: lie 0"]
    assert len({c.passage.origin for c in quoted}) == 4


@pytest.mark.parametrize("owned", ["two", "known", "known:0", "known:1000"])
def test_a_wrong_rule_is_an_error(owned: str):
    with pytest.raises(
        OptionError, match="owned must be one, each, page, user, lookalike, quote, known:N or sleepers:N"
    ):
        Scenario("sample", owned=owned)


def test_a_disputed_answer_is_neither_right_nor_wrong():
    disputed = Record("q", correct=("yes",), wanted=("no",), answer="Sources disagree: yes; no", status="disputed")
    agreed = Record("q", correct=("yes",), wanted=("no",), answer="yes", status="agreed")
    assert [measure("accuracy").parts(r) for r in (disputed, agreed)] == [(0, 1), (1, 1)]
    assert [measure("asr").parts(r) for r in (disputed, agreed)] == [(0, 1), (0, 1)]
    assert [measure("disputed").parts(r) for r in (disputed, agreed)] == [(1, 1), (0, 1)]
    assert measure("disputed").parts(Record("q", answer="yes")) == (0, 0)
