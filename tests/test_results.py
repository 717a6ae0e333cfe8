"""The results: whose setting, whole tables as files, the papers' tables by name, and one table measured again."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from unpoison_lab.evaluation.preset_data import preset_file
from unpoison_lab.evaluation.presets import preset_names, stream_preset_names
from unpoison_lab.evaluation.scenarios import check_spec

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SAME = re.compile(r"same setting as (?:the|a) paper(?:'s)?\?", re.IGNORECASE)

sys.path.insert(0, str(ROOT))
from benchmarks.quality import sample_table  # noqa: E402  a script beside the package, not a part of it
from tools import papers_page  # noqa: E402


def test_every_section_of_the_results_says_whether_its_setting_is_the_papers() -> None:
    sections = re.split(r"^## ", (DOCS / "results.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    with_tables = [section for section in sections if "\n|" in section]
    assert len(with_tables) > 5
    assert [section.splitlines()[0] for section in with_tables if not SAME.search(section)] == []


def test_whole_tables_are_files_of_rows_as_wide_as_their_headings() -> None:
    files = sorted((DOCS / "results").glob("*.json"))
    tables = [table for path in files if path.stem != "headlines" for table in json.loads(path.read_text())]
    assert len(tables) > 200
    assert all(len(row) == len(table["columns"]) for table in tables for row in table["rows"])


PAPERS = {"GRADA": (13, 14), "RAGDefender": (10, 7), "TrustRAG": (16, 6), "RADAR": (18, 2)}
"""How many tables and figures each paper has."""


KINDS = ("runs here", "needs MODEL", "needs DATA", "departs: ")


def rows(title: str) -> list[list[str]]:
    section = papers_page.page().split(title)[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [line.strip("|").strip().split(" | ") for line in lines[2:]]


def test_the_page_of_the_papers_is_what_the_presets_and_classes_say() -> None:
    assert papers_page.PAGE.read_text(encoding="utf-8") == papers_page.page(), "run python tools/papers_page.py"


def test_every_table_and_figure_of_the_papers_is_on_the_page() -> None:
    found = {
        (row[0], f"{row[1].split(' ')[0]} {number}")
        for row in rows("## Tables and figures")
        for number in re.findall(r"\d+", row[1])
    }
    assert found >= {
        (paper, f"{kind} {number}")
        for paper, counts in PAPERS.items()
        for kind, count in zip(("Table", "Figure"), counts, strict=True)
        for number in range(1, count + 1)
    }


def test_every_line_says_whether_it_runs_here_and_there_are_all_named_things() -> None:
    lines = [*rows("## Tables and figures"), *rows("## Named systems")]
    assert len(lines) >= 150
    assert [line for line in lines if not line[-1].startswith(KINDS)] == []


def test_what_is_said_of_a_row_stands_behind_it() -> None:
    notes = yaml.safe_load((papers_page.PAGE.parents[1] / "tools" / "papers.yaml").read_text(encoding="utf-8"))["notes"]
    lines = [*rows("## Tables and figures"), *rows("## Named systems")]
    for note in notes:
        assert [line for line in lines if line[:2] == [note["paper"], note["of"]] and line[-1].endswith(note["note"])]


def test_a_row_that_is_said_to_be_printed_twice_is() -> None:
    ours = {(table["model"], row["label"]): row["values"] for table, row in _rows_of("trustrag-table-2")}
    assert ours["Llama 3.1 8B, HotpotQA", "InstructRAG ICL"] == ours["Llama 3.1 8B, MS MARCO", "ASTUTE RAG"]
    entries = {(table["model"], row["label"]): row["values"].split() for table, row in _rows_of("grada-table-2")}
    gpt, llama = "GPT-3.5-Turbo", "Llama3.1-8b-Instruct"
    same = {
        (label, place)
        for model, label in entries
        for place in range(6)
        if model == gpt and entries[gpt, label][place] == entries[llama, label][place]
    }
    keywords = {("Keyword Aggregation", place) for place in range(3)}
    assert same == keywords | {("BGE-reranker", 2), ("GRADA (HRSIM)", 2)}


def _rows_of(preset: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(table, row) for table in preset_file("presets", preset)["tables"] for row in table["rows"]]


def test_named_presets_and_systems_exist() -> None:
    text = papers_page.page()
    assert set(re.findall(r"--preset ([a-z0-9-]+)", text)) == {*preset_names(), *stream_preset_names()}
    for kind, option in (("defenses", "-d"), ("attacks", "-a")):
        specs = set(re.findall(rf"`{option} ([^`\s]+)`", text))
        assert specs
        for spec in specs:
            check_spec(kind, spec)


@pytest.mark.needs("sklearn", "nltk")
@pytest.mark.seeded
def test_the_sample_table_is_what_the_docs_say() -> None:
    assert sample_table.measured() == sample_table.shown()
