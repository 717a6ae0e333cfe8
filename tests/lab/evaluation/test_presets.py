"""The papers' tables: every preset can be read, names what stands in for what, and runs or says what it lacks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pytest

from unpoison.core.registry import find, parse
from unpoison_lab.evaluation.datasets import load
from unpoison_lab.evaluation.differences import codes, same_model, variants
from unpoison_lab.evaluation.measures import MEASURES
from unpoison_lab.evaluation.presets import load_preset, preset_names
from unpoison_lab.evaluation.runner import Runner
from unpoison_lab.evaluation.scenarios import Scenario, stand_in
from unpoison_lab.report import Report
from unpoison_lab.report.tables import SAME, comparison_tables, format_measurement


def published(name: str, **wanted: str) -> list[float | None]:
    """The numbers of one row or column of a preset, in order."""
    return [
        one.value
        for one in load_preset(name).published
        if one.variant != "reference" and all(getattr(one, field) == value for field, value in wanted.items())
    ]


MATCHERS_OF_THE_PAPERS = {
    "grada": {"asr_substring", "em_within", "poisoned", "recall"},
    "ragdefender": {"asr_substring", "accuracy_substring", "gold_kept", "clean_kept", "recall"},
    "trustrag": {"asr_exclusive", "accuracy_substring", "accuracy_strict", "f1", "clean_kept", "poison_share"},
    "radar": {"asr_lowered", "accuracy", "judged_accuracy", "judged_relevance", "judged_coherence"},
}


@pytest.mark.parametrize("name", preset_names())
def test_preset_is_sound(name: str) -> None:
    """Numbers are in range and counted by the paper's own rule, defenses and attacks exist, both variants stand."""
    preset = load_preset(name, encoder="minilm", generator="hf:writes")
    assert preset.title
    assert preset.source.split(",")[0] in ("GRADA", "RAGDefender", "TrustRAG", "RADAR")
    assert set(preset.used) <= {"data", "encoder", "retriever", "generator", "nli"}
    assert {one.measure for one in preset.published} <= MATCHERS_OF_THE_PAPERS[name.partition("-")[0]]
    by_row: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for one in preset.published:
        top = 1 if MEASURES[one.measure].unit == "share" else 10
        assert one.value is None or 0 <= one.value <= top
        if one.scenario is not None:
            of_row = by_row.setdefault((one.table, one.row, one.column, one.measure), {})
            of_row[one.variant] = one.scenario.defense
    assert preset.scenarios
    for scenario in preset.scenarios:
        find("defenses", parse(scenario.defense)[0])
        if scenario.attacked:
            find("attacks", parse(scenario.attack)[0])
        if not scenario.clean:
            assert scenario.twin in preset.scenarios
    for measured in by_row.values():
        name_of_first = parse(next(iter(measured.values())))[0].removesuffix("-ablation")
        has_variants = name_of_first in ("trustrag", "radar", "ragdefender")
        assert list(measured) == (["paper", "reference"] if has_variants else [""])
    for difference in preset.differences:  # codes stand in the tables, and their details once below
        code, _, detail = difference.partition(": ")
        assert code.isalpha() and detail, difference


