"""The papers' tables: every preset can be read, names what stands in for what, and runs or says what it lacks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from types import SimpleNamespace

import pytest

from unpoison.bench.evaluation.datasets import load
from unpoison.bench.evaluation.differences import same_model, variants
from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.poisoned_data import plant
from unpoison.bench.evaluation.presets import load_preset, preset_names
from unpoison.bench.evaluation.records import Cell
from unpoison.bench.evaluation.runner import Runner
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.evaluation.specs import short_of, stand_in
from unpoison.bench.evaluation.summary import summarise
from unpoison.bench.evaluation.workbench import Workbench
from unpoison.bench.report import Report
from unpoison.bench.report.paper_comparison import SAME, beside, comparison_tables, format_measurement, measure_meanings
from unpoison.core.registry import find, parse
from unpoison.errors import UnknownNameError
from unpoison.models.prompts import Style

NAMED_IN_THE_DOCS = {
    "grada-table-1",
    "grada-tables-6-8",
    "ragdefender-figure-4",
    "ragdefender-table-8",
    "trustrag-table-2",
    "trustrag-table-6",
    "radar-table-1",
    "radar-table-6",
}


def published(name: str, **wanted: str) -> list[float | None]:
    """The numbers of one row or column of a preset, in order."""
    return [
        one.value
        for one in load_preset(name).published
        if one.variant != "reference" and all(getattr(one, field) == value for field, value in wanted.items())
    ]


def test_promised_presets_are_there() -> None:
    assert set(preset_names()) >= NAMED_IN_THE_DOCS


@pytest.mark.parametrize("name", preset_names())
def test_preset_is_sound(name: str) -> None:
    """Every number is in its range, every scenario's attack and defense exist, and what is measured is a measure."""
    preset = load_preset(name, encoder="minilm", generator="hf:writes")
    assert preset.title
    assert preset.source.split(",")[0] in ("GRADA", "RAGDefender", "TrustRAG", "RADAR")
    assert set(preset.used) <= {"data", "encoder", "retriever", "generator", "nli"}
    for one in preset.published:
        top = 1 if MEASURES[one.measure].unit == "share" else 10
        assert one.value is None or 0 <= one.value <= top
    assert {one.measure for one in preset.published} <= MEASURES.keys()
    assert preset.scenarios
    for scenario in preset.scenarios:
        find("defenses", parse(scenario.defense)[0])
        if scenario.attacked:
            find("attacks", parse(scenario.attack)[0])
        if not scenario.clean:
            assert scenario.twin in preset.scenarios


@pytest.mark.parametrize("name", preset_names())
def test_preset_without_anything_runs_or_says_what_it_lacks(name: str) -> None:
    preset = load_preset(name)
    assert preset.scenarios or preset.lacks
    assert "data: the built-in sample" in preset.describe()


def test_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="grada-table-1"):
        load_preset("grada-table1")


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
    assert published("trustrag-table-13", table="w/ question, poison in context, NQ", row="after stage 1") == [
        0.01,
        0.0,
        0.0,
        0.0,
        0.19,
    ]
    radar = {"table": "DeepSeek, top 50", "row": "RADAR"}
    assert published("radar-table-1", **radar, measure="asr_lowered") == [0.05, 0.03, 0.03, 0.07, 0.05, 0.03]
    assert published("radar-table-6", row="noise 0.5") == [0.64, 0.18, 0.78, 0.07]
    bio = {"row": "RADAR", "column": "Bio, Poison, top 10, position 1"}
    assert published("radar-table-2", **bio) == [8.44, 8.26, 8.82]


def test_numbers_that_a_figure_does_not_print_are_none() -> None:
    assert set(published("grada-figure-6")) == {None}
    assert 0.84 in published("ragdefender-figure-4", row="RobustRAG")


def test_scenario_follows_row_and_column() -> None:
    preset = load_preset("radar-table-6", generator="extractive", seed=3)
    one = next(one for one in preset.published if one.row == "noise 0.3" and one.column.endswith("position 10"))
    assert one.scenario is not None
    assert (one.scenario.nli_noise, one.scenario.positions, one.scenario.k) == (0.3, (10,), 10)
    assert (one.scenario.policy, one.scenario.defense, one.scenario.seed) == ("replace-or-append", "radar", 3)


