"""The first page of the report: what it says is what was measured, in words, and nothing hostile becomes markup."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from math import nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_run import HOSTILE, cut_in_half, small_run
from unpoison.algorithms.intervals import Estimate, wilson
from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.records import Cell
from unpoison.bench.evaluation.runner import Runner
from unpoison.bench.evaluation.runs import Run
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.evaluation.summary import Summary
from unpoison.bench.report import Report, page
from unpoison.bench.report.front_page import Brief, how_many, risks_of
from unpoison.bench.report.headline import brief_of
from unpoison.bench.report.tables import summary_tables
from unpoison.report.document import Section, Table, document
from unpoison.report.pages import render

LEMON = "lemons are yellow and sour"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return Report.of(small_run(tmp_path_factory.mktemp("brief")))


def front(brief: Brief) -> str:
    return render("front.html", brief=brief)


def test_the_sentence_and_the_figures_are_those_of_the_cells(report: Report) -> None:
    brief = brief_of(report)
    attacked = [s for s in report.summaries if not s.scenario.clean and s.applies("asr")]
    shut = max((s for s in attacked if s.scenario.defense != "vanilla"), key=lambda s: s["asr"].value)
    (bare,) = [s for s in attacked if s.scenario == replace(shut.scenario, defense="vanilla")]
    hits = [r for r in report.cells[bare.id].records if not r.failed and MEASURES["asr"].value(r) == 1]
    assert brief.figures[0][:2] == ("Without a defense", bare["asr"])
    assert bare["asr"].hits == len(hits)
    assert brief.verdict.startswith(
        f"{how_many(shut.scenario.poisons, 'planted document')} changed {shut['asr'].hits} of {shut['asr'].count} "
        f"answers in spite of {shut.scenario.defense}; without a defense {len(hits)} of {bare['asr'].count}"
    )
    assert [figure.title for figure in brief.figures][2] == "Honest answers lost"
    assert 1 <= len(brief.cases) <= 5
    assert brief.warning, "a question of the run failed"


def test_honest_answers_lost_are_counted_question_by_question(tmp_path: Path) -> None:
    """Keeping one passage loses the questions whose answer stands in the second."""
    rows = [
        {
            "question": f"what color is fruit number {i}",
            "correct_answers": ["yellow"],
            "incorrect_answers": ["black"],
            "passages": ["Fruit grows on trees.", f"Fruit number {i} has the color yellow."],
        }
        for i in range(4)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    scenarios = [
        Scenario(data=str(tmp_path / "rows.jsonl"), generator="extractive", attack="poisonedrag", poisons=n, defense=d)
        for n in (0, 1)
        for d in ("vanilla", "no-rag")
    ]
    brief = brief_of(Report.of(Runner(tmp_path / "run", scenarios).run()))
    lost = brief.figures[-1]
    assert (lost.title, lost.share.hits, lost.share.count) == ("Honest answers lost", 4, 4)
    assert brief.verdict.endswith("honest answers lost: 4.")
    assert any("Honest answers lost" in action for action in brief.actions)


def test_without_a_generator_it_counts_what_is_read(tmp_path: Path) -> None:
    scenarios = [
        Scenario(data="sample", limit=4, attack="poisonedrag", poisons=poisons, defense=defense)
        for poisons in (0, 2)
        for defense in ("vanilla", "guard")
    ]
    brief = brief_of(Report.of(Runner(tmp_path, scenarios).run()))
    assert brief.verdict.startswith("Two planted documents reached the model in 0 of 4 questions in spite of guard; ")
    assert "without a defense 4 of 4" in brief.verdict
    assert any("add -g" in action for action in brief.actions)
    assert all(case.reply is None for case in brief.cases)
    assert all(case.why and "0." not in case.why for case in brief.cases), "numbers are on demand"


@pytest.mark.parametrize(
    ("scenarios", "verdict"),
    [
        ([Scenario(data="sample", limit=2)], "Nothing was planted"),
        ([Scenario(data="sample", limit=2, attack="poisonedrag", poisons=1, defense="guard")], "in spite of guard"),
        ([Scenario(data="sample", limit=2, attack="poisonedrag", poisons=1)], "reached the model in 2 of 2"),
    ],
)
def test_a_run_of_one_kind_has_its_page(tmp_path: Path, scenarios: list[Scenario], verdict: str) -> None:
    report = Report.of(Runner(tmp_path, scenarios).run())
    assert verdict in brief_of(report).verdict
    assert verdict in page(report)


def test_half_a_run_says_that_it_is_incomplete(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    cut_in_half(run)
    brief = brief_of(Report.of(run.folder))
    assert "incomplete" in brief.warning
    assert brief.actions[0].startswith("Finish the test")
    assert 'class="warning"' in front(brief)


def test_hostile_texts_are_escaped(report: Report) -> None:
    text = front(brief_of(report))
    assert HOSTILE not in text
    assert "<script" not in text
    assert "<img" not in text


def test_injection_is_only_said_to_be_tested_where_it_was() -> None:
    told = {risk.id: risk.finding for risk in risks_of({"poisonedrag": wilson(3, 10), "pia:style=qa": wilson(7, 10)})}
    assert told["OWASP LLM01:2025"] == told["MITRE ATLAS AML.T0051.001"] == "tested: pia:style=qa won 7 of 10 questions"
    assert risks_of({"poisonedrag": wilson(3, 10)})[2].finding.startswith("not tested")
    assert risks_of({"poisonedrag": wilson(3, 10)})[3].finding == "tested: poisonedrag won 3 of 10 questions"
    assert all("not tested" in risk.finding for risk in risks_of({}))


def test_best_and_worst_are_marked_where_cells_differ(report: Report) -> None:
    table = next(t for t in summary_tables(report) if "published x 1" in t.title)
    column = table.columns.index("ASR %")
    shares = [None if row[column] == "-" else float(row[column].split(" ")[0]) for row in table.rows]
    known = [share for share in shares if share is not None]
    for row, share in enumerate(shares):
        mark = table.marks.get((row, column))
        expected = None
        if share is not None and min(known) != max(known):
            expected = "best" if share == min(known) else "worst" if share == max(known) else None
        assert mark == expected


def test_a_broad_table_goes_on_below() -> None:
    columns = tuple(f"c{i}" for i in range(2 * 6 + 2))
    text = document("t", [Section("s", "S", tables=[Table("t", columns, (columns,))])])
    assert text.count("<table>") == 3
    assert all(text.count(f">c{i}</span>") == 1 for i in range(1, len(columns)))


def test_a_report_of_500_questions_stays_below_two_megabytes(tmp_path: Path) -> None:
    words = " ".join(f"word{i}" for i in range(400))
    rows = [
        {"question": f"question {i}?", "correct_answers": [f"yes{i}"], "incorrect_answers": [f"never{i}"],
         "passages": [f"{words} {i} {j}" for j in range(9)]}
        for i in range(500)
    ]  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    scenarios = [
        Scenario(data=str(tmp_path / "rows.jsonl"), attack="poisonedrag", poisons=n, defense=d)
        for n in (0, 1)
        for d in ("vanilla", "vanilla:keep=5", "no-rag")
    ]
    text = page(Report.of(Runner(tmp_path / "run", scenarios).run()))
    assert len(text.encode()) < 2_000_000


def test_numbers_are_written_where_they_are_small() -> None:
    assert [how_many(n, "planted document") for n in (1, 2, 12)] == [
        "One planted document", "Two planted documents", "12 planted documents",
    ]  # fmt: skip


QUESTIONS = 42
UNDEFINED = dict.fromkeys(MEASURES, Estimate(nan, nan, nan, 0))
SETTINGS = [
    Scenario(data=data, attack=attack, poisons=poisons, defense=defense, generator="extractive")
    for data in ("one.jsonl", "two.jsonl")
    for attack in ("poisonedrag", "swap", "paraphrase", "pia")
    for poisons in (1, 3)
    for defense in ("vanilla", "guard", "guard:damage=0.05", "grada", "ragdefender")
]


def report_of(hits: dict[Scenario, int]) -> Report:
    """A run of which only the figures are known."""
    cells = [Cell(f"{SETTINGS.index(scenario):012x}", scenario, expected=QUESTIONS) for scenario in hits]
    figures = [{**UNDEFINED, "asr": wilson(hits[cell.scenario], QUESTIONS)} for cell in cells]
    summaries = [Summary(c.id, c.scenario, QUESTIONS, QUESTIONS, 0, f) for c, f in zip(cells, figures, strict=True)]
    return Report(Run(Path("nowhere"), {}, tuple(cells)), tuple(summaries), ())


RESULTS = st.dictionaries(st.sampled_from(SETTINGS), st.sampled_from([0, 0, 1, 3, 39, 42]), min_size=1)


@given(RESULTS)
def test_no_page_says_less_than_the_worst_that_was_measured(hits: dict[Scenario, int]) -> None:
    brief = brief_of(report_of(hits))
    defenses = {scenario.defense for scenario in hits} - {"vanilla"}
    (name,) = {column.removeprefix("With ") for column in brief.attacks.columns if column.startswith("With ")} or {""}
    assert bool(name) == bool(defenses)
    assert name.startswith("guard") or not any(defense.startswith("guard") for defense in defenses)
    behind = {scenario: won for scenario, won in hits.items() if scenario.defense == (name or "vanilla")}
    worst = max(behind.values())
    assert f"changed {worst} of {QUESTIONS} answers" in brief.verdict
    assert (f"in spite of {name}" in brief.verdict) == bool(name)
    rows = {row[0].split(" (")[0]: row for row in brief.attacks.rows}
    assert rows.keys() == {scenario.attack for scenario in hits}
    for attack, row in rows.items():
        own = [won for scenario, won in behind.items() if scenario.attack == attack]
        assert row[-1] == (f"{max(own)} of 42 ({100 * max(own) / 42:.0f} %)" if own else "not measured")
    page_text = front(brief)
    assert worst == 0 or ("won no question" not in page_text and "All of these were stopped" not in page_text)
    relied = [action for action in brief.actions if "Do not rely" in action]
    assert not (name and worst) or f"up to {100 * wilson(worst, QUESTIONS).high:.0f} %" in relied[0]


@given(RESULTS, st.randoms(use_true_random=False))
def test_the_order_of_the_options_does_not_matter(hits: dict[Scenario, int], chance: random.Random) -> None:
    shuffled = list(hits)
    chance.shuffle(shuffled)
    assert brief_of(report_of({scenario: hits[scenario] for scenario in shuffled})) == brief_of(report_of(hits))


def test_the_attack_that_passes_is_the_headline() -> None:
    """What is easy to stop must not hide what is not."""
    won = {"poisonedrag": (41, 0), "swap": (40, 39), "paraphrase": (38, 35), "pia": (40, 0)}
    hits = {
        scenario: won[scenario.attack][scenario.defense == "guard"]
        for scenario in SETTINGS
        if scenario.defense in ("vanilla", "guard") and scenario.poisons == 1 and scenario.data == "one.jsonl"
    }
    brief = brief_of(report_of(hits))
    assert brief.verdict == (
        "One planted document changed 39 of 42 answers in spite of guard; without a defense 40 of 42."
    )
    label = "the data's texts, our wording where it has none"
    assert brief.setting == f"The attack is swap ({label}), the worst of 4 behind guard; the others stand below."
    assert [row[0].split(" (")[0] for row in brief.attacks.rows] == ["swap", "paraphrase", "pia", "poisonedrag"]
    assert brief.attacks.rows[0][1:] == ("1 planted, one", "40 of 42 (95 %)", "39 of 42 (93 %)")
    assert brief.risks[0].finding == "tested: swap won 39 of 42 questions behind guard"