def test_published_numbers_are_the_papers() -> None:
    """Spot checks by hand against the papers' tables."""
    hrsim = {"table": "GPT-3.5-Turbo", "row": "GRADA (HRSIM)", "measure": "asr_substring"}
    assert published("grada-table-1", **hrsim) == [0.10, 0.03, 0.085, 0.27, 0.02, 0.01]
    assert published("grada-tables-6-8", table="Table 6", row="None") == [0.99, 0.99, 0.96, 0.94]
    assert published("grada-tables-6-8", table="Table 8", row="GRADA (HRSIM)") == [0.19, 0.18, 0.26, 0.20]
    assert published("ragdefender-table-8", table="GPT-4o") == [0.25, 0.36, 0.03]
    assert published("ragdefender-table-7", table="Gemini") == [0.06, 0.02, 0.03, 0.06, 0.02, 0.07]
    trust = {"table": "Llama 3.1 8B, NQ", "row": "TrustRAG stage 1&2"}
    assert published("trustrag-table-2", **trust, measure="accuracy_substring") == [0.83, 0.85, 0.84, 0.83, 0.82, 0.82]
    assert published("trustrag-table-2", **trust, measure="asr_exclusive") == [0.02, 0.01, 0.01, 0.01, 0.09]
    assert published("trustrag-table-6", table="SimCSE, NQ", row="stage 1", measure="clean_kept")[-1] == 0.85
    in_context = {"table": "w/ question, poison in context, NQ", "row": "after stage 1"}
    assert published("trustrag-table-13", **in_context) == [0.01, 0.0, 0.0, 0.0, 0.19]
    radar = {"table": "DeepSeek, top 50", "row": "RADAR"}
    assert published("radar-table-1", **radar, measure="asr_lowered") == [0.05, 0.03, 0.03, 0.07, 0.05, 0.03]
    assert published("radar-table-6", row="noise 0.5") == [0.64, 0.18, 0.78, 0.07]
    bio = {"row": "RADAR", "column": "Bio, Poison, top 10, position 1"}
    assert published("radar-table-2", **bio) == [8.44, 8.26, 8.82]


def test_scenario_follows_row_and_column() -> None:
    preset = load_preset("radar-table-6", generator="extractive", seed=3)
    one = next(one for one in preset.published if one.row == "noise 0.3" and one.column.endswith("position 10"))
    assert one.scenario is not None
    assert (one.scenario.nli_noise, one.scenario.positions, one.scenario.k) == (0.3, (10,), 10)
    assert (one.scenario.policy, one.scenario.defense, one.scenario.seed) == ("replace-or-append", "radar", 3)


def test_encoder_is_also_the_retriever_of_a_dense_preset() -> None:
    scenario = load_preset("grada-table-1", encoder="minilm").scenarios[-1]
    assert (scenario.encoder, scenario.retriever) == ("minilm", "minilm")


def test_data_folder_is_taken_by_file_name(tmp_path: Path) -> None:
    row = (
        '{"id": "a", "dataset": "nq", "question": "q", "correct_answers": ["x"], "incorrect_answers": ["y"], '
        '"passages": []}'
    )
    (tmp_path / "nq_poisoned.jsonl").write_text(row + "\n")
    (tmp_path / "corpus.jsonl").write_text("")
    preset = load_preset("trustrag-table-2", data=tmp_path)
    assert {scenario.data for scenario in preset.scenarios} == {str(tmp_path / "nq_poisoned.jsonl")}
    assert {scenario.corpus for scenario in preset.scenarios} == {str(tmp_path / "corpus.jsonl")}
    assert "data: 1 of 100 questions" in preset.differences
    assert any(sentence.startswith("MS MARCO is left out") for sentence in preset.lacks)


def test_radars_files_are_read_as_they_are(tmp_path: Path) -> None:
    row = {
        "id": 0,
        "question": "who leads?",
        "correct answer": ["Ada"],
        "incorrect answer": "Bea",
        "incorrect_context": ["Bea leads."],
        "context": [{"title": "News", "text": "Ada leads."}],
    }
    (tmp_path / "open_nq.json").write_text(json.dumps([row]))
    preset = load_preset("radar-table-9", data=tmp_path, generator="hf:writes")
    assert {scenario.data for scenario in preset.scenarios} == {f"radar:{tmp_path / 'open_nq.json'}"}
    (example,) = load(preset.scenarios[0].data)
    assert example.attacks == ("radar-incorrect-context",)
    columns = {one.column: one.column_differs for one in preset.published}
    assert columns["NQ on the web, benign"] == ("data: 1 questions; the paper does not say how many it has",)
    assert columns["TriviaQA on the web, benign"] == ("none: no data",)


