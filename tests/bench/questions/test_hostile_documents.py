"""Collections of strangers: no file of theirs stops the reading."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from effort import effort
from unpoison.bench.questions.documents import read_documents


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="NO NAMED PIPES ON THIS SYSTEM")
def test_a_pipe_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Title\n\nA text of some words.\n")
    os.mkfifo(tmp_path / "b.md")
    documents, problems = read_documents(tmp_path)
    assert [document.id for document in documents] == ["a.md"]
    assert problems == ("b.md is no file and was left out",)


def test_files_of_other_kinds_are_counted(tmp_path: Path) -> None:
    for name in ("a.md", "b.docx", "c.docx", "d"):
        (tmp_path / name).write_text("# Title\n\nA text of some words.\n")
    documents, problems = read_documents(tmp_path)
    assert len(documents) == 1
    assert problems == ("3 files of other kinds were left out",)


@pytest.mark.parametrize("markup", ["<!--" * 4_000, "<a " * 4_000, "<![<!"])
def test_a_broken_page_is_read_without_trying_each_place(markup: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f"<h1>Title</h1><p>A text of some words.</p>{markup}")
    read = []
    steps = effort(lambda: read.append(read_documents(tmp_path)))
    documents, problems = read[0]
    assert [document.title for document in documents] == ["Title"]
    assert not problems
    assert steps < 15 * 4_000
