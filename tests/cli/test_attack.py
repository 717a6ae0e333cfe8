import json
import shlex

import pytest

from cli.conftest import lines


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_questions_without_a_wrong_answer_show_no_empty_table(run, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"id": "a", "query": "who", "correct_answers": ["Ada"], "passages": ["Ada."]}) + "\n")
    result = run("attack", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "has no incorrect answer" in result.stderr


def test_every_attack_is_listed(run):
    result = run("attack", "--list")
    assert result.exit_code == 0
    for name in ("poisonedrag", "hotflip", "published", "garag", "kind=override"):
        assert name in result.stdout


def test_rows_in_the_shared_format(run):
    result = run("attack", "-a", "poisonedrag", "--count", 2, "--limit", 2, "--json", "sample")
    assert result.exit_code == 0
    first, second = lines(result.stdout)
    assert [passage["label"] for passage in first["passages"][:3]] == ["poison", "poison", "gold"]
    assert [passage["rank"] for passage in first["passages"]] == list(range(1, 11))
    assert first["passages"][0]["attack"] == "poisonedrag"
    assert first["passages"][0]["text"].startswith(first["question"] + ".")
    assert first["incorrect_answers"] == ["Gothenburg"]
    assert (first["planted"]["texts"], first["planted"]["in_context"], first["planted"]["reached"]) == (2, 2, 2)
    assert second["id"] == "sample-02"
    assert "planted 4 texts for 2 questions" in result.stderr


def test_the_file_can_be_screened_and_evaluated(run, tmp_path):
    run("attack", "-a", "pia", "--count", 2, "--limit", 3, "sample", "-o", "out.jsonl")
    screened = run("screen", "-d", "trustrag", "--json", "out.jsonl")
    assert screened.exit_code == 0
    evaluated = run("evaluate", "-a", "published", "--poisons", 2, "-d", "trustrag", "--json", "out.jsonl")
    assert evaluated.exit_code == 0, evaluated.stderr
    document = json.loads(evaluated.stdout)
    labelled = run("evaluate", "--policy", "labelled", "-d", "trustrag", "--json", "out.jsonl")
    again = json.loads(labelled.stdout)
    planted, own = (
        next(c["figures"] for c in measured["cells"] if c["scenario"]["attack"] != "none")
        for measured in (document, again)
    )
    assert planted["poisoned"] == own["poisoned"]
    assert planted["recall"] == own["recall"]


def test_texts_that_miss_their_goal_are_counted(run, tmp_path):
    path = tmp_path / "data.jsonl"
    row = {
        "id": "a",
        "question": "what is a",
        "correct_answers": ["one"],
        "incorrect_answers": ["two"],
        "passages": [{"text": "says nothing", "label": "poison", "attack": "tan"}],
    }
    path.write_text(json.dumps(row) + "\n" + json.dumps({**row, "id": "b", "passages": []}) + "\nnonsense\n")
    result = run("attack", "-a", "published", path)
    assert result.exit_code == 1
    assert "1 missed the attack's own goal" in result.stderr
    assert "b: " in result.stderr
    assert "has no texts" in result.stderr
    assert "line 3" in result.stderr
    assert "missed: " in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-a", "poisonrag", "sample"), "did you mean 'poisonedrag'"),
        (("-a", "none", "sample"), "one attack in one way, not -a none"),
        (("-a", "pia,tan", "sample"), "not -a pia,tan with --policy prepend; 'evaluate' takes several"),
        (("--policy", "labelled", "sample"), "with --policy labelled;"),
        ((), "name the data"),
        pytest.param(("-a", "hotflip", "sample"), "encoder", marks=pytest.mark.needs("torch")),
        (("--count", 1_000_000_000, "sample"), "at most 5,000, got 1000000000"),
        (("-a", "published", "absent.jsonl"), "cannot be read"),
    ],
)
def test_what_cannot_be_done(run, arguments, message):
    result = run("attack", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_examples_of_the_help_are_commands_that_can_be_read(run):
    """Options and values of every example are accepted: none is told as a slip before anything is asked."""
    from unpoison_lab.cli import attack, evaluate

    for line in f"{attack.__doc__}{evaluate.__doc__}".splitlines():
        command = line.strip().partition(" | ")[0]
        if command.startswith("unpoison ") and not {"-g", "-e", "--config", "--preset", "--questions"} & {
            *command.split()
        }:
            arguments = shlex.split(command)[1:]
            result = run(*arguments, *(() if "--list" in arguments else ("--limit", 1)))
            assert result.exit_code == 0, (command, result.stderr)