def test_encoder_is_also_the_retriever_of_a_dense_preset() -> None:
    scenario = load_preset("grada-table-1", encoder="minilm").scenarios[-1]
    assert (scenario.encoder, scenario.retriever) == ("minilm", "minilm")


def test_substitutions_are_named() -> None:
    description = load_preset("grada-table-1", encoder="minilm", generator="extractive").describe()
    assert "instead: encoder: minilm instead of Contriever" in description
    assert "instead: retriever: BM25 instead of Contriever" in load_preset("grada-table-1").describe()
    assert (
        "instead: generator: the extractive reader instead of GPT-3.5-Turbo (0125) and Llama-3.1-8B-Instruct"
        in description
    )
    assert "instead: data: the built-in sample" in description


def test_what_is_lacking_is_one_sentence_each() -> None:
    lacks = load_preset("grada-table-2").lacks
    assert any("without a generator" in sentence for sentence in lacks)
    assert any("follows an encoder's gradient, which lexical has not" in sentence for sentence in lacks)
    assert any("HLATR" in sentence for sentence in lacks)
    assert not any("gradient" in sentence for sentence in load_preset("grada-table-2", encoder="minilm").lacks)


def test_defense_that_needs_a_generator_is_not_run_without_one() -> None:
    preset = load_preset("radar-table-1")
    assert preset.scenarios == ()
    assert any("without a generator" in sentence for sentence in preset.lacks)


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
    assert "data: NQ 1 of 100 questions" in preset.substitutions
    assert any(sentence.startswith("MS MARCO is left out") for sentence in preset.lacks)


def test_measured_numbers_stand_beside_the_published_ones(tmp_path: Path) -> None:
    preset = load_preset("trustrag-table-6", limit=3)
    run = Runner(tmp_path, preset.scenarios).run()
    summaries = {summary.scenario: summary for summary in summarise(run.cells)}
    measured = {one: preset.by_seed(one, summaries) for one in preset.published}
    (first,) = [one for one in preset.published if (one.row, one.column) == ("stage 1", "NQ, 0 %")][:1]
    assert measured[first] == [summaries[first.scenario][first.measure]]
    assert all(not entries for one, entries in measured.items() if one.scenario is None)


def test_number_without_a_measured_cell_has_no_counterpart() -> None:
    preset = load_preset("trustrag-table-6", limit=3)
    (empty,) = summarise([Cell("x", preset.scenarios[0])])
    for one in preset.published:
        assert len(preset.by_seed(one, {empty.scenario: empty})) == (one.scenario == empty.scenario)


def test_data_that_is_missing_is_said_to_be_where_it_is(tmp_path: Path) -> None:
    lacks = load_preset("radar-table-9", data=tmp_path, generator="hf:writes").lacks
    (said,) = [sentence for sentence in lacks if sentence.startswith("TriviaQA on the web is left out")]
    where = (
        "RADAR's repository, Etherealllllll/RADAR_code, has it as Static/data/triviaqa.json: put triviaqa.json there"
    )
    assert said.endswith(where)
    (other,) = load_preset("grada-table-5", data=tmp_path).lacks[:1]
    assert other == f"HotpotQA is left out: {tmp_path} holds no hotpotqa_poisoned.jsonl"


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
    assert columns["NQ on the web, benign"] == ("1 questions; the paper does not say how many it has",)
    assert columns["TriviaQA on the web, benign"] == ("not measured: no data",)


@pytest.mark.shared_data
def test_presets_find_the_shared_data(shared_data: Path) -> None:
    preset = load_preset("grada-tables-6-8", data=shared_data)
    assert len({scenario.data for scenario in preset.scenarios}) == 3
    assert any(sentence.startswith("data: NQ ") for sentence in preset.substitutions)


def test_documentation_lists_every_measure() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "results" / "presets.md").read_text(encoding="utf-8")
    assert [name for name in MEASURES if f"| `{name}` |" not in text] == []


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
    assert f"prompts: {style}: no fence" in preset.describe()
    assert "prompts:" not in load_preset(name).describe()


def test_a_scenarios_style_reaches_the_prompts(tmp_path: Path) -> None:
    scenario = Scenario("sample", generator="extractive", style="plain")
    assert Workbench(tmp_path).defense(scenario).models.style == Style(safe=False)


