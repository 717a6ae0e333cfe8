from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from cli.conftest import ROWS, lines
from meeting import Meeting
from needs import need
from unpoison.beliefs import MemoryBeliefs
from unpoison.cli.ask import _store
from unpoison.errors import ModelError
from unpoison.models.doubles import ScriptedGenerator
from unpoison.models.prompts import Prompt


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptedGenerator]:
    """Makes `-g` mean a scripted generator."""

    def model(replies: Any, **options: Any) -> ScriptedGenerator:
        generator = (Meeting if "least" in options else ScriptedGenerator)(replies, **options)
        monkeypatch.setattr("unpoison.cli.common.load_generator", lambda _: generator)
        return generator

    return model


def failing(prompt: Prompt) -> str:
    """Fails on question 2 whenever it is asked from two passages, that is, after screening."""
    if "question 2?" in prompt.text() and len(prompt.passages) == 2:
        raise ModelError("the server is on fire")
    return f"answer to {prompt.question}"


def test_json_keeps_every_field_and_adds_the_answer(run, rows_file, model):
    generator = model(lambda prompt: f"answer to {prompt.question}")
    result = run("ask", "-d", "simple", "-g", "openai:x", "--json", rows_file)
    assert result.exit_code == 0
    for row, answered in zip(ROWS, lines(result.stdout), strict=True):
        answer, screening = answered.pop("answer"), answered.pop("screening")
        assert answered.pop("generator") == "scripted"
        assert answered == row
        assert answer["text"] == f"answer to {row['question']}"
        assert answer["abstained"] is False
        assert [call["kind"] for call in answer["calls"]] == ["generate"]
        assert screening["kept"] == [1, 2]
    assert all(len(prompt.passages) == 2 for prompt in generator.prompts)


@pytest.mark.parametrize("installed", ["extractive", "reader"])
def test_without_a_generator_the_best_reader_at_hand_answers(run, rows_file, installed, monkeypatch):
    if installed == "reader":
        need("unpoison_reader")
    monkeypatch.setattr("unpoison.cli.ask.best_reader", lambda: installed)
    result = run("ask", "-d", "simple", "--json", rows_file)
    assert result.exit_code == 0
    assert {answered["generator"] for answered in lines(result.stdout)} == {installed}


def test_a_failed_row_is_reported_and_the_run_goes_on(run, rows_file, model):
    model(failing)
    result = run("ask", "-d", "simple", "-g", "openai:x", "--json", rows_file)
    assert result.exit_code == 1
    text_lines = lines(result.stdout)
    assert [row.get("error") for row in text_lines] == [None, None, "the server is on fire", None, None, None]
    assert text_lines[2] == {**ROWS[2], "error": "the server is on fire", "generator": "scripted"}
    assert f"{rows_file}:3: the server is on fire" in result.stderr
    assert result.stderr.endswith("answered with scripted: 5 rows; 1 failed\n")


def test_a_bad_row_never_stops_the_file(run, model):
    model("x")
    given = '{"query": 1}\n{"query": "q", "passages": ["a"]}\n'
    result = run("ask", "-d", "simple", "-g", "openai:x", "--json", "-", given=given)
    assert result.exit_code == 1
    assert ["error" in answered for answered in lines(result.stdout)] == [True, False]


def test_several_rows_at_once_in_order(run, rows_file, model):
    generator = model(lambda prompt: prompt.question, least=2)
    result = run("ask", "-d", "simple", "-g", "openai:x", "--rows", 3, "--json", rows_file)
    assert [answered["answer"]["text"] for answered in lines(result.stdout)] == [row["question"] for row in ROWS]
    assert 1 < generator.most_in_flight <= 3


def test_rows_share_the_model_calls_and_have_a_deadline(run, rows_file, model, monkeypatch):
    model("x")
    seen = []
    import unpoison.runtime.driver as driver

    original = driver.Limits.__post_init__
    monkeypatch.setattr(driver.Limits, "__post_init__", lambda self: (seen.append(self), original(self))[1])
    run("ask", "-d", "simple", "-g", "openai:x", "--rows", 4, "--deadline", 7, rows_file)
    assert (seen[-1].in_flight, seen[-1].deadline) == (8, 7.0)


def test_the_deadline_fails_the_row(run, rows_file, model):
    model("x", seconds=5)
    result = run("ask", "-d", "simple", "-g", "openai:x", "--deadline", 0.05, "--limit", 1, rows_file)
    assert result.exit_code == 2
    assert re.search(r"rows\.jsonl:1: no (reply|answer) within [\de.-]+ s", result.stderr)


