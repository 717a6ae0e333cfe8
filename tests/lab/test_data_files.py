"""Evaluation files by their names, and the texts of the papers' released code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from unpoison.errors import InputError, OptionError
from unpoison_lab import data_files
from unpoison_lab.attacks.base import Target
from unpoison_lab.data_files import (
    BUILT,
    FOLDER,
    built_folder,
    data_folder,
    data_path,
    fill,
    has_released_texts,
    is_name,
    released_text,
    set_names,
)
from unpoison_lab.evaluation.datasets import load
from unpoison_lab.evaluation.presets import load_preset
from unpoison_lab.evaluation.scenarios import Scenario, make_attack
from unpoison_lab.evaluation.workbench import style_of

ROW = {
    "id": "1", "question": "q", "correct_answers": ["right"], "incorrect_answers": ["wrong"],
    "passages": [{"text": t, "label": "poison", "attack": a} for a in ("poisonedrag", "ragdefender") for t in "ab"],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path / "built"))
    (tmp_path / "built").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "built"


def write(folder: Path, name: str, *rows: object) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_a_name_means_the_file_in_the_folder_unless_one_of_that_name_is_here(folder: Path, tmp_path: Path) -> None:
    path = write(folder, "tiny", ROW)
    assert data_path("tiny") == data_path("tiny.jsonl") == path
    assert len(load("tiny")) == 1
    assert data_path("other") == Path("other") and not is_name("built/tiny")
    here = write(tmp_path, "tiny", ROW)
    assert data_path("tiny.jsonl") == here.relative_to(tmp_path)


def test_the_folder_of_evaluation_files_has_a_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_folder(BUILT) == folder and data_folder("nowhere") is None
    monkeypatch.setenv(FOLDER, str(folder / "missing"))
    with pytest.raises(InputError, match="python -m benchmarks data get"):
        data_folder(BUILT)


def test_released_texts_are_planted_and_asked_word_for_word(folder: Path) -> None:
    asked = {"id": "answer-grada", "text": "Q {question} C {context}"}
    write(folder, "replay", {"id": "qa-radar", "text": "say {answer} to {question}; "}, asked)
    attack = make_attack("pia:repeat=2,replay=radar", prefix=None, seed=0, encoder=None, generator=None)
    (poison,) = attack.craft(Target(id="t", question="a {answer}?", incorrect="b"))
    assert poison.text == "say b to a {answer}?; say b to a {answer}?; "
    assert style_of(Scenario("sample", style="plain:paper=grada,replay=true")).template == asked["text"]
    assert fill("{question} {answer}", question="{answer}", answer="{question}") == "{answer} {question}"


def test_released_texts_that_are_not_there_are_said_with_the_command(folder: Path) -> None:
    with pytest.raises(InputError, match="python -m benchmarks data get replay"):
        released_text("qa-radar")
    with pytest.raises(OptionError, match="plants no order"):
        make_attack("pia:style=link,replay=grada", prefix=None, seed=0, encoder=None, generator=None)


@pytest.mark.parametrize(
    ("name", "specs"),
    [
        ("grada-table-1", {"published:attack=poisonedrag", "pia:style=dos,replay=grada"}),
        ("ragdefender-table-8", {"published:attack=ragdefender"}),
        ("trustrag-table-1", {"published:attack=poisonedrag", "pia:repeat=1,replay=trustrag"}),
        ("radar-table-1", {"published:repeat=10,replay=radar", "pia:repeat=10,replay=radar"}),
    ],
)
def test_a_preset_replays_what_was_fetched(folder: Path, name: str, specs: set[str]) -> None:
    """With released data in the folder the scenarios get their texts, words and order from it."""
    write(folder, "replay")
    for alias in ("nq", "hotpotqa", "msmarco", "realtimeqa"):
        write(folder, f"replay_{alias}", ROW)
    preset = load_preset(name, data=folder, generator="extractive")
    attacked = [scenario for scenario in preset.scenarios if not scenario.clean]
    assert all("replay=true" in scenario.style for scenario in preset.scenarios)
    assert specs <= {scenario.attack for scenario in attacked}
    assert "retrieve" not in {scenario.policy for scenario in attacked}


@pytest.mark.parametrize(
    ("platform", "environment", "below"),
    [
        ("linux", {"XDG_CACHE_HOME": "cache"}, "cache/unpoison/data"),
        ("linux", {"XDG_CACHE_HOME": "", "LOCALAPPDATA": "other"}, "home/.cache/unpoison/data"),
        ("win32", {"LOCALAPPDATA": "local", "XDG_CACHE_HOME": "other"}, "local/unpoison/data"),
        ("win32", {"LOCALAPPDATA": ""}, "home/AppData/Local/unpoison/data"),
        ("linux", {FOLDER: "own"}, "own"),
    ],
)
def test_the_files_lie_in_the_users_cache_unless_a_folder_is_named(
    platform: str, environment: dict[str, str], below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    for name in (FOLDER, "XDG_CACHE_HOME", "LOCALAPPDATA"):
        value = environment.get(name)
        monkeypatch.setenv(name, str(tmp_path / value) if value else "")
    assert built_folder() == tmp_path / below


def test_a_path_is_no_name_and_a_folder_that_is_there_is_itself(folder: Path, tmp_path: Path) -> None:
    (folder / "sub").mkdir()
    write(folder / "sub", "tiny", ROW)
    assert not is_name("sub/tiny") and data_path("sub/tiny") == Path("sub/tiny")
    assert not is_name("missing") and not is_name("sub")
    assert data_folder(tmp_path) == tmp_path and data_folder("built") == Path("built")


def test_sets_are_those_that_are_built_and_in_a_checkout_those_that_can_be(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "__file__", str(tmp_path / "src" / "package" / "data_files.py"))
    write(folder, "own", ROW)
    assert set_names() == {"own": True}
    (tmp_path / "benchmarks" / "data").mkdir(parents=True)
    catalogue = {"files": {"nq": {}, "own": {}}}
    (tmp_path / "benchmarks" / "data" / "catalogue.json").write_text(json.dumps(catalogue))
    assert set_names() == {"nq": False, "own": True}


@pytest.mark.parametrize("damage", [b"[1]", b'{"id": "a"}', b"{", b"\xff", b"3"])
def test_released_texts_that_are_damaged_are_said_with_their_file(folder: Path, damage: bytes) -> None:
    assert not has_released_texts()
    (folder / "replay.jsonl").write_bytes(damage)
    assert has_released_texts()
    with pytest.raises(
        InputError, match=r"replay\.jsonl is missing or damaged; in a checkout run: python -m benchmarks"
    ):
        released_text("qa-radar")
    write(folder, "replay", {"id": "a", "text": "b"})
    with pytest.raises(KeyError):
        released_text("qa-radar")


def test_a_hole_that_is_none_of_the_four_stays() -> None:
    text = "{question} {answer} {context} {opening} {other} {{answer}}"
    filled = fill(text, question="q", answer="a", context="c", opening="o")
    assert filled == "q a c o {other} {a}"