@pytest.mark.parametrize(
    ("attack", "generator", "named"),
    [
        ("paraphrase", None, True),
        ("paraphrase", "extractive", True),
        ("paraphrase", "openai:gpt-4o-mini", False),
        ("synonym", None, True),
        ("adversarial-decoding", "openai:gpt-4o-mini", True),
        ("adversarial-decoding:lm=tiny", None, False),
        ("pia", None, False),
    ],
)
def test_a_stand_in_for_a_language_model_is_named(attack: str, generator: str | None, named: bool) -> None:
    scenario = Scenario("sample", attack=attack, poisons=1, generator=generator)
    assert bool(stand_in(scenario)) is named
    differences = Report.caption(SimpleNamespace(varying=()), scenario)  # type: ignore[arg-type]
    assert ("stand-in" in differences) is named
    assert not stand_in(scenario.twin)


def test_a_preset_names_what_writes_its_attacks() -> None:
    description = load_preset("trustrag-table-1", generator="extractive").describe()
    assert "instead: attack: adversarial-decoding is written by whole sentences from templates" in description


def test_gradients_aim_at_the_retriever_that_is_asked() -> None:
    one = Scenario("sample", attack="hotflip", poisons=1, policy="retrieve", retriever="minilm", encoder="lexical")
    assert one.target_encoder == "minilm"
    assert Scenario("sample", attack="hotflip", poisons=1, encoder="minilm").target_encoder == "minilm"


def test_planted_rows_say_how_they_were_made(tmp_path: Path) -> None:
    scenario = Scenario("sample", attack="paraphrase:trials=2", poisons=1, limit=1, seed=3)
    (planted,) = plant(scenario, Workbench(tmp_path))
    assert planted.row["planted"]["made"] == {
        "attack": "paraphrase:trials=2",
        "seed": 3,
        "sources": ["published"],
        "wording": "the data's texts, our wording where it has none",
        "generator": None,
        "stand_in": "sentence order and openings by rule",
    }


def test_rerankers_are_not_said_to_be_missing() -> None:
    lacks = load_preset("grada-table-1", encoder="minilm", generator="extractive").lacks
    assert not any("does not have them" in sentence for sentence in lacks)
    assert any("HLATR; measure it apart with -d hlatr" in sentence for sentence in lacks)


def test_radars_table_runs_its_baselines_as_radar_did() -> None:
    entries = {one.defense for one in load_preset("radar-table-1", generator="openai:gpt-4o").scenarios if one.k == 50}
    assert {"instructrag:order=best-first,extract=call", "astuterag:extract=call", "robustrag:gamma=0.9"} <= entries
    assert "reliabilityrag-sampled" in entries
    assert "reliabilityrag" not in entries


MATCHERS_OF_THE_PAPERS = {
    "grada": {"asr_substring", "em_within", "poisoned", "recall"},
    "ragdefender": {"asr_substring", "accuracy_substring"},
    "trustrag": {"asr_exclusive", "accuracy_substring", "accuracy_strict", "f1", "clean_kept", "poison_share"},
    "radar": {"asr_lowered", "accuracy", "judged_accuracy", "judged_relevance", "judged_coherence"},
}


@pytest.mark.parametrize("name", preset_names())
def test_replies_are_counted_by_the_papers_own_rule_which_is_named(name: str) -> None:
    preset = load_preset(name, generator="extractive")
    measures = {one.measure for one in preset.published}
    assert measures <= MATCHERS_OF_THE_PAPERS[name.partition("-")[0]]
    assert len(measure_meanings(preset)) == len(measures)


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


@pytest.mark.parametrize(
    ("generator", "said"),
    [
        (None, "no victim is asked: the refusal itself stands behind the question"),
        ("extractive", "at most 200 calls of the victim for a text; the paper's search may take 32,000"),
    ],
)
def test_a_search_that_is_shorter_than_the_papers_says_so(generator: str | None, said: str) -> None:
    columns = {one.column: one.column_differs for one in load_preset("trustrag-table-5", generator=generator).published}
    assert len(columns) == 3
    assert all(said in differs for differs in columns.values())
    others = load_preset("trustrag-table-4", generator="extractive").published
    assert not any("victim" in phrase for one in others for phrase in one.column_differs)
    more = Scenario("sample", attack="jamming:calls=9000,refusal=t2", poisons=1, generator="extractive")
    assert short_of(more).startswith("at most 9,000 calls")
    assert "no victim" in short_of(Scenario("sample", attack="jamming:mode=proxy", poisons=1, generator="extractive"))
    assert not short_of(more.twin)


