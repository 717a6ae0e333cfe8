"""Evaluation files by their names, and the texts of the papers' released code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unpoison.errors import InputError, OptionError
from unpoison_lab.attacks.base import Target
from unpoison_lab.data_files import BUILT, FOLDER, data_folder, data_path, fill, is_name, released_text
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
