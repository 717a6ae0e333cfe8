"""The lines that are shown run, whatever the policy's path."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from unpoison.bench.check.snippets import FRAMEWORKS, installed_framework, snippet


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("path", ["docs.check/sources.yaml", 'a "b" \\ {c}\n.yaml'])
def test_every_snippet_is_python_and_names_the_policy(framework: str, path: str) -> None:
    tree = ast.parse(snippet(framework, path, reader=False))
    assert path in [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]


def test_the_plain_lines_screen(tmp_path: Path) -> None:
    policy = tmp_path / "sources.yaml"
    policy.write_text("origin: domain\nknown: ['docs/**']\n")
    names: dict[str, Any] = {"question": "How long?", "passages": [{"text": "90 days.", "source": "docs/a.md"}]}
    exec(snippet("python", str(policy), reader=False), names)  # noqa: S102  our own lines
    assert names["texts"] == ("90 days.",)


@pytest.mark.needs("langchain_core")
def test_the_lines_for_langchain_screen(tmp_path: Path) -> None:
    from langchain_core import documents, runnables

    policy = tmp_path / "sources.yaml"
    policy.write_text("origin: domain\nknown: ['docs/**']\n")
    found = [documents.Document("90 days.", metadata={"source": "docs/a.md"})]
    names: dict[str, Any] = {"retriever": runnables.RunnableLambda(lambda question: found)}
    exec(snippet("langchain", str(policy), reader=False), names)  # noqa: S102  our own lines
    assert names["retriever"].invoke("How long?") == found


def test_some_framework_is_always_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_framework() in FRAMEWORKS
    monkeypatch.setattr("unpoison.bench.check.snippets._is_installed", lambda module: module == "unpoison")
    assert installed_framework() == "python"