def differs(name: str, field: str, **given: str) -> dict[str, tuple[str, ...]]:
    preset = load_preset(name, generator="hf:writes", **given)
    return {
        getattr(one, "label" if field == "row" else "column"): getattr(one, f"{field}_differs")
        for one in preset.published
    }


def test_a_row_says_whose_prompt_is_restated_and_where_it_is_not() -> None:
    rows = differs("grada-table-1", "row", encoder="minilm")
    assert "prompt: the rules of GRADA's Figure 8, Prompt 1, in our words" in rows["None"]
    assert "prompt: the rules of GRADA's Figure 8, Prompt 1, in our words" in rows["GRADA (HRSIM)"]
    assert "prompts in our words" in rows["Keyword Aggregation"]
    rows = differs("trustrag-table-1", "row")
    assert "prompt: the rules of TrustRAG's released code in our words" in rows["TrustRAG stage 1 (paper)"]
    assert "prompts: those of TrustRAG's Appendix A in our words" in rows["TrustRAG stage 1&2 (paper)"]
    (contaminated,) = [one for one in rows["TrustRAG stage 1&2 (reference)"] if one.startswith("prompts")]
    assert "names the attack that is measured" in contaminated


@pytest.mark.parametrize(
    ("name", "column", "said"),
    [
        ("grada-table-1", "NQ, PIA", "the sentence that counts as success in our words"),
        ("trustrag-table-1", "NQ, PIA", "the text describes perturbed tokens"),
        ("radar-table-1", "RealtimeQA, PIA, position 1", "the order in our words, ten times"),
        ("radar-table-2", "Bio, PIA, top 10, position 1", "without its faked answers"),
        ("radar-table-7", "RealtimeQA, top 10, position 1", "the order in our words"),
    ],
)
def test_a_column_says_where_an_order_is_not_the_papers(name: str, column: str, said: str, tmp_path: Path) -> None:
    row = {"question": "who?", "correct_answers": ["x"], "incorrect_answers": ["y"], "passages": []}
    for file in ("realtimeqa", "biogen", "nq_poisoned", "hotpotqa_poisoned", "msmarco_poisoned"):
        (tmp_path / f"{file}.jsonl").write_text(json.dumps({"id": file, **row}))
    assert any(said in phrase for phrase in differs(name, "column", data=str(tmp_path))[column])
    clean = differs("grada-table-3", "column", data=str(tmp_path))
    assert not any("order" in phrase for phrases in clean.values() for phrase in phrases)


def test_a_bound_is_printed_as_a_bound() -> None:
    (one,) = (one for one in load_preset("grada-figure-4").published if one.value is not None)
    assert (one.value, one.bound, one.printed) == (0.30, "<", "below 30.0")
    assert not any(one.bound for one in load_preset("grada-table-1").published)


def test_a_difference_stands_at_the_row_that_it_changes() -> None:
    preset = load_preset("grada-table-1", encoder="minilm", generator="extractive")
    differences = {one.row: one.row_differs for one in preset.published if one.measure == "em_within"}
    assert "encoder minilm, theirs Contriever" in differences["GRADA (D2DSIM-EBD)"]
    assert not any(sentence.startswith("encoder") for sentence in differences["Keyword Aggregation"])
    assert differences["HLATR"] == ("not measured: needs a checkpoint, -d hlatr:keep=5",)
    columns = {one.column: one.column_differs for one in preset.published}
    assert "retriever minilm, theirs Contriever" in columns["HotpotQA, PIA"]


def test_a_preset_for_a_language_model_says_so_at_every_row_without_one() -> None:
    preset = load_preset("radar-table-1")
    assert {one.row_differs for one in preset.published} == {("not measured: needs a generator (-g)",)}
    rows = {one.row: one.row_differs for one in load_preset("grada-table-1").published}
    assert any(sentence.startswith("no generator (-g): the poison left") for sentence in rows["None"])


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


