"""Markdown reports, read as the documentation site reads them: no text becomes markup."""

from __future__ import annotations

import pytest
from markdown import markdown as html_of

from hostile_texts import LINK, PAYLOAD, Page
from unpoison.bench.report.exports import markdown_code, markdown_table, markdown_text
from unpoison.report.document import Table

pytestmark = pytest.mark.needs("pymdownx")

EXTENSIONS = ["tables", "attr_list", "md_in_html", "admonition", "toc", "pymdownx.details", "pymdownx.superfences"]
"""What the documentation site reads Markdown with."""


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
