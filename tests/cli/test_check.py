"""`unpoison check` on folders, files and a running system."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.check.corpus import write_documents
from lab.check.rag_server import serve_rag
from unpoison.cli.check import COUNTS, _gate
from unpoison.core.passages import Passage
from unpoison.errors import OptionError
from unpoison.sources.sources import Sources
from unpoison.utils.extras import install_command

Run = Callable[..., Any]

QUICK = ("--no-reader", "--questions", 1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_documents(tmp_path / "docs")


def test_a_folder_to_tables_a_policy_and_a_page(run: Run, folder: Path) -> None:
    result = run("check", "docs", *QUICK, "--report", "check.html", "--policy", "known.yaml")
    assert result.exit_code == 0, result.stderr
    shown = result.stdout
    assert shown.splitlines()[1].startswith("Worst case behind the recommendation: ")
    assert "a prompt injection" in shown
    assert 'Guard(sources="known.yaml")' in shown
    assert "5. Remaining risk" in shown
    assert yaml.safe_load(Path("known.yaml").read_text())["known"] == ["docs/**", f"{folder}/**"]
    assert "Check of your documents" in Path("check.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in folder.parent.iterdir()) == ["check.html", "docs", "known.yaml"]


@pytest.mark.parametrize("absolute", [False, True])
def test_the_policy_of_one_file_knows_the_file(run: Run, folder: Path, absolute: bool) -> None:
    file = next(path.relative_to(folder.parent) for path in folder.rglob("leave*.md"))
    result = run("check", file.resolve() if absolute else file, *QUICK, "--policy", "known.yaml")
    assert result.exit_code == 0, result.stderr
    names = [file.resolve().as_posix()] if absolute else [file.as_posix(), file.resolve().as_posix()]
    assert yaml.safe_load(Path("known.yaml").read_text())["known"] == names
    passages = [Passage("x", source=name) for name in names]
    levels = [one.level for one in Sources("known.yaml").standings("", passages)]
    assert levels == ["known"] * len(names)


def test_the_policy_of_a_folder_knows_it_where_its_sources_are_listed(run: Run, folder: Path) -> None:
    run("check", "docs", *QUICK, "--policy", "known.yaml")
    listed = run("sources", "list", "docs", "--policy", "known.yaml", "--json")
    assert {tuple(row["levels"]) for row in map(json.loads, listed.stdout.splitlines())} == {("known",)}


def test_rows_from_standard_input_as_json(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "Backups are kept for 90 days."
    rows = "".join(json.dumps({"text": text, "source": f"https://a.example/{i}"}) + "\n" for i in range(2))
    row = json.loads(run("check", "-", *QUICK, "--json", given=rows).stdout)
    assert yaml.safe_load(row["policy"])["known"] == ["a.example"]
    assert row["code"].startswith("from unpoison import Guard")


def test_files_that_cannot_be_read_are_named_and_the_others_checked(run: Run, folder: Path) -> None:
    for number in range(7):
        (folder / f"{number}.png").write_bytes(b"\x89PNG")
    os.symlink("nowhere.md", folder / "a.md")
    result = run("check", "docs", *QUICK, "--ignore", "0.png")
    assert "'docs': 1.png: files of type '.png' are not read" in result.stderr
    assert "7 of 11 documents were not read" in result.stdout
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("http://127.0.0.1:1", "cannot reach '127.0.0.1:1'"),
        ("http://192.0.2.1/ask", "--i-may-test 192.0.2.1"),
        ("missing", "No such file"),
        ("empty", "holds no documents"),
        ("docs", "are for a running system; give its address"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence_and_leaves_nothing(
    run: Run, folder: Path, source: str, words: str
) -> None:
    Path("empty").mkdir()
    before = sorted(path.name for path in folder.parent.iterdir())
    result = run("check", source, *(("--plant",) if source == "docs" else ()), "--no-reader")
    assert (result.exit_code, words in result.stderr.splitlines()[-1]) == (2, True), result.stderr
    assert result.stdout == ""
    assert sorted(path.name for path in folder.parent.iterdir()) == before


def test_a_running_system_is_asked_and_with_consent_planted_into(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with serve_rag() as rag:
        asked = run("check", rag.url, *QUICK)
        assert asked.exit_code == 0, asked.stderr
        assert "planted: nothing" in " ".join(asked.stdout.split())
        assert rag.planted == []
        result = run("check", rag.url, *QUICK, "--plant", "--report", "check.html")
        assert result.exit_code == 0, result.stderr
        assert "your system answers with the lie" in " ".join(result.stdout.split())
        assert len(rag.documents) == 3
        page = Path("check.html").read_text(encoding="utf-8")
        assert f"{len(rag.planted)} documents, all removed again" in page


def test_a_command_to_paste_is_never_wrapped(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    (tmp_path / "leave.md").write_text("Every employee has 35 days of annual leave.")
    assert "by source: leave out --no-reader" in run("check", tmp_path, *QUICK).stdout
    monkeypatch.setattr("unpoison.check.page.best_reader", lambda: "extractive")
    assert install_command("reader") in run("check", tmp_path, *QUICK).stdout


def test_where_no_question_can_be_made_nothing_is_said_to_be_attacked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mill.md").write_text("The mill is open.")
    shown = run("check", tmp_path, *QUICK)
    assert (shown.exit_code, "3. Attacks: None was tried." in shown.stdout) == (1, True)
    assert "what is planted" not in shown.stdout


def test_what_contradicts_itself_comes_first_and_gates_see_it(run: Run, tmp_path: Path) -> None:
    texts = {
        "leave": "Leave.\nEmployees have 28 days of annual leave.",
        "hr": "Every employee has 35 days of annual leave.",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.md").write_text(text)
    shown = run("check", tmp_path, *QUICK, "--fail-if", "contradictions > 0")
    assert (shown.exit_code, "failed: contradictions > 0" in shown.stderr) == (1, True)
    assert "1. Contradictions: 1 pair of sentences" in shown.stdout
    assert "leave.md, line 2: Employees have 28 days" in " ".join(shown.stdout.split())
    first, *rest = (line for line in shown.stdout.splitlines() if line.startswith("# "))
    assert yaml.safe_load("\n".join((first, *rest))) is None
    assert run("check", tmp_path, *QUICK, "--alert").exit_code == 3
    assert "such as 'flagged > 0'" in run("check", tmp_path, "--fail-if", "asr > 1").stderr


@pytest.mark.parametrize(
    ("text", "name", "bound"),
    [
        ("flagged > 0", "flagged", 0.0),
        (" contradictions>12 ", "contradictions", 12.0),
        ("reached > 5%", "reached", 0.05),
        ("reached > 0.5 %", "reached", 0.005),
        ("unread > 123456789", "unread", 123456789.0),
    ],
)
def test_a_gate_is_a_count_and_the_most_that_is_allowed(text: str, name: str, bound: float) -> None:
    assert _gate(text) == (text, name, bound)
    assert name in COUNTS


@pytest.mark.parametrize("text", ["", "flagged", "flagged >= 0", "flagged < 1", "flagged > -1", "flagged > 1234567890",
                                  "reached > 5%%", "flags > 0", "flagged > 0 0", "flagged > 1."])  # fmt: skip
def test_what_is_no_gate_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="counts: flagged, contradictions, unread, reached"):
        _gate(text)