@pytest.mark.parametrize(
    ("name", "style"),
    [
        ("grada-table-1", "plain:paper=grada"),
        ("ragdefender-table-8", "plain:paper=ragdefender"),
        ("trustrag-table-2", "plain:abstain=false,paper=trustrag"),
        ("radar-table-1", "plain:question=first,paper=radar"),
        ("radar-table-2", "plain:long=true,question=first,paper=radar"),
    ],
)
def test_a_preset_asks_as_its_paper_did_and_says_so(name: str, style: str) -> None:
    preset = load_preset(name, generator="extractive")
    assert {scenario.style for scenario in preset.scenarios} == {style}


def test_radars_poison_is_repeated_as_in_its_released_code_which_the_column_says(tmp_path: Path) -> None:
    """Static/main.py: Poison(repeat=10) for short answers, PoisonLONG(repeat=3) for biographies."""
    row = {"id": "a", "question": "who?", "correct_answers": ["x"], "incorrect_answers": ["y"], "passages": []}
    for name in ("realtimeqa", "nq_web", "triviaqa_web", "biogen"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row))
    expected = {"1": "repeat=10", "9": "repeat=10", "10": "repeat=10", "2": "form=prompt,repeat=3"}
    for number, options in expected.items():
        columns = [
            one
            for one in load_preset(f"radar-table-{number}", data=tmp_path, generator="hf:writes").published
            if "Poison" in one.column and one.scenario is not None
        ]
        assert {one.scenario.attack for one in columns if one.scenario} == {f"published:{options}"}
        said = "three faked sections" if number == "2" else "ten times in its passage"
        assert all(said in " ".join(one.column_differs) for one in columns)


def test_a_difference_stands_at_the_row_that_it_changes() -> None:
    preset = load_preset("grada-table-1", encoder="minilm", generator="extractive")
    differences = {one.row: one.row_differs for one in preset.published if one.measure == "em_within"}
    assert "encoder: minilm, theirs Contriever" in differences["GRADA (D2DSIM-EBD)"]
    assert not any(sentence.startswith("encoder") for sentence in differences["Keyword Aggregation"])
    assert differences["HLATR"] == ("none: not in this package",)
    assert codes(differences["GRADA (D2DSIM-EBD)"]) == "encoder generator prompt"
    columns = {one.column: one.column_differs for one in preset.published}
    assert "retriever: minilm, theirs Contriever" in columns["HotpotQA, PIA"]
    assert codes(()) == "yes"


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ("st:facebook/contriever,pooling=mean", "Contriever", True),
        ("minilm", "Contriever", False),
        ("openai:gpt-4o", "GPT-4o", True),
        ("openai:gpt-4o-mini", "GPT-4o", False),
        ("hf:meta-llama/Llama-3.1-8B-Instruct", "Llama3.1-8b-Instruct", True),
        ("hf:meta-llama/Llama-3.1-70B-Instruct", "Llama3.1-8b-Instruct", False),
        ("st:princeton-nlp/sup-simcse-bert-base-uncased", "SimCSE, BERT and BGE", True),
        ("st:princeton-nlp/sup-simcse-bert-base-uncased", "BERT", False),
    ],
)
def test_the_papers_own_model_is_no_difference(ours: str, theirs: str, same: bool) -> None:
    assert same_model(ours, theirs) is same


def test_several_seeds_give_mean_and_spread(tmp_path: Path) -> None:
    preset = load_preset("trustrag-table-6", seed=(0, 1, 2), limit=2)
    assert {scenario.seed for scenario in preset.scenarios} == {0, 1, 2}
    alone = load_preset("trustrag-table-6", limit=2).scenarios
    assert len(preset.scenarios) == 3 * len(alone)
    one = next(one for one in preset.published if one.row == "stage 1" and one.measure == "clean_kept")
    assert one.scenario is not None
    run = Runner(tmp_path, [replace(one.scenario, seed=seed) for seed in preset.seeds]).run()
    report = Report.of(run, preset=preset)
    entries = {summary.scenario: summary for summary in report.summaries}
    values = [estimate.value for estimate in preset.by_seed(one, entries)]
    assert len(values) == 3
    assert (
        format_measurement(report, preset, one)
        == f"{100 * mean(values):.1f} \u00b1 {100 * stdev(values):.1f} (3 seeds)"
    )


