"""`unpoison redteam init` and `check`: three questions or a description, and a few lines about what was understood."""

from __future__ import annotations

import json

import pytest
import yaml

from bench.incident.test_languages import WORLDS
from bench.redteam.running_system import TRUTH, RunningSystem, serve_system
from bench.redteam.test_starter import FASTAPI

QUESTION = "When was the town hall of Alderbridge built?"


@pytest.fixture
def system():
    with serve_system() as running:
        yield running


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = {"question": QUESTION, "correct_answers": ["1200"], "incorrect_answers": ["1600"]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(row) + "\n")
    return tmp_path


def test_three_questions_then_a_check_then_a_test(run, system: RunningSystem, folder):
    url = system.url
    result = run("redteam", "init", given=f"{url}/ask\n{url}/documents\n\n")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count("The URL that") == 3
    assert f"[{url}/documents/{{id}}]" in result.stderr
    text = (folder / "redteam.yaml").read_text()
    text = text.replace("metadata:\n        canary:", "mark:").replace("$.id", "$.ids[*]")
    assert "mark: '{canary}'" in text
    (folder / "redteam.yaml").write_text(text + "wait: {seconds: 0}\nrehearse: false\n")
    shown = run("redteam", "check", "redteam.yaml")
    assert (shown.exit_code, "nobody can see whether a document is gone" in shown.stderr) == (1, True)
    assert [line.split(":")[0] for line in shown.stdout.splitlines()] == ["ask", "reads", "plant", "read", "remove"]
    assert TRUTH in shown.stdout
    assert not list(folder.glob("*.journal"))
    assert run("redteam", "redteam.yaml", "--json").exit_code == 0
    assert system.documents == {"town-0": TRUTH}


def test_a_system_that_describes_itself_asks_nothing(run, system: RunningSystem, folder):
    system.described = FASTAPI
    result = run("redteam", "init", system.url, "-o", "mine.yaml", "--questions", "q.jsonl")
    assert result.exit_code == 0, result.stderr
    written = yaml.safe_load((folder / "mine.yaml").read_text())
    assert written["target"]["ask"]["url"] == f"{system.url}/api/ask"
    assert written["questions"] == "q.jsonl"
    assert f"ask: POST {system.url}/api/ask -> $.answer, $.sources[*].page_content" in result.stdout
    assert "next: unpoison redteam check mine.yaml" in result.stderr


def test_a_description_without_an_upload_leaves_two_questions(run, system: RunningSystem, folder):
    paths = {"/api/ask": FASTAPI["paths"]["/api/ask"]}
    (folder / "openapi.json").write_text(json.dumps({**FASTAPI, "paths": paths, "servers": [{"url": system.url}]}))
    result = run("redteam", "init", "openapi.json", given=f"{system.url}/documents\n{system.url}/remove\n")
    assert result.exit_code == 0, result.stderr
    target = yaml.safe_load((folder / "redteam.yaml").read_text())["target"]
    assert target["ask"]["body"]["query"] == "{question}"
    assert target["remove"] == {"url": f"{system.url}/remove", "body": {"id": "{id}"}}


def test_a_chat_endpoint_is_asked_by_its_preset(run, system: RunningSystem, folder):
    url = f"{system.url}/v1/chat/completions"
    result = run("redteam", "init", url, "--model", "m", given=f"{system.url}/documents\n\n")
    assert result.exit_code == 0, result.stderr
    assert yaml.safe_load((folder / "redteam.yaml").read_text())["target"]["ask"] == {
        "preset": "openai",
        "url": url,
        "model": "m",
    }


def test_what_cannot_be_used_is_a_sentence_and_nothing_is_written(run, system: RunningSystem, folder):
    for where, sentence in (
        ("nothing.json", "cannot be read"),
        (system.url, "status 404"),
        ("http://192.0.2.7", "--i-may-test 192.0.2.7"),
    ):
        result = run("redteam", "init", where)
        assert (result.exit_code, sentence in result.stderr) == (2, True), result.stderr
    assert not (folder / "redteam.yaml").exists()
    (folder / "redteam.yaml").write_text("mine")
    assert "--force to write over it" in run("redteam", "init", f"{system.url}/ask").stderr
    assert (folder / "redteam.yaml").read_text() == "mine"


@pytest.mark.parametrize("language", WORLDS)
def test_init_check_and_run_in_other_languages(run, system: RunningSystem, folder, language: str):
    question, right, wrong, clean, _ = WORLDS[language]
    row = {"question": question, "correct_answers": [right], "incorrect_answers": [wrong]}
    (folder / "fragen.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    truth = next(iter(clean.values()))
    system.documents = {"town-0": f"{question} {truth}"}
    given = f"{system.url}/ask\n{system.url}/documents\n\n"
    result = run("redteam", "init", "--questions", "fragen.jsonl", given=given)
    assert result.exit_code == 0, result.stderr
    text = (folder / "redteam.yaml").read_text().replace("metadata:\n        canary:", "mark:")
    text = text.replace("$.id", "$.ids[*]")
    text = text.replace("answer: $.answer", 'answer: $.answer\n    ids: "$.passages[*].id"')
    (folder / "redteam.yaml").write_text(text + "wait: {seconds: 0.2, every: 0.05}\nrehearse: false\n")
    shown = run("redteam", "check", "redteam.yaml")
    assert shown.exit_code in (0, 1), shown.stderr
    assert question[:20] in shown.stdout
    done = run("redteam", "redteam.yaml", "--json")
    assert done.exit_code == 0, done.stderr
    clean_trial, attacked = json.loads(done.stdout)["trials"]
    assert clean_trial["answer"].endswith(truth)
    assert attacked["read"] == 1
    assert list(system.documents) == ["town-0"]


def test_a_check_without_questions_says_how_to_have_one(run, system: RunningSystem, folder):
    result = run("redteam", "init", given=f"{system.url}/ask\n{system.url}/documents\n\n")
    assert result.exit_code == 0, result.stderr
    (folder / "questions.jsonl").unlink(missing_ok=True)
    shown = run("redteam", "check", "redteam.yaml")
    assert shown.exit_code == 2
    assert "a question with --question; 'unpoison questions' makes some from your documents" in shown.stderr