def test_one_measurement_is_printed_once(tmp_path: Path) -> None:
    """Six language models of the paper have one measurement here; so have two tables of another NLI model."""
    preset = load_preset("ragdefender-table-8", limit=2)
    run = Runner(tmp_path, preset.scenarios).run()
    (table,) = comparison_tables(Report.of(run, preset=preset))
    models = {one.table for one in preset.published}
    assert len(models) == 6
    measured = [row for row in table.rows if "measured once" in row[0]]
    assert [row[0] for row in measured] == [
        f"\u2192 measured once: {row} ({variant})"
        for row in ("Stage 1 only", "Stage 2 only", "Combined")
        for variant in ("paper", "reference")
    ]
    assert len(table.rows) == 6 * 3 + 2 * 3 + 1
    assert all("[" not in row[1] for row in table.rows if row not in measured)
    assert table.columns[-1] == table.rows[-1][0] == SAME
    assert "one draw" in measured[0][-1]


def test_rows_without_a_measurement_stay_apart() -> None:
    groups = [group for entries in beside(load_preset("grada-table-1")).values() for group in entries]
    assert all(
        len(group.numbers) == 1
        for group in groups
        if any("not measured" in differences for differences in group.differs)
    )


def test_every_difference_that_a_column_lacks_is_said() -> None:
    differences = {
        one.column: one.column_differs for one in load_preset("radar-table-2", generator="extractive").published
    }
    assert differences["Bio, benign, top 50"] == ("not measured: the data file holds the first ten pages only",)
    gradient = {one.column: one.column_differs for one in load_preset("grada-table-2").published}
    assert "gradient" in gradient["HotpotQA, PoisonedRAG (HotFlip)"][0]


def test_reliabilityrag_samples_fifty_passages_in_every_table() -> None:
    for name in ("radar-table-1", "radar-table-14"):
        for one in load_preset(name, generator="extractive").scenarios:
            if one.defense.startswith("reliabilityrag"):
                assert one.defense.endswith("-sampled") is (one.k == 50)


def test_a_reader_stands_in_for_no_model_that_has_to_write() -> None:
    """AstuteRAG over a reader extracts nothing: 0 % beside the paper's 75 % would say nothing of AstuteRAG."""
    preset = load_preset("radar-table-1", generator="extractive")
    assert not {one.defense.partition(":")[0] for one in preset.scenarios} & {"astuterag", "instructrag"}
    differences = {one.row: one.row_differs for one in preset.published}
    assert differences["AstuteRAG"] == ("not measured: needs a generator that writes; a reader only copies",)
    assert any("AstuteRAG, InstructRAG" in sentence for sentence in preset.lacks)
    assert "trustrag" not in {one.defense for one in load_preset("trustrag-table-2", generator="reader").scenarios}


def test_a_spread_over_the_papers_seeds_is_printed() -> None:
    (one,) = (
        one
        for one in load_preset("grada-table-10").published
        if (one.table, one.row, one.column, one.measure) == ("GPT-4o", "GRADA (HRSIM)", "NQ, PoisonedRAG", "em_within")
    )
    assert (one.value, one.spread, one.printed) == (0.64, 0.014, "64.0 \u00b1 1.4")
    assert {one.spread for one in load_preset("grada-table-1").published} == {None}


def test_several_seeds_give_mean_and_spread(tmp_path: Path) -> None:
    preset = load_preset("trustrag-table-6", seed=(0, 1, 2), limit=2)
    assert {scenario.seed for scenario in preset.scenarios} == {0, 1, 2}
    alone = load_preset("trustrag-table-6", limit=2).scenarios
    assert len(preset.scenarios) == 3 * len(alone)
    run = Runner(tmp_path, preset.scenarios).run()
    report = Report.of(run, preset=preset)
    entries = {summary.scenario: summary for summary in report.summaries}
    one = next(one for one in preset.published if one.row == "stage 1" and one.measure == "clean_kept")
    values = [estimate.value for estimate in preset.by_seed(one, entries)]
    assert len(values) == 3
    assert (
        format_measurement(preset, one, entries)
        == f"{100 * mean(values):.1f} \u00b1 {100 * stdev(values):.1f} (3 seeds)"
    )


