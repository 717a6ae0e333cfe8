"""The report: every number is there, nothing hostile gets through, and a run that failed half-way is told as one."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown import markdown as html_of

from hostile_texts import LINK, PAYLOAD, Page
from small_run import HOSTILE, cut_in_half, small_run
from unpoison.errors import InputError, OptionError
from unpoison.report.document import Table, markdown_table, markdown_text
from unpoison_lab.report import WRITERS, Report, as_json, as_markdown, page, write_report
from unpoison_lab.report.page import question_data
from unpoison_lab.report.tables import conclusions, difference_table, summary_tables


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
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in self.raw else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.raw[self._inside].append(data)


def test_a_report_begins_with_its_conclusion(report: Report) -> None:
    one, *_ = said = conclusions(report)
    assert len(said) == 3
    assert "at worst" in one and "without a defense" in one
    assert one.partition(":")[2][:20] in page(report)
    assert one.partition(":")[2][:20] in as_markdown(report)


def test_page_is_self_contained_and_hostile_text_is_data(report: Report) -> None:
    text = page(report)
    elements = Elements(text)
    policy = next(a["content"] or "" for tag, a in elements.tags if tag == "meta" and a.get("http-equiv"))
    data, script = elements.raw["script"]
    for kind, code in (("script", script), ("style", elements.raw["style"][0])):
        assert f"{kind}-src 'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert not [a for _, a in elements.tags if "src" in a or "style" in a or any(name.startswith("on") for name in a)]
    assert {a["href"][0] for _, a in elements.tags if a.get("href")} == {"#"}
    assert HOSTILE not in text
    assert not [tag for tag, _ in elements.tags if tag in ("img", "b")]
    assert any(HOSTILE in context["query"] for context in json.loads(data)["contexts"].values())
    sections = {a["id"] for tag, a in elements.tags if tag == "section"}
    assert sections == {"results", "differences", "cost", "questions", "problems"}


def test_tables_have_the_baseline_first_the_clean_twin_beside_and_name_a_stand_in(report: Report) -> None:
    tables = {table.title: table for table in summary_tables(report)}
    attacked = next(table for title, table in tables.items() if "published x 2" in title)
    assert [row[0] for row in attacked.rows] == ["vanilla", "grada:keep=2"]
    assert attacked.rows[0][2].startswith("100.0 [")  # two poisons in front, nothing dropped
    column = attacked.columns.index("clean: gold kept %")
    twin = next(s for s in report.summaries if s.scenario.clean and s.scenario.defense == "grada:keep=2")
    assert attacked.rows[1][column].startswith(f"{100 * twin['gold_kept'].value:.1f}")
    assert all("answers by extractive" in title for title in tables)
    assert all(table.note.startswith("extractive stands in for a language model") for table in tables.values())
    for text in (page(report), as_markdown(report)):
        assert text.count("stands in for a language model") >= len(tables)


def test_a_failed_question_is_shown_beside_the_figures(report: Report) -> None:
    failed = next(table for table in summary_tables(report) if "pia" in table.title)
    assert failed.rows[0][1] == "4, 1 failed"


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


def test_questions_are_bounded_failed_ones_first(report: Report) -> None:
    whole = question_data(report)
    records = sum(len(cell.records) for cell in report.run.cells)
    assert sum(len(cell["records"]) for cell in whole["cells"]) == records
    cell = next(cell for cell in whole["cells"] if "pia" in cell["scenario"])
    assert [record["outcomes"] == ["failed"] for record in cell["records"]] == [True, False, False, False]
    few = question_data(report, per_scenario=1)
    assert few["left_out"] == records - sum(len(cell["records"]) for cell in few["cells"])
    size = len(json.dumps(question_data(report, most=4000), separators=(",", ":")))
    assert size < 4000 + 300 * len(report.run.cells)


def test_half_a_run_gives_a_report_that_says_so(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    cut_in_half(run)
    half = Report.of(run.folder)
    assert "Incomplete:" in page(half)
    assert "questions are not measured" in page(half)
    assert json.loads(as_json(half))["complete"] is False
    assert as_markdown(half)
    for path in (run.folder / "records").iterdir():
        path.unlink()
    assert "Incomplete:" in page(Report.of(run.folder))


def test_json_is_strict_and_complete(report: Report) -> None:
    document = json.loads(as_json(report), parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    assert len(document["cells"]) == len(report.summaries)
    assert document["manifest"]["cells"][0]["scenario"] == document["cells"][0]["scenario"]
    assert document["comparisons"]


@pytest.mark.needs("pymdownx")
@pytest.mark.parametrize(
    "words",
    [
        *(
            PAYLOAD,
            f"[go]({LINK})",
            f"[go][it] [it]: {LINK}",
            f"<{LINK}>",
            "t { onclick=alert(1) }",
            "a | b | <img src=x>",
        ),
        *(r"\[go](javascript:1) \\[go](javascript:1) \` \\` \{", f"line\n\n[go]: {LINK}\n\n<script>alert(1)</script>"),
    ],
)
def test_no_text_becomes_markup_of_markdown(words: str) -> None:
    table = markdown_table(Table(words, ("name", words), ((words, words), ("b", "c")), note=words))
    line = f"{markdown_text(words)}\n\n- {markdown_text(words)}\n- go [go] [it]\n\n## {markdown_text(words)}"
    extensions = ["tables", "attr_list", "md_in_html", "admonition", "toc", "pymdownx.details", "pymdownx.superfences"]
    assert Page(html_of("\n\n".join((table, line)), extensions=extensions)).wrong == []


def test_format_is_chosen_by_suffix(report: Report, tmp_path: Path) -> None:
    for suffix in WRITERS:
        path = tmp_path / "deep" / f"report{suffix}"
        write_report(report, path)
        assert path.stat().st_size > 500
    with pytest.raises(OptionError, match=r"\.html"):
        write_report(report, tmp_path / "report.pdf")
    with pytest.raises(InputError, match=r"manifest\.json"):
        write_report(tmp_path, tmp_path / "report.html")
    with pytest.raises(OptionError, match="cannot be written"):
        write_report(report, tmp_path / "deep" / "report.md" / "no-folder.md")
