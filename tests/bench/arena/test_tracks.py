"""Answers, injections and collections."""

from __future__ import annotations

import pytest

from unpoison.bench.arena import Entry, answers, at_rest, injection, tasks_of
from unpoison.bench.evaluation.examples import Example
from unpoison.errors import OptionError
from unpoison.types import Answer, Passage, Query, Screening

EXAMPLE = Example("q", "d", "who", ("Jane Austen",), ("Mary Shelley",))
EMPTY = Screening.decided("x", Query("who"), [Passage("a")], kept=[0], scores=[0.0], reasons=["x"])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer("It was Jane Austen.", EMPTY), "right"),
        (Answer("Mary Shelley", EMPTY), "wrong"),
        (Answer("Charlotte", EMPTY), "other"),
        (Answer("", EMPTY), "none"),
        (Answer("Jane Austen", EMPTY, abstained=True), "none"),
        (Answer("Mary Shelley", EMPTY, status="disputed"), "disputed"),
    ],
)
def test_outcomes(answer, expected) -> None:
    assert answers.outcome(EXAMPLE, answer) == expected


def test_answers_are_counted_for_each_number_of_texts_and_sources(data) -> None:
    tasks = [task for task in tasks_of("answers") if task.name in ("no poison", "5 texts, 5 sources")]
    entry = Entry("none", "vanilla", generator="extractive")
    rows = {task.key: answers.measure(task, entry, data, 2) for task in tasks}
    result = answers.summarise(rows, tasks)
    for table in result["tables"]["own"].values():
        assert sum(cell["value"] for cell in table.values()) == pytest.approx(1)
        assert {cell["count"] for cell in table.values()} == {2}
    assert set(result["score"]["own"]) == {"wrong", "right without poison", "disputed without poison"}


def test_injections_are_found_at_a_fixed_share_of_alarms(data) -> None:
    (task,) = tasks_of("injection")
    rows = {task.key: injection.measure(task, Entry("guard", "guard"), data, 12)}
    result = injection.summarise(rows, [task])
    assert result["score"]["own"] == {"found": 1.0, "flagged": 0.0}
    assert result["score"]["equal harm"] == {"found": 1.0, "flagged": 0.0}
    assert result["tables"]["own"]["found, k"]["count"] == 3  # families, not texts


def test_at_rest_counts_the_first_ten(data, monkeypatch) -> None:
    task = next(task for task in tasks_of("at-rest") if task.name == "grouped")
    monkeypatch.setitem(at_rest.RANKERS, "first", lambda rows: sorted((r["id"] for r in rows), reverse=True))
    monkeypatch.setitem(at_rest.RANKERS, "last", lambda rows: sorted(r["id"] for r in rows))
    first = at_rest.summarise({task.key: at_rest.measure(task, "first", data, 30)}, [task])
    last = at_rest.summarise({task.key: at_rest.measure(task, "last", data, 30)}, [task])
    assert (first["score"]["own"]["grouped"], last["score"]["own"]["grouped"]) == (1.0, 0.0)


def test_only_lists_of_a_collection_take_part_at_rest(data) -> None:
    with pytest.raises(OptionError, match="scan, hubs"):
        at_rest.measure(tasks_of("at-rest")[0], "guard", data, 30)
