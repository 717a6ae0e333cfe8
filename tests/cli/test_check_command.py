"""`unpoison check` on folders and files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import documents
from bench.check.corpus import write_documents
from bench.check.rag_server import serve_rag
from unpoison.bench.check import Check
from unpoison.bench.redteam.http_target import HttpTarget
from unpoison.bench.redteam.targets import Answered

Run = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_documents(tmp_path / "docs")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured; the scan found nothing."""

    def run(check: Check, progress: object) -> None:
        check._keep("scan", {"flagged": [], "worst": []})

    monkeypatch.setattr(Check, "run", run)


def test_a_folder_to_tables_a_policy_and_a_page(run: Run, folder: Path) -> None:
    arguments = ("check", "docs", "--no-reader", "--questions", 1, "--workers", 1, "--framework", "python")
    result = run(*arguments, "--report", "check.html")
    assert result.exit_code == 0, result.stderr
    shown = result.stdout
    assert shown.splitlines()[1].startswith("Worst case behind the recommendation: ")
    assert "a prompt injection" in shown
    assert '    guard = Guard(sources="docs.check/sources.yaml")\n' in shown
    assert "5. What remains open:" in shown
    assert yaml.safe_load(Path("docs.check/sources.yaml").read_text())["known"] == ["docs/**", f"{folder}/**"]
    assert "Check of your documents" in Path("check.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in folder.parent.iterdir()) == ["check.html", "docs", "docs.check"]
    assert Path("docs.check").stat().st_mode & 0o077 == 0

    again = run(*arguments, "--json")
    assert "going on with what is kept in docs.check" in again.stderr
    row = json.loads(again.stdout)
    assert row["headline"] in " ".join(shown.split())
    assert row["code"].startswith("from unpoison import Guard")


@pytest.mark.usefixtures("quick")
def test_a_policy_that_somebody_changed_is_left_as_it_is(run: Run, folder: Path) -> None:
    run("check", "docs", "--no-reader")
    Path("docs.check/sources.yaml").write_text("trusted: [docs/hr/**]\n")
    result = run("check", "docs", "--no-reader", "--policy", "other.yaml")
    assert "known" in Path("other.yaml").read_text()
    result = run("check", "docs", "--no-reader")
    assert "was left as it is" in result.stderr
    assert Path("docs.check/sources.yaml").read_text() == "trusted: [docs/hr/**]\n"


@pytest.mark.usefixtures("quick")
def test_without_state_nothing_is_left_and_the_policy_is_shown(run: Run, folder: Path) -> None:
    result = run("check", "docs", "--no-reader", "--state", "off")
    assert "- docs/**" in result.stdout
    assert [path.name for path in folder.parent.iterdir()] == ["docs"]
    assert result.exit_code == 1, "nothing was asked"


def test_control_c_shows_what_there_is(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(check: Check, progress: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Check, "run", stop)
    result = run("check", "docs", "--no-reader")
    assert result.exit_code == 130
    assert "interrupted; what was measured is kept in docs.check" in result.stderr
    assert "The check was interrupted" in result.stdout
    assert "What to put in" not in result.stdout, "there is no policy yet"
    assert not Path("docs.check/sources.yaml").exists()


@pytest.mark.usefixtures("quick")
def test_rows_and_files_that_cannot_be_read_are_named_and_the_others_checked(run: Run, folder: Path) -> None:
    for number in range(7):
        (folder / f"{number}.png").write_bytes(b"\x89PNG")
    os.symlink("nowhere.md", folder / "a.md")
    result = run("check", "docs", "--no-reader", "--state", "off")
    assert "'docs': 0.png: a file of the kind '.png' is not read" in result.stderr
    assert "'docs': and 3 more could not be read" in result.stderr
    assert "4 documents, 8 could not be read" in result.stdout
    assert result.exit_code == 1


@pytest.mark.usefixtures("quick")
def test_files_that_are_no_documents_are_left_out(run: Run, folder: Path) -> None:
    (folder / "a.png").write_bytes(b"\x89PNG")
    result = run("check", "docs", "--no-reader", "--state", "off", "--ignore", "*.png")
    assert result.stderr == ""
    assert "4 documents." in result.stdout


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("http://127.0.0.1:1", "nothing listens on '127.0.0.1:1' (port 1)"),
        ("http://192.0.2.1/ask", "--i-may-test 192.0.2.1"),
        ("missing", "No such file"),
        ("empty", "holds no documents"),
        ("pictures", "holds nothing that can be read: a.png: a file of the kind '.png' is not read"),
        ("rows.jsonl", "holds nothing that can be read: row 1: no usable JSON"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence_and_leaves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("pictures").mkdir()
    Path("pictures/a.png").write_bytes(b"\x89PNG")
    Path("rows.jsonl").write_text("not json\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    result = run("check", source, "--no-reader")
    assert result.exit_code == 2
    assert words in result.stderr.splitlines()[-1]
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_running_system_is_asked_and_with_consent_planted_into(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--no-reader", "--questions", 1, "--workers", 1, "--framework", "python")
    with serve_rag() as rag:
        asked = run("check", rag.url, *options)
        assert asked.exit_code == 0, asked.stderr
        assert "planted: nothing" in " ".join(asked.stdout.split())
        assert "without a defense → behind the recommendation" in " ".join(asked.stdout.split())
        assert rag.planted == []

        result = run("check", rag.url, *options, "--plant", "--report", "check.html")
        assert result.exit_code == 0, result.stderr
        shown = " ".join(result.stdout.split())
        assert f"planted: {len(rag.planted)} documents, all removed again" in shown
        assert "your system answers with the lie" in shown
        assert len(rag.documents) == 3
        page = Path("check.html").read_text(encoding="utf-8")
        assert "Check of your system" in page
        assert f"{len(rag.planted)} documents, all removed again" in page

        known = len(rag.asked)
        row = json.loads(run("check", rag.url, *options, "--plant", "--json").stdout)
        assert row["system"]["planted"] == len(rag.planted)
        assert len(rag.asked) == known + 1, "everything was measured; it is asked once to see that it is there"


def test_ctrl_c_in_a_running_system_says_that_nothing_is_left(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def stop(target: HttpTarget, question: str) -> Answered:
        raise KeyboardInterrupt

    with serve_rag() as rag:
        run("check", rag.url, "--no-reader", "--questions", 1, "--workers", 1)
        monkeypatch.setattr(HttpTarget, "ask", stop)
        result = run("check", rag.url, "--no-reader", "--questions", 1, "--workers", 1, "--plant")
        assert len(rag.planted) == 1
        assert len(rag.documents) == 3
    assert result.exit_code == 130
    assert "interrupted; what was measured is kept in unpoison-" in result.stderr
    assert "may remain" not in result.stderr


@pytest.mark.parametrize("option", [("--plant",), ("--ask", "How long?"), ("--model", "m"), ("--i-may-test", "h")])
def test_options_of_a_running_system_are_refused_for_documents(run: Run, folder: Path, option: tuple[str, ...]) -> None:
    result = run("check", "docs", *option)
    assert result.exit_code == 2
    assert "are for a running system; give its address" in result.stderr


@pytest.mark.usefixtures("quick")
def test_rows_from_standard_input(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(
        json.dumps({"text": "Backups are kept for 90 days.", "source": f"https://a.example/{i}"}) + "\n"
        for i in range(2)
    )
    result = run("check", "-", "--no-reader", "--state", "off", given=rows)
    assert "- a.example" in result.stdout


@pytest.mark.seeded
def test_the_page_shows_what_its_example_prints(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    blocks = documents.blocks(documents.ROOT / "docs" / "check.md")
    for block in blocks:
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text, encoding="utf-8")
    (command,) = [block for block in blocks if block.printed]
    result = run(*command.text.split()[1:], "--workers", 1)
    assert documents.prints_as_shown(result.stdout, command.printed), result.stdout
