from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from unpoison.bench.arena import SIZES, Entry, entries_of, read_result, run, run_entry, tasks_of, write_result
from unpoison.bench.arena.leaderboard import frontier, picture, text_table, write_page
from unpoison.bench.arena.run import digest
from unpoison.errors import InputError, OptionError, UnknownNameError

SIZE = replace(SIZES["quick"], screening=1, searched=1)


@pytest.fixture
def result(data, tmp_path, monkeypatch):
    monkeypatch.setattr(run.screening, "GRADIENT_ENCODER", "lexical")  # gibberish needs gradients: named as absent
    return run_entry(Entry("none", "vanilla"), ["screening"], data, tmp_path / "runs", SIZE)


def test_what_cannot_be_measured_is_named_and_counts_nowhere(result) -> None:
    assert set(result["absent"]) == {"screening/gibberish"}
    assert "gibberish" not in result["tracks"]["screening"]["tables"]["own"]


def test_a_killed_run_goes_on_and_says_the_same(result, data, tmp_path, monkeypatch) -> None:
    path = tmp_path / "runs" / "none.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])  # killed in the middle of a line
    measured = []
    measure = run.screening.measure

    def count(task, *rest):
        measured.append(task.name)
        return measure(task, *rest)

    monkeypatch.setattr(run.screening, "measure", count)
    again = run_entry(Entry("none", "vanilla"), ["screening"], data, tmp_path / "runs", SIZE)
    assert again["digest"] == result["digest"]
    assert 0 < len(measured) < len(tasks_of("screening"))


def test_what_other_weights_answered_is_measured_again(result, data, tmp_path, monkeypatch) -> None:
    assert result["made"]["weights"] == run.weights_of("reader")
    measured = []
    monkeypatch.setattr(run, "weights_of", lambda generator: "0123456789ab")
    monkeypatch.setattr(run, "_measure", lambda task, *rest: measured.append(task.key) or {"absent": "asked"})
    again = run_entry(Entry("none", "vanilla"), ["screening"], data, tmp_path / "runs", SIZE)
    assert measured == [task.key for task in tasks_of("screening")]
    assert again["made"]["weights"] == "0123456789ab"


def test_missing_data_are_named_with_the_command(data, folder, tmp_path) -> None:
    file = folder / "ramdocs.jsonl"
    held = file.read_bytes()
    file.unlink()
    result = run_entry(Entry("none", "vanilla"), ["screening"], data, tmp_path / "other", SIZE)
    assert result["absent"]["screening/misinformation"].endswith("unpoison data get ramdocs")
    file.write_bytes(held)
    again = run_entry(Entry("none", "vanilla"), ["screening"], data, tmp_path / "other", SIZE)
    assert "screening/misinformation" not in again["absent"]


def test_results_are_read_only_as_they_were_written(result, tmp_path) -> None:
    path = write_result(result, tmp_path / "results")
    assert read_result(path)["digest"] == result["digest"]
    changed = json.loads(path.read_text())
    changed["tracks"]["screening"]["score"]["own"]["clean lost"]["mean"] = 0.5
    path.write_text(json.dumps(changed))
    with pytest.raises(InputError, match="not those of its digest"):
        read_result(path)
    path.write_text(json.dumps({**result, "arena": "0"}))
    with pytest.raises(InputError, match="arena run -d none"):
        read_result(path)
    path.write_text("[]")
    with pytest.raises(InputError, match="no result of the arena"):
        read_result(path)


@pytest.mark.parametrize(
    "tracks",
    [
        [],
        {"screening": []},
        {"screening": {"score": {"own": {"clean lost": {"mean": "0.1"}}}}},
        {"screening": {"score": {"own": {"clean lost": {"mean": -0.1}}}}},
        {"screening": {"tables": {"own": {"tan": {"left of one": {"value": float("nan")}}}}}},
        {"screening": {"score": {"own": {"clean lost": {"where": 3}}}}},
        {"screening": {"score": {"own": {"clean lost": {"mean": True}}}}},
        {"screening": {"score": {"own": {"clean lost": {"mean": 10**400}}}}},
        {"screening": {"score": {"own": 0}}},
        {"screening": {"score": "own"}},
        {"screening": {"tables": {}}},
        {"screening": {"score": {"own": {}}, "tables": {"own": {"tan": 0.5}}}},
        {"screening": {"score": {"own": {}}, "tables": {"own": {"tan": {"left of one": None}}}}},
    ],
)
def test_what_a_table_cannot_show_is_refused(result, tmp_path, tracks) -> None:
    path = tmp_path / "none.json"
    path.write_text(json.dumps({**result, "tracks": tracks, "digest": digest(tracks)}))
    with pytest.raises(InputError, match="no result of the arena"):
        read_result(path)


