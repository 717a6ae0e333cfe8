"""RADAR's tables over time: the published numbers, what is measured for them, and what is said beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unpoison.bench.evaluation.stream_presets import StreamPreset, load_stream_preset, stream_preset_names
from unpoison.bench.evaluation.streams import StreamStudy, run_study
from unpoison.bench.evaluation.timelines import craft_steps, load_timelines, step_context
from unpoison.bench.report import over_time
from unpoison.bench.report.over_time import comparison_over_time
from unpoison.bench.report.paper_comparison import SAME
from unpoison.cli.runs import choose
from unpoison.errors import OptionError, UnknownNameError


def preset(name: str, generator: str = "extractive") -> StreamPreset:
    return load_stream_preset(name, generator=generator, nli="lexical")


@pytest.fixture(scope="module")
def study() -> StreamStudy:
    table = preset("radar-table-17")
    return run_study("timeline", table.methods, attacks=table.attacks, limit=2)


@pytest.mark.parametrize("name", stream_preset_names())
def test_every_number_is_a_share_of_a_method_and_an_attack_that_exist(name: str) -> None:
    table = preset(name, "openai:deepseek-chat")
    assert table.source.startswith(f"RADAR, Table {name.rpartition('-')[2]} ")
    measured = {one.method: table.variants_of(one.method) for one in table.published}
    assert sorted(name for names in measured.values() for name in names) == sorted(table.methods)
    for method, names in measured.items():
        variants = [f"{method} (paper)", f"{method} (reference)"] if method.startswith("RADAR") else [method]
        assert names == variants
    assert {one.attack for one in table.published} == set(table.attacks)
    assert all(0 < one.value < 1 for one in table.published)
    assert {place for _, place in table.attacks.values()} == {None, 1, 25, 50}


def test_published_numbers_over_time_are_the_papers() -> None:
    """Spot checks by hand against the paper's tables."""
    numbers = {
        (name, one.method, one.attack, one.measure): one.value
        for name in stream_preset_names()
        for one in preset(name).published
    }
    assert numbers["radar-table-3", "Vanilla RAG", "PIA, position 1", "attack_success"] == 0.8701
    assert numbers["radar-table-3", "RADAR", "Poison, position 50", "accuracy"] == 0.7037
    assert numbers["radar-table-4", "InstructRAG", "benign", "accuracy"] == 0.8310
    assert numbers["radar-table-4", "ReliabilityRAG", "PIA, position 1", "attack_success"] == 0.4312
    assert numbers["radar-table-15", "RobustRAG", "PIA, position 25", "attack_success"] == 0.2649
    assert numbers["radar-table-16", "AstuteRAG", "benign", "accuracy"] == 0.2527
    assert numbers["radar-table-17", "RADAR (Static)", "PIA, position 50", "attack_success"] == 0.1279


def test_baselines_carry_what_the_table_says_and_radar_its_beliefs() -> None:
    by_table = {name: preset(name, "openai:gpt-4o").methods for name in ("radar-table-3", "radar-table-4")}
    assert {one.carries for one in by_table["radar-table-3"].values()} == {"passages", "beliefs"}
    assert {one.carries for one in by_table["radar-table-4"].values()} == {"answer", "beliefs"}
    assert by_table["radar-table-3"]["RADAR (reference)"].carries == "beliefs"


def test_a_reader_is_no_model_that_writes() -> None:
    assert set(preset("radar-table-3").lacking) == {"AstuteRAG", "InstructRAG"}
    assert not preset("radar-table-3", "openai:deepseek-chat").lacking


def test_what_the_paper_used_is_no_difference() -> None:
    theirs = load_stream_preset(
        "radar-table-3",
        generator="openai:deepseek-chat",
        nli="cross:MoritzLaurer/DeBERTa-v3-large-mnli-fever-anli-ling-wanli",
    )
    assert [one for one in theirs.differs if "theirs De" in one] == []
    assert "generator the extractive reader, theirs DeepSeek" in preset("radar-table-3").differs


def test_measured_numbers_stand_beside_the_published_ones(study: StreamStudy) -> None:
    accuracy, attacks = comparison_over_time(preset("radar-table-17"), study)
    assert accuracy.columns == ("", "benign", "PIA, position 1", "PIA, position 25", "PIA, position 50", SAME)
    assert attacks.columns == ("", "PIA, position 1", "PIA, position 25", "PIA, position 50", SAME)
    shown = 100 * study.results["benign"]["RADAR (Dynamic) (paper)"].accuracy().value
    assert accuracy.rows[2][0] == "RADAR (Dynamic) (paper)"
    assert accuracy.rows[2][1] == f"74.02 \u2192 {shown:.1f}"
    words = "the order in our words, ten times as in the released code"
    late = f"{words}; 8 of 8 steps have fewer passages: behind the last one"
    assert accuracy.rows[-1][1:4] == ("yes", words, late)
    assert "timeline: 2 questions, 8 steps" in accuracy.rows[0][-1]
    assert "the year of a question is not told" in accuracy.rows[3][-1]
    assert "the year of a question is not told" not in accuracy.rows[2][-1]


def test_every_report_has_the_published_numbers(study: StreamStudy, tmp_path: Path) -> None:
    table = preset("radar-table-17")
    for suffix in (".html", ".md", ".json"):
        over_time.write_over_time(study, tmp_path / f"report{suffix}", table)
    assert "published \u2192 measured" in (tmp_path / "report.html").read_text()
    assert "| RADAR (Dynamic) (paper) | 74.02 \u2192 " in (tmp_path / "report.md").read_text()
    numbers = json.loads((tmp_path / "report.json").read_text())["preset"]["published"]
    assert len(numbers) == 14


def test_poison_stands_behind_the_last_passage_of_a_short_list() -> None:
    example = load_timelines("timeline")[0].steps[0]
    poison = craft_steps(load_timelines("timeline")[:1], "pia")[0][example.id]
    short = step_context(example, poison, 50)
    assert short.poison == {len(short) - 1}
    assert len(short) == len(step_context(example)) + 1
    assert step_context(example, poison, 1).poison == {0}


def test_a_text_is_repeated_as_in_the_released_code_which_the_row_says() -> None:
    tables = [preset(name) for name in stream_preset_names()]
    planted = {attack for table in tables for attack, _ in table.attacks.values()} - {None}
    assert planted == {"pia:repeat=10", "published:attack=radar-incorrect-context,repeat=10"}
    table = next(table for table in tables if table.name == "radar-table-3")
    poison = {label: table.attack_differs[label] for label in table.attacks if label.startswith("Poison")}
    assert len(poison) == 3
    assert all("ten times in its passage, as in the released code" in " ".join(said) for said in poison.values())


def test_names_are_told_apart_from_those_of_other_presets() -> None:
    with pytest.raises(UnknownNameError, match="radar-table-17"):
        preset("radar-table-71")
    with pytest.raises(OptionError, match="--stream timeline"):
        choose({}, None, "radar-table-17", None)
