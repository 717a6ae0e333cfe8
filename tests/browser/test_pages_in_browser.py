"""Every page that is written to a file, in headless Chromium: what axe-core says, at 1280 pixels and on a phone.

`test_playground_in_browser.py` and `test_report_in_browser.py` do the same with the playground and the report.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from axe import violations
from chromium import Tab, found_browser, opened
from scan.corpora import audited, honest, planted
from scan.test_audit import week
from unpoison.scan import scan
from unpoison.scan.report import audit_page
from unpoison.scan.report import page as scan_page

pytestmark = pytest.mark.browser

PAGES: dict[str, Callable[[], str]] = {
    "scan": lambda: scan_page(scan([*honest(15), *planted()]), "documents"),
    "audit": lambda: audit_page(audited(week(random.Random(0)), top=10), "log.jsonl"),
}


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with opened(found_browser(), "about:blank", tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.mark.parametrize("name", PAGES)
def test_everybody_can_use_it(tab: Tab, name: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(PAGES[name](), encoding="utf-8")
    tab.leave()
    tab.open(path.as_uri())
    tab.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    for width, scheme in ((1280, "light"), (390, "dark")):
        tab.call("Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=False)
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        assert violations(tab) == [], (width, scheme)
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not tab.complaints
