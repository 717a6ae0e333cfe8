"""`unpoison sources` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from unpoison.cli import app
from unpoison.sources import History


def run(*arguments: str | Path, input: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)


def page(url: str, **fields: object) -> dict[str, object]:
    return {"text": f"from {url}", "url": url, **fields}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    given = [
        {"question": "who?", "passages": [page("https://www.cnn.com/1", author="ann"), page("https://cnn.com/2")]},
        {"query": "Who", "passages": [page("https://github.com/eve/x", author="eve\x1b[31m")]},
        {"query": "when?", "passages": ["text alone", page("https://cnn.com/3", author="ann")]},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in given) + "no json\n")
    return path


def test_list_says_who_is_in_the_data(rows: Path) -> None:
    result = run("sources", "list", "--json", rows)
    assert result.exit_code == 1
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"origin": "cnn.com", "passages": 3, "questions": 2, "share": 0.6},
        {"origin": "", "passages": 1, "questions": 1, "share": 0.2},
        {"origin": "github.com/eve", "passages": 1, "questions": 1, "share": 0.2},
    ]
    assert "rows.jsonl:4: " in result.stderr
    assert "2 origins in 5 passages" in result.stderr
    assert "1 of 5 passages have no source that can be read; give them 'source' or 'url'" in result.stderr
    assert "read 3 rows; 1 failed" in result.stderr


def test_list_by_author_shows_nothing_that_steers_a_terminal(rows: Path) -> None:
    result = run("sources", "list", "--origin", "field:author", rows)
    assert "author:ann" in result.stdout and "author:eve" in result.stdout and "\x1b" not in result.stdout
    assert "2 of 5 passages lack the field of field:author" in result.stderr


def test_list_reads_policies_logs_folders_and_standard_input(rows: Path, tmp_path: Path) -> None:
    policy = tmp_path / "sources.yaml"
    policy.write_text("known: [cnn.com]\ntrusted: ['https://cnn.com/3']\nblocked: ['github.com/eve']\n")
    found = run("sources", "list", "--json", "--policy", policy, rows)
    levels = {row["origin"]: row["levels"] for row in map(json.loads, found.stdout.splitlines())}
    assert levels == {"cnn.com": {"known": 2, "trusted": 1}, "github.com/eve": {"blocked": 1}, "": {"unknown": 1}}
    assert "known 2, trusted 1" in run("sources", "list", "--policy", policy, rows).stdout
    (tmp_path / "docs" / "hr").mkdir(parents=True)
    (tmp_path / "docs" / "hr" / "leave.md").write_text("14 days")
    folder = run("sources", "list", "--json", tmp_path / "docs")
    origin = f"{tmp_path}/docs/hr/"
    assert json.loads(folder.stdout) == {"origin": origin, "passages": 1, "questions": 0, "share": 1.0}
    assert run("sources", "list", "--json", tmp_path / "docs" / "hr" / "leave.md").stdout == folder.stdout
    both = run("sources", "list", "--json", rows, tmp_path / "docs").stdout
    assert [json.loads(line)["passages"] for line in both.splitlines()] == [3, 1, 1, 1]
    log = {"audit": 1, "query_hash": "q", "passages": [{"source": "https://cnn.com", "kept": True}] * 2}
    alone = run("sources", "list", "-", input=json.dumps(log))
    assert "cnn.com" in alone.stdout
    assert "nearly all passages have one origin" in alone.stderr


def test_learn_remembers_counts(rows: Path, tmp_path: Path) -> None:
    history = tmp_path / "h.db"
    result = run("sources", "learn", "--history", history, rows)
    assert result.exit_code == 1
    assert "2 origins" in result.stderr and "learned 3 rows; 1 failed" in result.stderr
    assert [(past.origin, past.questions) for past in History(history).rows()] == [
        ("cnn.com", 2),
        ("github.com/eve", 1),
    ]
    run("sources", "learn", "--history", history, rows)
    assert [past.questions for past in History(history).rows()] == [2, 1]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["list", "--origin", "page"], "origin must be domain, host, path:N"),
        (["list", "--policy", "none.yaml"], "the policy 'none.yaml' cannot be read"),
        (["learn", "--history", "h.db", "--method", "agreement"], "such as -g reader"),
        (["learn", "--history", "."], "the history of sources '.' cannot be used"),
    ],
)
def test_mistakes_are_said_in_one_sentence(options: list[str], says: str, rows: Path) -> None:
    result = run("sources", *options, rows)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and says in result.stderr


def test_list_names_the_patterns_that_match_nothing(rows: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("known: [cnn.com, docs.exmaple]\n")
    result = run("sources", "list", "--policy", policy, rows)
    assert "patterns without a match: docs.exmaple; sources are named here as https://" in result.output


def test_names_are_printed_in_their_own_letters(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "q", "passages": [{"text": "a", "source": "b\u00fcro/a.md"}]}) + "\n")
    line = run("sources", "list", "--json", path).stdout
    assert json.loads(line)["origin"] and "\\u" not in line
