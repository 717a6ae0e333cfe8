"""Files for a paper: hostile cells are text in LaTeX, CSV and SVG, tables have the shape that LaTeX wants."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_run import small_run
from unpoison.bench.report import Report, as_json, as_markdown, page, write_tables
from unpoison.bench.report.methods import compute_table, data_table, methods_terms, settings_table
from unpoison.bench.report.table_files import every_figure, every_table
from unpoison.errors import OptionError
from unpoison.report.charts import Bars, Lines, Series
from unpoison.report.document import Table
from unpoison.report.latex import escape_latex, latex_table
from unpoison.report.svg_file import figure_file


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return Report.of(small_run(tmp_path_factory.mktemp("tables")).folder)


@pytest.fixture(scope="module")
def files(report: Report, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("written") / "of" / "a run"
    return {path.name: path.read_text(encoding="utf-8") for path in write_tables(report, folder)}


KNOWN = re.compile(
    r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar|textasciigrave|ldots)\{\}"
    r"|\\[{}$&#%_]|\{\\char34\}|\{\[\}|\{\]\}|-\{\}-|\$(?:\\to|\\pm|\\leq|\\geq|\\times|-)\$"
)
"""All that escaping may write; what is left must mean nothing to LaTeX."""


@given(st.text(alphabet=st.sampled_from('\\{}$&#%_~^<>|`"[]-\u2192\u00b1 a1\n%\u202e')))
def test_nothing_of_a_text_is_a_command(text: str) -> None:
    left = KNOWN.sub("", escape_latex(text))
    assert not set(left) & set('\\{}$&#%_~^<>|`"[]\n\u202e')
    assert "--" not in left


def test_escapes_by_hand() -> None:
    assert escape_latex(r"a_b & 50% of \input{x} $1 #2 ~^") == (
        r"a\_b \& 50\% of \textbackslash{}input\{x\} \$1 \#2 \textasciitilde{}\textasciicircum{}"
    )
    assert escape_latex("--k [2]") == "-{}-k {[}2{]}"
    assert escape_latex("published \u2192 measured \u00b1 1\nline") == r"published $\to$ measured $\pm$ 1 line"


TABLE = Table(
    "Rows_of 100 %", ("defense", *(f"m{i}" for i in range(8))),
    (("[guard]", "63.2 [50.9, 74.0]", *"1234567"), ("*vote", "1.0", *"1234567")),
    marks={(0, 1): "best", (1, 1): "worst"},
)  # fmt: skip


def test_a_broad_table_becomes_several_of_one_shape() -> None:
    text = latex_table(TABLE, "rows")
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    assert r"\label{tab:rows}" in text and r"\label{tab:rows-2}" in text
    assert r"\caption{Rows\_of 100 \% (continued)}" in text
    for part in text.split("\n\n"):
        (columns,) = re.findall(r"\\begin\{tabular\}\{(l*r*)\}", part)
        rows = [line for line in part.splitlines() if line.endswith(r" \\")]
        assert len(rows) == 3
        assert {line.count(" & ") for line in rows} == {len(columns) - 1}
        order = [part.index(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}")]
        assert order == sorted(order)


def test_a_row_never_begins_with_what_the_row_before_would_read() -> None:
    """Behind `\\\\` LaTeX reads `[` as a length and `*` as a form of the command."""
    rows = [line for line in latex_table(TABLE, "x").splitlines() if line.endswith(r"\\")]
    assert all(line.startswith("{") for line in rows)
    assert r"\textbf{63.2} {\scriptsize {[}50.9, 74.0{]}}" in rows[1]
    assert "textbf" not in rows[2]


def test_figures_stand_right_words_left_and_long_texts_are_broken() -> None:
    cells = ("a", "1.5 [1, 2]", "-", "+2.0", "", "9 of 10", "word", "-d x", "long " * 12)
    text = latex_table(Table("t", tuple("abcdefghi"), (cells,), breadth=9), "x")
    assert r"\begin{tabular}{lrrrrrllp{0.5\linewidth}}" in text


def test_every_table_has_both_files_and_every_picture_one(report: Report, files: dict[str, str]) -> None:
    tables, figures = every_table(report), list(every_figure(report))
    names = [name for name in files if name.startswith("table-")]
    assert [name.rpartition(".")[2] for name in names] == ["tex", "csv"] * len(tables)
    assert sum(name.startswith("figure-") for name in files) == len(figures) > 2
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in files)
    stems = [name.removesuffix(".tex") for name in names if name.endswith(".tex")]
    assert re.findall(r"\\input\{(.*)\}", files["tables.tex"]) == stems
    for stem, table in zip(stems, tables, strict=True):
        rows = list(csv.reader(io.StringIO(files[f"{stem}.csv"])))
        assert [len(row) for row in rows] == [len(table.columns)] * (len(table.rows) + 1)
        labels = re.findall(r"\\label\{(tab:[a-z0-9-]+)\}", files[f"{stem}.tex"])
        assert len(labels) == len(set(labels)) == len(table.parts)
    assert len(list(csv.reader(io.StringIO(files["scenarios.csv"])))) == len(report.summaries) + 1


def test_cells_are_no_formulas(tmp_path: Path, report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = ("-", "-3.2 * [-5.0, -1.0] p = 0.012", "+1.0 [0.5, 1.5]")
    evil = Table("t", ("a", "b", "-c"), (("=1+1", "@x", "-1+cmd|x"), figures))
    monkeypatch.setattr("unpoison.bench.report.table_files.every_table", lambda report: [evil])
    write_tables(report, tmp_path)
    with Path(tmp_path, "table-01-t.csv").open(encoding="utf-8", newline="") as stream:
        assert list(csv.reader(stream)) == [["a", "b", "'-c"], ["'=1+1", "'@x", "'-1+cmd|x"], list(figures)]


def test_pictures_are_xml_of_their_own_with_all_names(files: dict[str, str]) -> None:
    for name, text in files.items():
        if name.endswith(".svg"):
            root = ElementTree.fromstring(text)  # noqa: S314  our own file
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            assert "<script" not in text and "href" not in text
    points = ((1.0, _estimate()), (2.0, _estimate()))
    series = tuple(Series(f"<b>{i} & more", i, points) for i in range(5))
    text = figure_file(Lines("A <title>", "across", "up", series))
    words = " ".join(ElementTree.fromstring(text).itertext())  # noqa: S314
    assert all(f"<b>{i} & more" in words for i in range(5)) and "A <title>" in words
    root = ElementTree.fromstring(text)  # noqa: S314
    _, top, _, height = map(float, root.attrib["viewBox"].split())
    names = [
        float(node.attrib["y"]) for node in root.iter("{http://www.w3.org/2000/svg}text") if node.get("class") == "name"
    ]
    assert len(set(names)) == 3 and all(top < y < 0 for y in names) and height == 340 - top
    long = figure_file(Lines("word " * 30, "across", "up", series))
    lines = [node.text for node in ElementTree.fromstring(long).iter() if node.get("x") == "320"]  # noqa: S314
    assert len(lines) == 2 and all(len(line or "") <= 84 for line in lines)
    bars = figure_file(Bars("b", "x", "y", (("poison", "dropped", (0.5, 0.5)), ("gold", "kept", (1.0, 0.0)))))
    assert 'class="dropped"' in bars and 'class="kept"' in bars


def _estimate():
    from unpoison.algorithms.intervals import Estimate

    return Estimate(0.5, 0.4, 0.6, 10)


def test_a_place_that_cannot_be_written_to_is_said(tmp_path: Path, report: Report) -> None:
    Path(tmp_path, "file").write_text("x", encoding="utf-8")
    with pytest.raises(OptionError, match="cannot be written"):
        write_tables(report, tmp_path / "file")


def test_what_a_reviewer_asks_for_is_in_every_form(report: Report) -> None:
    terms = dict(methods_terms(report))
    assert list(terms) == ["Machine", "Prompts", "Intervals", "Many comparisons", "Splits", "Failures"]
    assert all(terms.values())
    html, markdown, data = page(report), as_markdown(report), as_json(report)
    for word in ("Data statement", "Compute", "Holm", "Wilson", "Failures"):
        assert word in html and word in markdown and word in data
    assert 'id="methods"' in html


def test_the_data_statement_says_what_was_read_and_what_was_left_out(report: Report) -> None:
    ((name, what, _, questions, left_out, asked, digest),) = data_table(report).rows
    assert (name, what, questions, left_out, asked) == ("cliffs", "the user's own", "4", "1", "4")
    (source,) = report.run.manifest["data"].values()
    assert source["digest"].removeprefix("sha256:").startswith(digest) and len(digest) == 16


def test_compute_adds_up(report: Report) -> None:
    rows = {row[0]: row for row in compute_table(report).rows}
    usable = [record for cell in report.run.cells for record in cell.usable]
    assert rows["all"][1] == str(len(usable))
    assert rows["all"][3] == str(sum(record.calls for record in usable))
    counts = [int(row[1]) for name, row in rows.items() if name != "all"]
    assert sum(counts) == len(usable)
    failures = sum(len(cell.failures) for cell in report.run.cells)
    assert failures > 0 and rows["all"][2] == str(failures)
    (failed, *_) = dict(methods_terms(report))["Failures"]
    assert failed.startswith(f"{failures} of ")


def test_settings_and_corrections_name_the_run(report: Report) -> None:
    settings = dict(settings_table(report).rows)
    assert "published" in settings["attack, and whose words it plants"] and "our wording" in str(settings)
    assert settings["generator"] == "extractive"
    (first, *_) = dict(methods_terms(report))["Many comparisons"]
    assert first.startswith(f"{len(report.comparisons):,} paired comparisons")
    assert any("PASSAGE 1" in line for line in dict(methods_terms(report))["Prompts"])
