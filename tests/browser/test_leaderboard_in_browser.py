"""The leaderboard's tables in headless Chromium: a heading sorts, by key too, and only on that page."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chromium import found_browser, opened

pytestmark = pytest.mark.browser

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "site" / "sort_tables.js"
ROWS = [("b", "10.0 %", "2 / 10"), ("a", "-", "- / 5"), ("d", "9.5 %", "0 / 10"), ("c", "58.3 %", "1 / 1")]
COLUMN = "[...document.querySelectorAll('tbody tr')].map(row => row.cells[0].textContent).join('')"
SORTED = "[...document.querySelectorAll('th')].map(heading => heading.getAttribute('aria-sort'))"


def page(folder: Path) -> str:
    """A table as the site has it, at a page of this name."""
    folder.mkdir(parents=True)
    shutil.copy(SCRIPT, folder)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in ROWS)
    head = "<thead><tr><th>entry</th><th>clean <em>lost</em></th><th>both</th></tr></thead>"
    html = f"<!doctype html><meta charset=utf-8><article><table>{head}<tbody>{body}</tbody></table></article>"
    (folder / "index.html").write_text(f"{html}<script src=sort_tables.js></script>", encoding="utf-8")
    return (folder / "index.html").as_uri()


def test_headings_sort_by_number_and_by_key(tmp_path: Path) -> None:
    browser = found_browser()
    (tmp_path / "profile").mkdir()
    with opened(browser, page(tmp_path / "arena"), tmp_path / "profile") as tab:
        assert tab.evaluate("document.querySelectorAll('th button').length") == 3
        assert tab.evaluate("document.querySelectorAll('th em').length") == 1  # what a heading holds is kept
        tab.press("Tab")
        tab.press("Enter")
        assert tab.evaluate(COLUMN) == "abcd"
        tab.press("Tab")
        tab.press("Enter")
        assert tab.evaluate(COLUMN) == "dbca"  # by value, not by letter; what was not measured is last
        assert tab.evaluate(SORTED) == [None, "ascending", None]
        tab.press("Enter")
        assert tab.evaluate(COLUMN) == "cbda"
        assert tab.evaluate(SORTED) == [None, "descending", None]
        tab.press("Tab")
        tab.press("Enter")
        assert tab.evaluate(COLUMN) == "dcba"
        assert tab.complaints == []


def test_tables_of_other_pages_are_left_alone(tmp_path: Path) -> None:
    browser = found_browser()
    (tmp_path / "profile").mkdir()
    with opened(browser, page(tmp_path / "results"), tmp_path / "profile") as tab:
        assert tab.evaluate("document.querySelectorAll('button').length") == 0
        assert tab.complaints == []
