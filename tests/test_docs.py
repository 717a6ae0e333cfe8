"""The code that the documentation shows runs, and the names that it shows exist."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from unpoison import models
from unpoison.models import ExtractiveReader, FakeEncoder

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NEEDS_A_MODEL = (
    *("OpenAIGenerator", "AnthropicGenerator", "TransformersGenerator"),
    *("CrossEncoderNLI", "HlatrScorer", "minilm", "my_llm"),
)


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


SHOWN = [pytest.param(page, code, id=f"{page.stem}-{i}") for page in PAGES for i, code in enumerate(blocks(page))]


@pytest.mark.parametrize(("page", "code"), SHOWN)
def test_every_name_that_is_imported_exists(page: Path, code: str) -> None:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                assert hasattr(importlib.import_module(node.module), name.name), f"{page.name} imports {name.name}"


@pytest.mark.parametrize(("page", "code"), [p for p in SHOWN if not any(n in str(p.values[1]) for n in NEEDS_A_MODEL)])
def test_what_needs_no_model_runs(page: Path, code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {
        "query": "where do the sharks play",
        "passages": ["The Sharks play at the SAP Center.", "The arena opened in 1993.", "Sharks swim in the sea."],
        "generator": ExtractiveReader(),
        "encoder": FakeEncoder(),
    }
    exec(compile(code, str(page), "exec"), names)  # noqa: S102  our own documentation


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_every_model_string_of_the_documentation_is_known() -> None:
    text = (ROOT / "docs" / "models.md").read_text()
    for name in ("lexical", "minilm"):
        assert f"`{name}`" in text
        assert models.load_encoder
