"""The site is built strictly, asks no other host for anything, and its pages say of options what the program says."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from unpoison.core.registry import find, names, options

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
NUMBERED = re.compile(r"^\|.*\d.*[\[(]\d.*\|$", re.MULTILINE)
"""A row of a table with a measured number and its interval."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        pytest.skip("NO MKDOCS: the site is not built; install the dependency group docs")
    folder = tmp_path_factory.mktemp("site")
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
    return folder


def test_the_site_is_built_without_a_warning(site: Path) -> None:
    assert (site / "search" / "search_index.json").stat().st_size > 100_000
    for page in ("quickstart", "defenses/guard", "attacks/poisonedrag", "reference/commands/screen"):
        assert (site / page / "index.html").exists()
    assert "Grada" in (site / "reference" / "python" / "defenses" / "index.html").read_text(encoding="utf-8")


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    """Links may lead elsewhere; scripts, styles, fonts and pictures may not."""
    loads = re.compile(
        r"<(?:script|img|iframe)[^>]+src=[\"']?(?:https?:)?//|<link[^>]+href=[\"']?(?:https?:)?//", re.IGNORECASE
    )
    pages = [*site.rglob("*.html")]
    assert len(pages) > 80
    assert [page.name for page in pages if loads.search(page.read_text(encoding="utf-8"))] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert re.search(r"@import|url\([\"']?(?:https?:)?//", styles) is None


def pages_with_options() -> list[tuple[str, str]]:
    return [("attacks", name) for name in names("attacks")] + [
        ("defenses", path.stem) for path in sorted((DOCS / "defenses").glob("*.md")) if path.stem in names("defenses")
    ]


def written(default: object) -> str:
    """A default as the tables have it."""
    return str(default).lower() if default is None or isinstance(default, bool) else str(default)


@pytest.mark.parametrize(("kind", "name"), pages_with_options())
def test_tables_of_options_are_those_of_the_program(kind: str, name: str) -> None:
    text = (DOCS / kind / f"{name}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", text, re.MULTILINE)
    shown = dict(reversed(rows))  # of a page with two tables the first
    known = {option.name: option.default for option in options(find(kind, name))}
    for option, default in shown.items():
        # What None stands for is told in the page's words.
        if option in known and known[option] not in (inspect.Parameter.empty, None):
            assert default in (written(known[option]), "none"), f"{name}: the page says {option} is {default}"
    if kind == "attacks":
        assert set(shown) == set(known), "a page names every option of its attack"


def plain(cells: list[str]) -> tuple[str, ...]:
    return tuple(cell.replace("`", "").replace("*", "").strip() for cell in cells)


@pytest.mark.parametrize(
    "page", [*sorted((DOCS / "defenses").glob("*.md")), *sorted((DOCS / "attacks").glob("*.md"))], ids=lambda p: p.stem
)
def test_measured_rows_stand_in_the_results(page: Path) -> None:
    """A number is copied with its row, so that the results cannot change without the pages that quote them."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in (DOCS / "results").glob("*.json")]
    rows = {plain(row) for tables in files if isinstance(tables, list) for table in tables for row in table["rows"]}
    known = rows | {row[1:] for row in rows}
    _, _, measured = page.read_text(encoding="utf-8").partition("\n## Measured\n")
    for row in NUMBERED.findall(measured.partition("\n## ")[0]):
        cells = plain(row.strip("| ").split(" | "))
        assert cells in known or cells[1:] in known, f"{page.name}: not in the results: {row}"
