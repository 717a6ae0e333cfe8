"""The page of a scan in headless Chromium: keys decide, decisions stay, and the export is what quarantine reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chromium import found_browser, opened
from scan.corpora import honest, planted
from unpoison.scan import scan
from unpoison.scan.quarantine import read_decisions
from unpoison.scan.report import page

pytestmark = pytest.mark.browser


def test_decisions_are_made_by_keys_and_exported(tmp_path: Path) -> None:
    browser = found_browser()
    path = tmp_path / "work.html"
    path.write_text(page(scan([*honest(15), *planted()]), "documents"), encoding="utf-8")
    (tmp_path / "profile").mkdir()
    with opened(browser, path.as_uri(), tmp_path / "profile") as tab:
        first = tab.evaluate("idOf(document.querySelector('article'))")
        key = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '%s', bubbles: true}))"
        tab.evaluate("document.querySelector('article').focus()")
        tab.evaluate(key % "q")
        tab.evaluate(key % "j")
        tab.evaluate(key % "k")
        assert tab.evaluate("document.getElementById('progress').textContent").startswith("2 of ")
        exported = tab.evaluate("exported()")
        tab.call("Emulation.setEmulatedMedia", media="print")
        assert tab.evaluate("getComputedStyle(document.querySelector('article pre')).maxHeight") == "none"
    (tmp_path / "decisions.json").write_text(exported)
    assert [row["decision"] for row in json.loads(exported)["decisions"]] == ["quarantine", "keep"]
    assert read_decisions(tmp_path / "decisions.json") == [first]
