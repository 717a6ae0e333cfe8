"""The report: every number is there, nothing hostile gets through, and a run that failed half-way is told as one."""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from small_run import HOSTILE, cut_in_half, small_run
from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.presets import load_preset
from unpoison.bench.evaluation.runs import open_run
from unpoison.bench.report import FORMATS, Report, as_csv, as_json, as_markdown, page, write_report
from unpoison.bench.report.figures import poison_figures, rank_figures, sweep_figures, trade_off_figures
from unpoison.bench.report.page import question_data
from unpoison.bench.report.tables import difference_table, summary_tables
from unpoison.errors import InputError, OptionError
from unpoison.report.charts import Lines, Scatter, Series, svg


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("report")).folder


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    return Report.of(folder)


class Elements(HTMLParser):
    """Tags, and the text of scripts and styles, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.text: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in self.raw else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        (self.raw[self._inside] if self._inside else self.text).append(data)


def test_page_is_self_contained_and_allows_its_own_script_only(report: Report) -> None:
    elements = Elements(page(report))
    policy = next(a["content"] or "" for tag, a in elements.tags if tag == "meta" and a.get("http-equiv"))
    data, script = elements.raw["script"]
    for kind, text in (("script", script), ("style", elements.raw["style"][0])):
        assert f"{kind}-src 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    json.loads(data)
    assert not [a for _, a in elements.tags if "src" in a or "style" in a or any(name.startswith("on") for name in a)]
    assert {a["href"][0] for _, a in elements.tags if a.get("href")} == {"#"}


def test_hostile_text_is_data_and_never_markup(report: Report) -> None:
    text = page(report)
    elements = Elements(text)
    assert HOSTILE not in text
    assert len(elements.raw["script"]) == 2
    assert not [tag for tag, _ in elements.tags if tag in ("img", "b")]
    assert any(HOSTILE in context["query"] for context in json.loads(elements.raw["script"][0])["contexts"].values())


def test_every_section_is_there(report: Report) -> None:
    names = {a["id"] for tag, a in Elements(page(report)).tags if tag == "section"}
    assert names == {
        "results",
        "poisons",
        "trade-off",
        "sweeps",
        "ranks",
        "differences",
        "cost",
        "methods",
        "questions",
        "problems",
        "manifest",
    }


def test_anchors_lead_somewhere(report: Report) -> None:
    elements = Elements(page(report))
    names = {a["id"] for _, a in elements.tags if a.get("id")}
    assert {a["href"][1:] for tag, a in elements.tags if tag == "a" and a.get("href")} <= names


def test_page_is_the_same_every_time(folder: Path, report: Report) -> None:
    assert page(Report.of(folder)) == page(report)


def test_summary_tables_have_the_baseline_first_and_the_clean_twin_beside(report: Report) -> None:
    tables = {table.title: table for table in summary_tables(report)}
    attacked = next(table for title, table in tables.items() if "published x 2" in title)
    assert [row[0] for row in attacked.rows] == ["vanilla", "grada:keep=2"]
    assert attacked.rows[0][2].startswith("100.0 [")  # two poisons in front, nothing dropped
    column = attacked.columns.index("no attack: gold kept %")
    twin = next(s for s in report.summaries if s.scenario.clean and s.scenario.defense == "grada:keep=2")
    assert attacked.rows[1][column].startswith(f"{100 * twin['gold_kept'].value:.1f}")


def test_poison_figures_begin_at_the_clean_twin(report: Report) -> None:
    figure = next(f for f in poison_figures(report) if f.title.startswith("poisoned context"))
    assert [series.name for series in figure.series] == ["vanilla", "grada:keep=2"]
    vanilla = figure.series[0].points
    assert [at for at, _ in vanilla] == [0, 1, 2]
    assert [share.value for _, share in vanilla] == [0.0, 1.0, 1.0]
    assert all(share.low <= share.value <= share.high for _, share in vanilla)


def test_trade_off_turns_shares_around_with_their_intervals(report: Report) -> None:
    figure = next(iter(trade_off_figures(report)))
    _, _, cost, saved = next(point for point in figure.points if point[0] == "vanilla")
    assert (cost.value, saved.value) == (0.0, 0.0)
    assert (saved.low, saved.high) == (
        0.0,
        pytest.approx(
            1
            - next(
                s["poisoned"].low
                for s in report.summaries
                if s.scenario.poisons == 2 and s.scenario.defense == "vanilla"
            )
        ),
    )


def test_option_of_a_defense_is_swept(report: Report) -> None:
    figure = next(f for f in sweep_figures(report) if f.across == "grada: alpha")
    assert figure.positions == [0.2, 0.8]
    assert "poisoned context" in {series.name for series in figure.series}


def test_ranks_are_shares_of_all_poison(report: Report) -> None:
    for figure in rank_figures(report):
        for _, _, values in figure.shares:
            assert sum(values) == pytest.approx(1)


def test_differences_begin_with_the_baseline(report: Report) -> None:
    table = difference_table(report)
    assert table.rows[0][1] == "grada:keep=2 less vanilla"
    first = next(cell for cell in table.rows[0][2:] if cell != "-")
    assert re.fullmatch(r"[+-]\d+\.\d( \*)? \[[+-]\d+\.\d, [+-]\d+\.\d\] p [<=] [\d.]+", first)


def test_problems_name_the_row_the_failed_question_and_the_scenario_that_could_not_begin(report: Report) -> None:
    for text in (page(report), as_markdown(report)):
        assert "line 5" in text
        assert "no-such-defense" in text
        assert "1 of 4:" in text


def test_questions_are_bounded_and_say_what_is_left_out(report: Report) -> None:
    whole = question_data(report)
    records = sum(len(cell.records) for cell in report.run.cells)
    assert sum(len(cell["records"]) for cell in whole["cells"]) == records
    assert whole["left_out"] == 0
    few = question_data(report, per_scenario=1)
    assert all(len(cell["records"]) <= 1 for cell in few["cells"])
    assert few["left_out"] == records - sum(len(cell["records"]) for cell in few["cells"])
    size = len(json.dumps(question_data(report, most=4000), separators=(",", ":")))
    assert size < 4000 + 300 * len(report.run.cells)


def test_failed_questions_come_first(report: Report) -> None:
    cell = next(cell for cell in question_data(report)["cells"] if "pia" in cell["scenario"])
    assert [record["outcomes"] == ["failed"] for record in cell["records"]] == [True, False, False, False]


def test_half_a_run_gives_a_report_that_says_so(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    cut_in_half(run)
    half = Report.of(run.folder)
    text = page(half)
    assert "Incomplete:" in text
    assert "the run is not finished" in text
    assert "questions are not measured" in text
    assert json.loads(as_json(half))["complete"] is False
    assert as_markdown(half)
    assert as_csv(half)


def test_run_without_any_record_gives_a_report(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    for path in (run.folder / "records").iterdir():
        path.unlink()
    assert "Incomplete:" in page(Report.of(run.folder))


def test_csv_has_one_row_per_scenario_and_no_formula(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(report))))
    assert len(rows) == len(report.summaries)
    first = next(row for row in rows if row["defense"] == "vanilla" and row["poisons"] == "2")
    assert float(first["poisoned"]) == 1.0
    assert first["auroc_count"] == "4"
    assert {f"{name}_low" for name in MEASURES} <= first.keys()
    assert not [value for row in rows for value in row.values() if value.startswith(("=", "+", "@"))]


def test_json_is_strict_and_complete(report: Report) -> None:
    document = json.loads(as_json(report), parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    assert len(document["cells"]) == len(report.summaries)
    assert document["manifest"]["cells"][0]["scenario"] == document["cells"][0]["scenario"]
    assert document["comparisons"]


def test_markdown_tables_keep_their_columns(report: Report) -> None:
    for block in as_markdown(report).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) <= 1


def test_preset_is_told_with_its_published_numbers(tmp_path: Path) -> None:
    from unpoison.bench.evaluation.runner import Runner

    preset = load_preset("trustrag-table-6", limit=4)
    report = Report.of(Runner(tmp_path, preset.scenarios).run(), preset=preset)
    text = as_markdown(report)
    assert "measured once: stage 1 (paper) |" in text
    assert "same setting as the paper?" in text
    assert "instead: data: the built-in sample (4 questions) instead of NQ (100)" in text
    shown = page(report)
    assert shown.index("<h1>TrustRAG, Table 6") < shown.index("published → measured") < shown.index("The paper used")
    assert "Signature" not in shown
    assert "Nothing was planted" not in shown
    assert "The measurements behind it" not in shown
    numbers = json.loads(as_json(report))["preset"]["numbers"]
    assert any(number["published"] == 0.975 and number["measured"] is not None for number in numbers)


def test_picture_of_names_and_single_points_is_drawn() -> None:
    share = Estimate(0.5, 0.25, 0.75, 8)
    drawn = svg(Lines("t", "x", "y", (Series("<i>", 9, (("a<b", share), ("c", share))),)))
    assert "<i>" not in drawn
    assert "a&lt;b" in drawn
    assert svg(Scatter("t", "x", "y", (("n", 0, Estimate(1.0, 1.0, 1.0, 1), share),))).startswith("<svg")


@pytest.mark.parametrize("suffix", FORMATS)
def test_format_is_chosen_by_suffix(report: Report, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "deep" / f"report{suffix}"
    write_report(report, path)
    assert path.stat().st_size > 500


def test_unknown_suffix_and_missing_run_are_refused(report: Report, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"\.html"):
        write_report(report, tmp_path / "report.pdf")
    with pytest.raises(InputError, match=r"manifest\.json"):
        write_report(tmp_path, tmp_path / "report.html")
    with pytest.raises(OptionError, match="cannot be written"):
        write_report(report, _occupied(tmp_path))


def _occupied(folder: Path) -> Path:
    path = folder / "report.html"
    path.mkdir()
    return path


def test_run_opened_from_disk_is_the_run(folder: Path, report: Report) -> None:
    assert [cell.id for cell in open_run(folder).cells] == [summary.id for summary in report.summaries]
