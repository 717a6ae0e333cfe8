import json

import pytest

from cli.conftest import lines

SMALL = ("--limit", 4, "sample")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.jsonl"
    rows = [
        {"id": "a", "question": "what is a", "correct_answers": ["one"], "incorrect_answers": ["two"]},
        {"id": "a", "question": "what is a", "correct_answers": ["one"], "incorrect_answers": ["two"]},
        {"id": "b", "question": "what is b", "correct_answers": ["no"], "incorrect_answers": ["no way"]},
        {"id": "c", "question": 7},
        {"id": "d", "question": "what is d", "correct_answers": ["one"]},
    ]
    passages = [{"text": "one thing", "label": "gold"}, {"text": "another", "label": "clean"}]
    path.write_text("".join(json.dumps({**row, "passages": passages}) + "\n" for row in rows))
    return path


def test_a_table_tells_what_is_saved_and_what_is_damaged(run):
    result = run("evaluate", "-d", "trustrag,grada", "--poisons", "0,3", *SMALL)
    assert result.exit_code == 0
    assert "sample, poisonedrag (our wording; stand-in: templates) x 3" in result.stdout
    assert "vanilla:keep=5" in result.stdout
    assert "clean: gold lost %" in result.stdout
    assert "ASR" not in result.stdout
    assert "measured 32 questions in 8 scenarios; the run is in unpoison-runs" in result.stderr


def test_the_same_command_does_nothing_twice(run):
    command = ("evaluate", "-d", "trustrag", "--json", *SMALL)
    first, second = run(*command), run(*command)
    assert "16 were there already" in second.stderr
    assert [cell["figures"] for cell in json.loads(first.stdout)["cells"]] == [
        cell["figures"] for cell in json.loads(second.stdout)["cells"]
    ]


def test_answers_with_a_generator(run):
    result = run("evaluate", "-d", "trustrag", "-g", "extractive", "--price", "extractive=1/2", "--json", *SMALL)
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    (undefended,) = [c for c in document["cells"] if c["scenario"]["defense"] == "vanilla" and c["scenario"]["poisons"]]
    assert undefended["figures"]["asr"]["value"] > 0
    assert undefended["cost"] == 0.0


def test_reports_in_every_form(run, tmp_path):
    result = run(
        *("evaluate", "-d", "trustrag", "--report", "r.html", "--report", "r.json", "--markdown", "r.md"),
        *("--csv", "r.csv", *SMALL),
    )
    assert result.exit_code == 0
    for name in ("r.html", "r.json", "r.md", "r.csv"):
        assert "trustrag" in (tmp_path / name).read_text()


def test_a_config_and_options_that_win(run, tmp_path):
    (tmp_path / "grid.yaml").write_text(
        "data: sample\ndefense: [{name: grada, alpha: [0.2, 0.4], keep: 10}]\nattack: [pia]\n"
        "baseline: false\nlimit: 2\n"
    )
    result = run("evaluate", "--config", "grid.yaml", "--poisons", 2, "--no-clean", "--json")
    assert result.exit_code == 0, result.stderr
    told = [cell["scenario"] for cell in json.loads(result.stdout)["cells"]]
    assert [one["defense"] for one in told] == ["grada:alpha=0.2,keep=10", "grada:alpha=0.4,keep=10"]
    assert {one["poisons"] for one in told} == {2}


def test_an_option_as_an_axis(run):
    result = run("evaluate", "-d", "grada:keep=10", "--vary", "alpha=0.1,0.2", "--no-baseline", "--json", *SMALL)
    told = {cell["scenario"]["defense"] for cell in json.loads(result.stdout)["cells"]}
    assert told == {"grada:keep=10,alpha=0.1", "grada:keep=10,alpha=0.2"}


def test_a_manifest_repeats_a_run(run, tmp_path):
    first = run("evaluate", "-d", "trustrag", "--folder", "one", "--json", *SMALL)
    again = run("evaluate", "--manifest", "one/manifest.json", "--folder", "two", "--json")
    assert again.exit_code == 0, again.stderr
    assert "there already" not in again.stderr
    old, new = (json.loads(result.stdout)["cells"] for result in (first, again))
    assert [cell["id"] for cell in old] == [cell["id"] for cell in new]
    assert [cell["figures"]["poisoned"] for cell in old] == [cell["figures"]["poisoned"] for cell in new]
    refused = run("evaluate", "--manifest", "one/manifest.json", "-d", "grada")
    assert (refused.exit_code, "leave --defense out" in refused.stderr) == (2, True)


def test_a_papers_table(run):
    listed = run("evaluate", "--preset", "list")
    assert "grada-table-1" in listed.stdout
    result = run("evaluate", "--preset", "trustrag-table-6", "--limit", 2, "sample")
    assert result.exit_code in (0, 1), result.stderr
    assert "published %" in result.stdout
    assert "instead: " in result.stderr
    seeds = run("evaluate", "--preset", "trustrag-table-6", "--limit", 2, "--seed", "0,1", "sample")
    assert "seeds)" in seeds.output  # a narrow column breaks the line before it
    refused = run("evaluate", "--preset", "trustrag-table-6", "--k", 3)
    assert (refused.exit_code, "leave --k out" in refused.stderr) == (2, True)


