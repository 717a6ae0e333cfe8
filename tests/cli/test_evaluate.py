import json
import socket

import pytest

from cli.conftest import lines
from servers import serving, statistics

SMALL = ("--limit", 4, "sample")
ANSWERED = ("evaluate", "-d", "guard", "-g", "extractive", *SMALL)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def scenarios(result):
    assert result.exit_code == 0, result.stderr
    return [cell["scenario"] for cell in json.loads(result.stdout)["cells"]]


def test_a_table_tells_what_is_saved_and_what_is_damaged(run):
    result = run("evaluate", "-d", "trustrag,grada", "--poisons", "0,3", *SMALL)
    assert result.exit_code == 0
    assert "sample, poisonedrag (our wording; stand-in: templates) x 3" in result.stdout
    assert "vanilla:keep=5" in result.stdout
    assert "clean: gold lost %" in result.stdout
    assert "ASR" not in result.stdout
    assert "measured 32 questions in 8 scenarios; the run is in unpoison-runs" in result.stderr


def test_a_stand_in_generator_is_named_in_every_heading(run):
    shown = run("evaluate", "-d", "radar", "-g", "extractive", *SMALL).stdout
    assert shown.count(", answers by extractive") == shown.count("extractive stands in for a language model") == 2


def test_reports_in_every_form(run, tmp_path):
    names = ("r.html", "r.json", "r.md")
    result = run(*ANSWERED, *(word for name in names for word in ("--report", name)), "--fail-if", "accuracy <= 100%")
    assert result.exit_code == 1
    assert "gate failed: accuracy <= 100%: guard" in result.stderr
    for name in names:
        assert "guard" in (tmp_path / name).read_text()
    assert run(*ANSWERED, "--fail-if", "asr > 99%").exit_code == 0