@pytest.mark.parametrize("name", preset_names())
def test_a_row_names_the_variant_that_is_measured_and_both_stand(name: str) -> None:
    """No table of TrustRAG, RADAR or RAGDefender says whether the text or the released code produced it."""
    preset = load_preset(name, encoder="minilm", generator="hf:writes")
    by_row: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for one in preset.published:
        if one.scenario is not None:
            of_row = by_row.setdefault((one.table, one.row, one.column, one.measure), {})
            of_row[one.variant] = one.scenario.defense
            assert one.label == (f"{one.row} ({one.variant})" if one.variant else one.row)
    for measured in by_row.values():
        first = next(iter(measured.values()))
        if parse(first)[0] in ("trustrag", "radar", "ragdefender"):
            assert list(measured) == ["paper", "reference"]
            modes = {variant: parse(spec)[1].get("mode", "paper") for variant, spec in measured.items()}
            assert modes == {"paper": "paper", "reference": "reference"}
        else:
            assert list(measured) == [""]


def test_variants_of_a_defense() -> None:
    assert variants("trustrag:stages=1") == {
        "paper": "trustrag:stages=1",
        "reference": "trustrag:stages=1,mode=reference",
    }
    assert variants("radar")["reference"] == "radar:mode=reference,fallback=memory"
    assert variants("ragdefender:hops=multi")["paper"] == "ragdefender:hops=multi,rule=paper"
    assert variants("trustrag:mode=reference") == {"": "trustrag:mode=reference"}
    assert variants("grada") == {"": "grada"}


def test_a_row_that_is_not_measured_has_no_variant() -> None:
    assert {one.variant for one in load_preset("radar-table-1").published} == {""}


def test_a_grader_counts_accuracy_as_radar_does() -> None:
    words, graded = (load_preset("radar-table-1", generator="hf:writes", grader=one) for one in (None, "hf:grades"))
    assert {one.measure for one in words.published} == {"accuracy", "asr_lowered"}
    assert {one.measure for one in graded.published} == {"graded", "asr_lowered"}
    differences = "accuracy by the words of the reply, theirs by an LLM grader"
    assert any(differences in one.row_differs for one in words.published)
    assert not any(differences in one.row_differs for one in graded.published)
    assert "graded" not in {one.measure for one in load_preset("grada-table-1", grader="hf:grades").published}


def test_a_model_whose_name_begins_like_another_is_another() -> None:
    assert not same_model("openai:gpt-4o", "GPT-4o-mini")
    assert same_model("openai:gpt-4o-mini", "Llama 3.3 70B and GPT-4o-mini")
    assert same_model("openai:gpt-4o", "GPT-4o and GPT-4o-mini")
    assert not same_model("st:facebook/contriever,pooling=mean", "Contriever-MS")
    rows = load_preset("trustrag-table-7", encoder="st:princeton-nlp/sup-simcse-bert-base-uncased").published
    assert not any(differences.startswith("encoder") for one in rows for differences in one.row_differs)


def test_an_architecture_without_its_generator_says_so() -> None:
    differences = {
        one.table: one.row_differs for one in load_preset("ragdefender-table-4", generator="extractive").published
    }
    assert differences["REPLUG"] == ("not measured: needs a generator with next-token probabilities, -g hf:NAME",)
    assert differences["Self-RAG"] == ("not measured: needs a generator that writes; a reader only copies",)
    assert not any(phrase.startswith("not measured") for phrase in differences["BlendedRAG"])


def test_the_stamp_is_earned_by_every_number_or_not_at_all() -> None:
    preset = load_preset("grada-tables-6-8")
    assert not preset.same_setting and "differences" in preset.stamp and preset.stamp in preset.describe()
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


@pytest.mark.shared_data
def test_passages_to_retrieve_from_and_rivals_are_differences_too(shared_data: Path) -> None:
    preset = load_preset("grada-tables-6-8", data=shared_data, encoder="st:facebook/contriever")
    differences = " / ".join(preset.differences)
    assert "2,625 clean passages to retrieve from, theirs 2,681,468 (BEIR)" in differences
    assert "only the question's own poison competes" in differences
    assert "by dot product, 'st:facebook/contriever,similarity=dot'" in differences
    dot = load_preset("grada-tables-6-8", data=shared_data, encoder="st:facebook/contriever,similarity=dot")
    assert "dot product" not in " / ".join(dot.differences)
