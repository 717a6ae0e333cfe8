"""Pages that say "do this, then that": they are done, in order, in an empty folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


@pytest.mark.needs("jsonschema")
def test_every_row_of_the_data_page_fits_the_schema() -> None:
    import jsonschema

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


LIBRARIES = {
    "protect-a-chatbot": "langchain_chroma",
    "protect-llamaindex": "llama_index.core",
    "protect-haystack": "haystack",
    "protect-openai": "openai",
    "protect-an-agent": "mcp",
}
"""What a tutorial is about, which has to be installed."""


def tutorial(page: Path) -> Any:
    packages = [LIBRARIES[page.stem]] if page.stem in LIBRARIES else []
    return pytest.param(page, id=page.stem, marks=pytest.mark.needs(*packages))


@pytest.mark.slow
@pytest.mark.parametrize("page", [tutorial(page) for page in TUTORIALS])
def test_a_tutorial_shows_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    unshown = list[str]()
    assert carry_out(page, tmp_path, unshown)
    assert not unshown, f"{page.name} shows nothing of what these print"


def test_the_examples_are_those_of_the_tutorials() -> None:
    """What a tutorial shows is what stands in `examples/`, to the letter."""
    shown = [block for page in TUTORIALS if page.stem in LIBRARIES for block in blocks(page) if block.title]
    assert len(shown) == 7
    for block in shown:
        assert (ROOT / "examples" / block.title).read_text(encoding="utf-8") == block.text