@pytest.mark.parametrize("at_once", [1, 2])
def test_an_interrupted_file_resumes(run, rows_file, model, tmp_path, at_once):
    """Answered rows are not asked again, those that failed and those of another command are."""
    output = tmp_path / "out.jsonl"

    def answering(until: str = "") -> list[str]:
        """The questions of this run alone: a thread of an interrupted one may still finish a question."""
        asked = list[str]()

        def reply(prompt: Prompt) -> str:
            if until and f"question {until}?" in prompt.question:
                raise KeyboardInterrupt
            asked.append(prompt.question)
            return f"answer to {prompt.question}"

        model(reply)
        return asked

    def ask(*more: object) -> Any:
        return run("ask", "-d", "simple", "-g", "openai:x", "--rows", at_once, *more, "-o", output, rows_file)

    answering(until="3")
    assert "the same command goes on behind them" in ask().stderr
    assert not output.exists()
    answered = len(lines(output.with_name("out.jsonl.part").read_text()))
    assert 1 <= answered <= 3
    asked = answering()
    done = ask()
    assert f"answered with scripted: 6 rows; {answered} " in done.stderr
    assert len(asked) == 6 - answered
    assert [row["answer"]["text"][-11:] for row in lines(output.read_text())] == [row["question"][-11:] for row in ROWS]
    answering(until="5")
    ask("--guarantee", 0, "--deadline", 9)
    asked = answering()
    assert ask("--limit", 6, "--deadline", 9).exit_code == 0
    assert len(asked) < 6
    model(failing)
    assert ask().exit_code == 1
    assert lines(output.read_text())[2] == {**ROWS[2], "error": "the server is on fire", "generator": "scripted"}


def test_hostile_replies_are_text(run, rows_file, model):
    model("\x1b[2J[red]x[/] \u202eabc")
    result = run("ask", "-d", "simple", "-g", "openai:x", rows_file)
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    assert "[red]x[/]" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-g", "nonsense"], "no generator 'nonsense'"),
        (["-g", "extractive", "--nli", "lexical"], "simple takes no --nli"),
        (["-g", "extractive", "--deadline", "0"], "deadline must be positive"),
        (["-g", "extractive", "--rows", "0"], "--rows"),
        (["-g", "extractive", "--cache", "/nonexistent/x.db"], "/nonexistent/x.db"),
    ],
)
def test_user_errors(run, rows_file, arguments, message):
    result = run("ask", "-d", "simple", *arguments, rows_file)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_the_terminal_says_where_sources_disagree_and_rows_carry_it(run, model):
    model("Oslo")
    page = "The museum of the warship stands in {} and was opened to the public by the king."
    given = json.dumps({"query": "where is it", "passages": [page.format("Oslo"), page.format("Bergen\u001b[31m")]})
    result = run("ask", "-d", "guard", "-g", "openai:x", "-", given=given)
    assert "\nsources disagree: Oslo (1 passage), Bergen[31m (1)\n" in result.stdout
    (answered,) = lines(run("ask", "-d", "guard", "-g", "openai:x", "--json", "-", given=given).stdout)
    assert [rival["passages"] for rival in answered["screening"]["contested"][0]["rivals"]] == [[0], [1]]
    assert "sources disagree: Oslo" in run("screen", "-d", "guard", "-", given=given).stdout


def test_an_answer_that_is_withheld_says_why(run, tmp_path, model):
    path = tmp_path / "rows.jsonl"
    path.write_text(
        json.dumps({"query": "where is it?", "passages": ["It is in Paris.", "It is in Lyon.", "In Paris."]})
    )
    model(lambda prompt: "Lyon" if "Lyon" in prompt.text() else "Paris")
    shown = " ".join(run("ask", "-d", "vote", "-g", "openai:x", "--guarantee", 2, path).stdout.split())
    assert "an answer was withheld: it has to withstand 2 planted passages" in shown
    assert "2 passages say so" in shown
    assert "this answer" not in shown, "there is none"


@pytest.mark.parametrize(
    ("defense", "spec", "stream", "kept"),
    [
        ("radar", None, True, True),
        ("radar", None, False, False),
        ("guard", None, True, False),
        ("radar:beliefs=redis://x", None, True, False),
        ("guard", "memory", False, True),
    ],
)
def test_a_stream_of_radar_remembers_in_memory(defense: str, spec: str | None, stream: bool, kept: bool) -> None:
    store = _store(defense, spec, stream=stream)
    assert isinstance(store, MemoryBeliefs) is kept
    assert kept or store is None


@pytest.mark.parametrize(("name", "copies"), [("extractive", True), ("openai:x", False)])
def test_who_gets_an_answer_that_is_copied_is_told(run, rows_file, model, name, copies):
    if not copies:
        model("x")
    result = run("ask", "-d", "simple", "-g", name, "--limit", 1, rows_file)
    assert (f"note: {name} is not a language model" in result.stderr) is copies


def test_without_a_defense_it_is_guard_and_with_a_guarantee_one_that_proves(run, rows_file, model):
    model("x")
    for options, kept in (((), 3), (("--guarantee", 1), 3)):
        (row,) = lines(run("ask", "-g", "openai:x", *options, "--limit", 1, "--json", rows_file).stdout)
        assert row["screening"]["defense"] == "guard"
        assert len(row["screening"]["kept"]) == kept
        assert (row["answer"]["guarantee"] is None) is not bool(options)
    for arguments, said in (
        (("-d", "simple", "--guarantee", 1), "--guarantee"),
        (("--stream", "--rows", 2, "-d", "radar"), "leave out --rows"),
    ):
        result = run("ask", "-g", "openai:x", *arguments, rows_file)
        assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