def test_a_slip_in_a_gate_is_told_before_anything_runs(run, tmp_path):
    slip = run(*ANSWERED, "--fail-if", "asf > 5%")
    assert (slip.exit_code, "did you mean 'asr'" in slip.stderr) == (2, True)
    silent = run("evaluate", "--fail-if", "asr > 5%", "--report", "j.html")
    assert (silent.exit_code, "needs answers, and no generator gives any" in silent.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []
    nothing = run(*ANSWERED, "--fail-if", "graded > 5%")
    assert (nothing.exit_code, "applies to nothing" in nothing.stderr) == (2, True)


def test_a_config_and_options_that_win(run, tmp_path):
    (tmp_path / "grid.yaml").write_text(
        "data: sample\ndefense: [{name: grada, alpha: [0.2, 0.4], keep: 10}]\nattack: [pia]\n"
        "baseline: false\nclean: false\nlimit: 2\ngenerator: extractive\njudge: extractive\n"
    )
    result = run("evaluate", "--config", "grid.yaml", "--poisons", 2, "--json")
    told = scenarios(result)
    assert [one["defense"] for one in told] == ["grada:alpha=0.2,keep=10", "grada:alpha=0.4,keep=10"]
    assert {one["poisons"] for one in told} == {2}
    cell = json.loads(result.stdout)["cells"][0]
    assert cell["figures"]["judged_accuracy"]["value"] is None  # the reader is no judge: it gives no scores


def test_a_papers_table(run):
    assert "grada-table-1" in run("evaluate", "--preset", "list").stdout
    result = run("evaluate", "--preset", "trustrag-table-5", "--limit", 1, "sample")
    assert result.exit_code in (0, 1), result.stderr
    assert "published" in result.stdout
    assert "not the paper's setting: " in result.stderr
    refused = run("evaluate", "--preset", "trustrag-table-6", "--k", 3)
    assert (refused.exit_code, "determines k" in refused.stderr) == (2, True)


def test_a_preset_on_data_that_it_is_not_for_fails_with_one_sentence(run, tmp_path):
    row = {"id": "a", "question": "what is a", "correct_answers": ["one"], "passages": []}
    (tmp_path / "data.jsonl").write_text(json.dumps(row))
    result = run("evaluate", "--preset", "trustrag-table-1", "-g", "extractive", "data.jsonl")
    assert result.exit_code == 2
    assert "error: no attack of trustrag-table-1 can be measured on this data" in result.stderr


def test_questions_from_documents(run, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Plan\n\nThe rate limit is 20 users. The town fee is 5 euros.\n")
    result = run("evaluate", "docs", "--questions", 2, "-d", "grada", "--folder", "run")
    assert result.exit_code == 0, result.stderr
    assert "2 questions are in run/questions/questions.jsonl; read them" in result.stderr
    assert len((tmp_path / "run" / "questions" / "questions.jsonl").read_text().splitlines()) == 2


def test_bad_rows_are_listed_and_the_rest_is_measured(run, tmp_path):
    rows = [
        {"id": "a", "question": "what is a", "correct_answers": ["one"], "incorrect_answers": ["two"]},
        {"id": "a", "question": "what is a", "correct_answers": ["one"], "incorrect_answers": ["two"]},
        {"id": "c", "question": 7},
        {"id": "d", "question": "what is d", "correct_answers": ["one"]},
    ]
    passages = [{"text": "one thing", "label": "gold"}, {"text": "another", "label": "clean"}]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps({**row, "passages": passages}) + "\n" for row in rows))
    result = run("evaluate", "-d", "trustrag", "--k", 2, "data.jsonl")
    assert "line 2" in result.stderr and "met before" in result.stderr and "line 3" in result.stderr
    assert "incorrect" in result.stderr  # question d gives the attacker nothing to want
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-d", "grdaa", "sample"), "did you mean 'grada'"),
        (("-d", "grada:alhpa=1", "sample"), "did you mean 'alpha'"),
        (("-d", "grada", "-a", "pai", "sample"), "did you mean 'pia'"),
        (("-g", "nope", "sample"), "no generator 'nope'"),
        (("-a", "poisonedrag:mode=x", "sample"), "mode must be auto or verified"),
        (("--poisons", "x", "sample"), "poisons cannot be 'x'"),
        (("--poisons", "1000000000", "sample"), "poisons must be at most 5,000, got 1000000000"),
        (("absent.jsonl",), "cannot be read"),
        (("minse",), "did you mean 'mines'"),
        (("xyzzy",), "or their folder; sets that are built by name: mines"),
        (("--report", "absent/r.html", "sample"), "absent/r.html"),
        (("--report", "r.txt", "sample"), "a report must end in .html"),
        (("--preset", "trustrag-table6", "sample"), "did you mean 'trustrag-table-6'"),
        (("--preset", "radar-table-17", "sample"), "--stream timeline"),
        (("--preset", "radar-table-1", "--limit", 1, "sample"), "needs a generator; give one with -g"),
        (("--config", "absent.yaml"), "cannot be read"),
    ],
)
def test_what_cannot_be_done(run, tmp_path, monkeypatch, arguments, message):
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "mines.jsonl").touch()
    monkeypatch.setenv("UNPOISON_DATA", str(tmp_path / "built"))
    result = run("evaluate", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(lines(result.stdout)) == 0
    assert not (tmp_path / "unpoison-runs").exists()


def test_over_time_static_stands_beside_dynamic(run, tmp_path):
    command = ("evaluate", "--stream", "timeline", "-d", "radar,vanilla", "-g", "extractive", "--nli", "lexical")
    result = run(*command, "--limit", 1, "--report", "r.html")
    assert result.exit_code == 0, result.stderr
    assert "radar, dynamic" in result.stdout
    assert "measured 140 answers of 7 methods over time" in result.stderr
    assert "radar, dynamic" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--k", 3), "determines k"),
        (("sample",), "determines data"),
        (("--fail-if", "asr > 5%"), "determines fail_if"),
        (("--preset", "radar-table-1"), "known: radar-table-15"),
        (("-g", "a,b"), "give one generator"),
        (("-d", "radar:beliefs=memory"), "leave beliefs out"),
        (("--report", "r.csv"), "must end in .html"),
    ],
)
def test_what_makes_no_sense_over_time(run, arguments, message):
    result = run("evaluate", "--stream", "timeline", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.fixture(scope="module")
def stub():
    with serving() as url:
        yield url


@pytest.mark.needs("openai")
@pytest.mark.parametrize(
    "command",
    [
        ("-d", "vanilla,trustrag", "-g", "{model},extractive", "sample"),
        ("-d", "grada", "-e", "{model}", "--retriever", "{model}", "--policy", "retrieve", "sample"),
        ("--preset", "trustrag-table-5", "-g", "{model}", "sample"),
        ("--stream", "timeline", "-d", "vanilla", "-g", "{model}"),
        ("--config", "grid.yaml"),
    ],
    ids=["several", "encoder", "preset", "stream", "yaml"],
)
def test_an_endpoint_is_asked_and_nothing_else(run, stub, tmp_path, monkeypatch, request, command):
    """The address behind a comma belongs to the model before it, on every surface."""
    name = f"echo/{request.node.callspec.id}"
    model = f"openai:{name},base_url={stub}/v1"
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-for-the-provider")
    resolve = socket.getaddrinfo

    def only_here(host, *rest, **more):
        assert host in ("127.0.0.1", b"127.0.0.1"), f"{host} was asked"
        return resolve(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", only_here)
    (tmp_path / "grid.yaml").write_text(
        f"data: sample\ndefense: vanilla\nattack: none\nlimit: 1\ngenerator: [{{name: 'openai:{name}', "
        f"base_url: '{stub}/v1'}}]\n"
    )
    limit = () if "--config" in command else ("--limit", 1)
    result = run("evaluate", *(word.format(model=model) for word in command), *limit)
    assert result.exit_code in (0, 1), result.stderr
    assert statistics(stub)["calls"].get(name, 0) > 0
    assert "could not begin" not in result.stderr or "preset" in name
