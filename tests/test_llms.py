"""The list of pages for assistants."""

from __future__ import annotations

import re

from documents import ROOT


def test_every_link_of_the_list_leads_to_a_page() -> None:
    text = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# unpoison\n\n> ")
    links = re.findall(r"\]\(https://github\.com/unpoison/unpoison/blob/main/([^)#]+)\)", text)
    assert len(links) > 15
    assert [link for link in links if not (ROOT / link).is_file()] == []
