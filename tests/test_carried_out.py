"""Pages that say "do this, then that": they are done, in order, in an empty folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from documents import ROOT, blocks, carry_out

PAGES = [
    ROOT / "docs" / "data.md",
    ROOT / "docs" / "quickstart.md",
    ROOT / "docs" / "sources.md",
    *sorted((ROOT / "docs" / "extending").glob("*.md")),
]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_what_the_page_says_works(page: Path, tmp_path: Path) -> None:
    assert carry_out(page, tmp_path), "a page without a command needs no test"


def test_every_row_of_the_data_page_fits_the_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "src" / "unpoison" / "data" / "rows.schema.json").read_text())
    rows = [
        json.loads(line)
        for block in blocks(ROOT / "docs" / "data.md")
        if block.language == "json" and block.title != "corpus.jsonl"
        for line in block.text.splitlines()
    ]
    assert len(rows) >= 5
    for row in rows:
        jsonschema.Draft202012Validator(schema).validate(row)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_shows_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    unshown = list[str]()
    assert carry_out(page, tmp_path, unshown)
    assert not unshown, f"{page.name} shows nothing of what these print"