def test_variants_of_a_defense() -> None:
    assert variants("trustrag:stages=1") == {
        "paper": "trustrag:stages=1",
        "reference": "trustrag:stages=1,mode=reference",
    }
    assert variants("radar")["reference"] == "radar:mode=reference"
    assert variants("ragdefender:hops=multi")["paper"] == "ragdefender:hops=multi,rule=paper"
    assert variants("trustrag:mode=reference") == {"": "trustrag:mode=reference"}
    assert variants("grada") == {"": "grada"}


def test_a_grader_counts_accuracy_as_radar_does() -> None:
    words, graded = (load_preset("radar-table-1", generator="hf:writes", grader=one) for one in (None, "hf:grades"))
    assert {one.measure for one in words.published} == {"accuracy", "asr_lowered"}
    assert {one.measure for one in graded.published} == {"graded", "asr_lowered"}
    differences = "judge: accuracy by the reply's words, theirs by an LLM"
    assert any(differences in one.row_differs for one in words.published)
    assert not any(differences in one.row_differs for one in graded.published)
    assert "graded" not in {one.measure for one in load_preset("grada-table-1", grader="hf:grades").published}


def test_the_stamp_is_earned_by_every_number_or_not_at_all() -> None:
    preset = load_preset("grada-tables-6-8")
    assert not preset.same_setting and preset.stamp in preset.describe()
    bare = tuple(replace(number, row_differs=(), column_differs=()) for number in preset.published if number.scenario)
    assert replace(preset, published=bare).same_setting
    assert replace(preset, published=bare).stamp == "same setting as the paper"
    for spoilt in (
        replace(bare[-1], row_differs=("encoder",)),
        replace(bare[-1], column_differs=("data",)),
        replace(bare[-1], scenario=None),
    ):
        assert not replace(preset, published=(*bare[:-1], spoilt)).same_setting
    assert not replace(preset, published=()).same_setting


def test_one_measurement_is_printed_once(tmp_path: Path) -> None:
    """The encoders of the paper have one measurement here."""
    preset = load_preset("trustrag-table-6", limit=1)
    kept = [one for one in preset.published if one.measure == "clean_kept" and one.scenario is not None]
    run = Runner(tmp_path, [one.scenario for one in kept if one.scenario is not None]).run()
    first, *others = comparison_tables(Report.of(run, preset=replace(preset, published=tuple(kept))))
    assert first.columns[-1] == first.rows[-1][0] == SAME
    measured = [row for row in first.rows[:-1] if "\u2192" in row[1]]
    assert measured and all("[" in row[1] and "encoder" in row[-1] for row in measured)
    shown = {cell for table in others for row in table.rows for cell in row[1:-1] if "\u2192" in cell}
    assert any(cell.endswith("\u2192 above") for cell in shown)


@pytest.mark.parametrize(
    ("attack", "generator", "named"),
    [("paraphrase", "extractive", True), ("paraphrase", "openai:gpt-4o-mini", False), ("pia", None, False)],
)
def test_a_stand_in_for_a_language_model_is_named(attack: str, generator: str | None, named: bool) -> None:
    assert bool(stand_in(Scenario("sample", attack=attack, poisons=1, generator=generator))) is named


def test_the_paper_variant_names_where_it_departs_from_the_papers_text() -> None:
    (radar,) = {
        number.row_differs
        for number in load_preset("radar-table-1", generator="openai:m").published
        if number.label == "RADAR (paper)" and number.measure == "accuracy"
    }
    assert {"Eq. 36", "Eq. 40", "abstains"} <= {
        word for word in ("Eq. 36", "Eq. 40", "abstains") if any(word in text for text in radar)
    }
    marco = load_preset("ragdefender-table-5", generator="openai:m").published[0]
    assert any("k = 2 and 2 poisons at 1x" in text for text in marco.column_differs)
    keywords = [one for one in load_preset("grada-table-1", generator="openai:m").published if "Keyword" in one.row]
    assert any("Figure 8" in text for text in keywords[0].row_differs)
    assert (keywords[0].value, keywords[0].spread) == (0.11, 0.02)
