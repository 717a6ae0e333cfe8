"""Markdown reports and the leaderboard, read as the documentation site reads them: no text becomes markup."""

from __future__ import annotations

import re

import pytest
from markdown import markdown as html_of

from hostile_texts import LINK, PAYLOAD, Page, hostile
from unpoison.bench.arena.leaderboard import badge, markdown, picture, text_table
from unpoison.bench.report.exports import markdown_code, markdown_table, markdown_text
from unpoison.report.document import Table


def result() -> dict:
    """What somebody may have sent for the leaderboard: the name is checked where a file is read, nothing else is."""
    entry = {name: hostile(name) for name in ("defense", "encoder", "about", "seen")}
    score = {"clean lost": {"mean": 0.1, "worst": 0.2}, "published left": {"mean": 0.1, "worst": 0.2}}
    tables = {"own": {hostile("task"): {"1": {"value": 0.5}}}}
    return {
        "entry": {"name": "short", **entry},
        "made": {"date": hostile("date")},
        "digest": "",
        "size": "quick",
        "absent": {hostile("missing"): f"because\x1b[2J {LINK}"},
        "tracks": {"screening": {"score": {"own": score}, "tables": tables}},
    }


EXTENSIONS = ["tables", "attr_list", "md_in_html", "admonition", "toc", "pymdownx.details", "pymdownx.superfences"]
"""What the documentation site reads Markdown with."""


def test_the_leaderboard_as_the_site_shows_it() -> None:
    text = html_of(markdown([result()], "# Arena", "#picture"), extensions=EXTENSIONS)
    ours = r'<img alt="[^"<>]*" src="#picture" ?/>| style="text-align: right;"'
    page = Page(re.sub(ours, "", text))
    assert page.wrong == []
    for field in ("defense", "encoder", "about", "seen", "date", "task"):
        assert f"{field}-field x{{{{7" in page.words
    assert Page(picture([result()])).wrong == Page(badge(result())).wrong == []
    assert "\x1b" not in text_table([result()])


@pytest.mark.parametrize(
    "words",
    [
        PAYLOAD,
        f"[go]({LINK})",
        f"![go]({LINK})",
        f"[go][it] [it]: {LINK}",
        f"[go]: {LINK}",
        f"<{LINK}>",
        "title { onclick=alert(1) }",
        "*word*{: onclick=alert(1) }",
        "a | b | <img src=x>",
        r"\[go](javascript:1) \\[go](javascript:1) \` \\` \{",
        "`` ` ``<img src=x>`",
        f"line\n\n[go]: {LINK}\n\n<script>alert(1)</script>",
    ],
)
def test_markdown_reports(words: str) -> None:
    table = markdown_table(Table(words, ("name", words), ((words, words), ("b", "c"))))
    line = f"{markdown_text(words)}\n\n- {markdown_text(words)}\n- go [go] [it]\n\n## {markdown_text(words)}"
    code = f"| a | b |\n| --- | --- |\n| {markdown_code(words)} | {markdown_code(words)} |"
    page = Page(html_of("\n\n".join((table, line, code)), extensions=EXTENSIONS))
    assert page.wrong == []
    assert "x49x" not in page.words
