"""The results: whose setting, whole tables as files, the papers' tables by name, and one table measured again."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from unpoison.bench.evaluation.presets import load_preset, preset_names
from unpoison.bench.evaluation.stream_presets import load_stream_preset, stream_preset_names
from unpoison.core.registry import names

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SAME = re.compile(r"same setting as (?:the|a) paper(?:'s)?\?", re.IGNORECASE)

sys.path.insert(0, str(ROOT))
from benchmarks.quality import sample_table  # noqa: E402  a script beside the package, not a part of it


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


def items() -> dict[tuple[str, str], str]:
    text = (DOCS / "papers.md").read_text(encoding="utf-8")
    section = text[text.index("## Tables and figures") : text.index("## Named systems")]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {(row[0], row[1]): row[-1] for row in cells[2:]}


def test_every_table_and_figure_of_the_papers_is_in_the_list() -> None:
    wanted = {
        (paper, f"{kind} {number}")
        for paper, counts in PAPERS.items()
        for kind, count in zip(("Table", "Figure"), counts, strict=True)
        for number in range(1, count + 1)
    }
    assert wanted - set(items()) == set()
    assert all(
        entry.startswith(("preset ", "stream preset ", "command: ", "needs ", "not comparable because "))
        for entry in items().values()
    )


def test_the_list_names_the_presets_that_exist_and_no_others() -> None:
    named = {
        (key, name)
        for key, entry in items().items()
        if entry.startswith(("preset", "stream preset"))
        for name in re.findall(r"`([a-z0-9-]+)`", entry)
    }
    over_time = set(stream_preset_names())
    assert {name for _, name in named} == set(preset_names()) | over_time
    for (paper, item), name in named:
        streamed = name in over_time
        source = (load_stream_preset(name, generator="reader", nli="lexical") if streamed else load_preset(name)).source
        assert source.startswith(paper)
        numbers = re.findall(r"\d+", source.partition("(")[0])
        assert any(re.search(rf"\b{number}\b", item) for number in numbers), (item, source)


def test_presets_that_the_list_refers_to_exist() -> None:
    text = (DOCS / "papers.md").read_text(encoding="utf-8")
    mentioned = set(re.findall(r"`((?:grada|ragdefender|trustrag|radar)-(?:table|figure|section)[a-z0-9-]*)`", text))
    assert mentioned <= {*preset_names(), *stream_preset_names()}


def test_named_systems_of_the_list_exist() -> None:
    text = (DOCS / "papers.md").read_text(encoding="utf-8")
    for kind, flag in (("defenses", "-d"), ("attacks", "-a")):
        named = set(re.findall(rf"`{flag} ([a-z-]+)", text))
        assert named
        assert named <= set(names(kind))


@pytest.mark.needs("sklearn", "nltk")
@pytest.mark.seeded
def test_the_sample_table_is_what_the_docs_say() -> None:
    assert sample_table.measured() == sample_table.shown()