def test_bad_rows_are_listed_and_the_rest_is_measured(run, data):
    result = run("evaluate", "-d", "trustrag", "--k", 2, data)
    assert "line 2" in result.stderr
    assert "met before" in result.stderr
    assert "line 3" in result.stderr
    assert "could not be told apart" in result.stderr
    assert "question" in result.stderr
    assert "has no" in result.stderr or "incorrect" in result.stderr  # question d gives the attacker nothing to want
    assert result.exit_code == 1


def test_scenarios_that_cannot_begin_are_told(run):
    result = run("evaluate", "-d", "radar,trustrag", *SMALL)
    assert result.exit_code == 1
    assert "needs a generator" in result.stderr
    assert "2 scenarios could not begin" in result.stderr
    alone = run("evaluate", "-d", "radar", "--no-baseline", *SMALL)
    assert alone.exit_code == 2


def test_without_a_defense_it_is_guard_beside_none(run, tmp_path):
    result = run("evaluate", "--limit", "2", "--folder", tmp_path / "run", "--json")
    assert result.exit_code == 0
    measured = {cell["scenario"]["defense"] for cell in json.loads(result.stdout)["cells"]}
    assert measured == {"vanilla", "guard"}


@pytest.mark.parametrize("gate", ["asr > 5%", "clean(accuracy) < 30%"])
def test_a_gate_on_answers_is_refused_before_the_run_where_nobody_answers(run, tmp_path, gate):
    result = run("evaluate", "--fail-if", gate, "--folder", tmp_path / "run", "--junit", tmp_path / "junit.xml")
    assert result.exit_code == 2
    assert "needs answers, and no generator gives any; add -g" in result.stderr
    assert list(tmp_path.iterdir()) == [], "nothing was run, and no empty file is left"


@pytest.mark.parametrize("name", ["report.txt", "report"])
def test_a_report_of_no_format_is_refused_and_leaves_nothing(run, tmp_path, name):
    result = run("evaluate", "--report", tmp_path / name)
    assert result.exit_code == 2
    assert "a report must end in .html" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-d", "grdaa", "sample"), "did you mean 'grada'"),
        (("-d", "grada:alhpa=1", "sample"), "did you mean 'alpha'"),
        (("-d", "grada", "-a", "pai", "sample"), "did you mean 'pia'"),
        (("-d", "grada", "--poisons", "x", "sample"), "poisons cannot be 'x'"),
        (("-d", "grada", "--poisons", "1000000000", "sample"), "poisons must be at most 5,000, got 1000000000"),
        (("-d", "grada", "absent.jsonl"), "cannot be read"),
        (("-d", "grada", "--price", "free", "sample"), "MODEL=IN/OUT"),
        (("-d", "grada", "--report", "absent/r.html", "sample"), "absent/r.html"),
        (("--preset", "nothing", "sample"), "no preset"),
        (
            (
                "--config",
                "absent.yaml",
            ),
            "cannot be read",
        ),
        (("--config", "a", "--preset", "b"), "exclude each other"),
    ],
)
def test_what_cannot_be_done(run, arguments, message):
    result = run("evaluate", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(lines(result.stdout)) == 0


def test_a_typo_in_a_preset_is_no_list_of_all(run):
    result = run("evaluate", "--preset", "trustrag-table6", "sample")
    assert result.exit_code == 2
    assert "did you mean 'trustrag-table-6'" in result.stderr
    assert result.stderr.count("-table-") < 5
    assert " are known" in result.stderr


def test_sample_is_measured_where_no_data_is_named(run):
    assert run("evaluate", "-d", "trustrag", "--limit", 1, "--no-clean").exit_code == 0


def test_a_judge_scores_the_answers(run):
    result = run("evaluate", "-d", "vanilla", "-g", "extractive", "--judge", "extractive", "--limit", 1, "--json")
    cell = json.loads(result.stdout)["cells"][0]
    assert cell["figures"]["judged_accuracy"]["value"] is None  # the reader is no judge: it gives no scores


def test_over_time_static_stands_beside_dynamic(run, tmp_path):
    command = ("evaluate", "--stream", "timeline", "-d", "radar,vanilla", "-g", "extractive", "--nli", "lexical")
    result = run(*command, "--limit", 2, "--report", "r.html", "--report", "r.csv")
    assert result.exit_code == 0, result.stderr
    assert "Static against dynamic" in result.stdout
    assert "radar, dynamic" in result.stdout
    assert "measured 280 answers of 7 methods over time" in result.stderr
    assert 'class="chart"' in (tmp_path / "r.html").read_text()
    assert (tmp_path / "r.csv").read_text().startswith("attack,method,")
    again = json.loads(run(*command, "--limit", 2, "--json").stdout)
    assert {one["method"] for one in again["results"]} >= {"radar, dynamic", "vanilla, static"}
    assert again["questions"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--k", 3), "leave --k out"),
        (("--no-clean",), "leave --no-clean out"),
        (("sample",), "leave DATA out"),
        (("--jobs", 1), "leave --jobs out"),
        (("--preset", "list"), "known: radar-table-15"),
        (("-g", "a,b"), "--stream takes one generator"),
        (("-d", "radar:beliefs=memory"), "leave beliefs out"),
        (("-d", "grdaa"), "did you mean 'grada'"),
        (("--report", "r.pdf"), "must end in .html"),
        (("--report", "absent/r.html"), "absent/r.html"),
    ],
)
def test_what_makes_no_sense_over_time(run, arguments, message):
    result = run("evaluate", "--stream", "timeline", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