@pytest.mark.parametrize(
    "more",
    [
        {"size": "huge"},
        {"size": ["quick"]},
        {"absent": "x"},
        {"absent": {"a": 1}},
        {"made": {"version": "1"}},
        {"made": {"date": 1}},
        {"made": {"date": None}},
        {"made": "today"},
        {"entry": {"name": "none", "defense": 0, "tracks": []}},
        {"entry": {"name": "none", "defense": "vanilla", "tracks": [[]]}},
        {"entry": {"name": 5, "defense": "vanilla", "tracks": []}},
    ],
)
def test_words_that_a_table_cannot_show_are_refused(result, tmp_path, more) -> None:
    path = tmp_path / "none.json"
    path.write_text(json.dumps({**result, **more}))
    with pytest.raises(InputError, match="no result of the arena"):
        read_result(path)
    path.write_text(json.dumps({name: value for name, value in result.items() if name not in more}))
    with pytest.raises(InputError, match="no result of the arena"):
        read_result(path)


def test_what_a_pull_request_adds_is_measured_again(result, tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[3] / "tools"))
    rerun = importlib.import_module("rerun_results")
    own = {**result, "entry": Entry("short", "my_defense:Short").to_dict()}
    posing = {**result, "entry": Entry("guard", "my_defense:Short").to_dict()}  # a name of the table, another defense
    files = [write_result(one, tmp_path / str(i)) for i, one in enumerate((_first("none", result), own, posing))]
    assert rerun.specs(files) == ["none", "my_defense:Short"]
    asked = []
    for status, expected in ((0, 0), (1, 0), (2, 2)):  # 1: some tasks lack an extra, 2: nothing was measured
        monkeypatch.setattr(sys, "argv", ["rerun", str(files[1])])
        monkeypatch.setattr(rerun.subprocess, "run", lambda c, status=status, **_: asked.append(c) or Done(status))
        assert rerun.main() == expected
    assert asked[0][-1] == "--defense=my_defense:Short" and "--quick" in asked[0]
    monkeypatch.setattr(sys, "argv", ["rerun"])
    assert rerun.main() == 0 and len(asked) == 3


class Done(NamedTuple):
    returncode: int


def _first(name: str, result: dict) -> dict:
    return {**result, "entry": entries_of((name,))[0].to_dict()}


def test_entries_have_names_of_their_own() -> None:
    assert entries_of(("guard", "grada:keep=3"))[1] == Entry("grada-keep-3", "grada:keep=3")
    assert len({entry.name for entry in entries_of(())}) == len(entries_of(()))
    with pytest.raises(OptionError, match="grada"):
        entries_of(("grada", "grada"))
    with pytest.raises(OptionError, match="a-z"):
        Entry("<script>", "guard")


def test_the_frontier_holds_whom_nobody_beats() -> None:
    points = {"a": (0.0, 1.0), "b": (0.1, 0.5), "c": (0.2, 0.5), "d": (0.5, 0.0)}
    assert frontier(points) == ["a", "b", "d"]


def test_a_page_with_picture_and_feed(result, tmp_path) -> None:
    written = write_page([result], tmp_path / "docs" / "arena.md")
    assert {path.name for path in written} == {"arena.md", "arena.json", "arena.svg"}
    page = (tmp_path / "docs" / "arena.md").read_text()
    assert "| none | 0.0 % | 0.0 % | 0.0 % | 100.0 % |" in page
    assert "unpoison arena run -d none --quick" in page
    assert "screening/gibberish" in text_table([result])
    assert json.loads((tmp_path / "docs" / "arena.json").read_text())["entries"][0]["entry"]["name"] == "none"
    assert ">none *<" in picture([result])


def test_a_misspelt_entry_is_named_before_anything_is_looked_for() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'guard'"):
        entries_of(("gaurd",))
    assert [entry.name for entry in entries_of(("scan", "guard:threshold=0.9"))] == ["scan", "guard-threshold-0.9"]
