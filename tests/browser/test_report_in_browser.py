"""The report in headless Chromium, opened from disk: the drill-down works and hostile text stays text.

The page honours addresses such as report.html#outcome=poisoned&open; Chromium prints the document that its own script
made of it. A click is sent by a script of the test's, which a copy of the page is told to trust.
"""

from __future__ import annotations

import re
import subprocess
from base64 import b64encode
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest

from chromium import QUIET, found_browser
from small_run import HOSTILE, small_run
from unpoison_lab.report import Report, page

pytestmark = pytest.mark.browser

FLAGS = (*QUIET, "--virtual-time-budget=5000")


@pytest.fixture(scope="module")
def browser() -> str:
    return found_browser()


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    path = folder / "report.html"
    path.write_text(page(Report.of(small_run(folder))), encoding="utf-8")
    return path


def opened(browser: str, path: Path, profile: Path, fragment: str = "") -> str:
    """The document after the page's script has run."""
    command = [browser, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", f"{path.as_uri()}{fragment}"]
    done = subprocess.run(command, capture_output=True, timeout=300, check=True)
    return done.stdout.decode()


def trusting(path: Path, script: str, target: Path) -> Path:
    """A copy of the page that also runs a script of the test's, allowed by its hash like the page's own."""
    digest = b64encode(sha256(script.encode()).digest()).decode()
    text = path.read_text(encoding="utf-8").replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    target.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    return target


def shown(document: str) -> list[str]:
    """The questions of the list, each as its HTML."""
    listed = document[document.index('<div class="questions">') :]
    return re.findall(r'<details class="question".*?</details>', listed, re.DOTALL)


def counted(document: str) -> tuple[int, int]:
    """How many questions are found, and of how many."""
    match = re.search(r'class="found"[^>]*>(\d+) of (\d+) questions', document)
    assert match, "the page's script did not run"
    return int(match[1]), int(match[2])


def test_address_filters_and_unfolds(browser: str, html: Path, tmp_path: Path) -> None:
    document = opened(browser, html, tmp_path, "#defense=vanilla&outcome=poisoned&open")
    found, total = counted(document)
    questions = shown(document)
    assert 0 < found == len(questions) < total
    assert all("vanilla · " in question and "poison in context" in question for question in questions)
    first, *others = questions
    assert "open" in first[: first.index(">")]
    assert "kept, place 1" in first
    assert "retrieval rank 1" in first
    assert re.search(r'class="tag bad"[^>]*>poison<', first)
    assert not any("<blockquote" in question for question in others)


def test_choosing_a_filter_changes_the_list(browser: str, html: Path, tmp_path: Path) -> None:
    script = (
        "const choice = document.querySelector('select[name=outcome]');"
        "choice.value = 'failed'; choice.dispatchEvent(new Event('change'));"
        "document.querySelector('.question summary').click();"
    )
    document = opened(browser, trusting(html, script, tmp_path / "clicked.html"), tmp_path / "profile")
    questions = shown(document)
    assert counted(document)[0] == len(questions) == 1
    assert re.search(r'class="error"[^>]*>[^<]{20,}<', questions[0])


def test_hostile_text_is_shown_and_does_not_run(browser: str, html: Path, tmp_path: Path) -> None:
    document = opened(browser, html, tmp_path, "#defense=vanilla&search=onerror&open")
    assert "<title>unpoison: evaluation</title>" in document
    assert not re.search(r"<img", document)
    first = shown(document)[0]
    assert HOSTILE in unescape(first)


BROAD = (
    "[...document.querySelectorAll('table, svg, pre, li')].filter((node) => "
    "node.getBoundingClientRect().right > innerWidth + 1 || (node.tagName === 'TABLE' && "
    "node.parentElement.scrollWidth > node.parentElement.clientWidth + 1)).length"
)
