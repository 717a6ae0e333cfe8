from __future__ import annotations

import re
from pathlib import Path

import pytest

from unpoison.utils.extras import install_command

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def output() -> str:
    from typer.testing import CliRunner

    from unpoison.cli import app

    result = CliRunner().invoke(app, ["demo", "--all"], env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.exception
    assert result.stderr == ""
    return result.stdout


def test_the_catch_drops_every_poison_and_the_miss_keeps_one(output):
    catch = output[output.index("A CATCH") : output.index("AN HONEST MISS")]
    miss = output[output.index("AN HONEST MISS") :]
    (saved,) = re.findall(r"A CATCH: (.*) drop every poison", catch)
    (missed,) = re.findall(r"AN HONEST MISS: (.*) let poison through", miss)
    for name in re.findall(r"\w+", saved.replace(" and ", " ")):
        assert f"{name} dropped poison" in catch
        assert f"{name} KEPT poison" not in catch
    for name in re.findall(r"\w+", missed.replace(" and ", " ")):
        assert f"{name} KEPT poison" in miss


def test_who_says_so_turns_a_lie_that_no_style_gives_away(run, output):
    lines = run("demo").stdout.splitlines()
    rows = {line[2:24].strip(): (line[24:52].strip(), line[52:].strip()) for line in lines}
    assert rows["texts alone"] == ("Gothenburg", "Gothenburg"), "style alone does not find it"
    assert rows["one voice a domain"] == ("Stockholm, agreed", "both, disputed")
    assert rows["four domains known"] == ("Stockholm, agreed", "Stockholm, agreed")
    said = output[output.index("Who says so: ") :].split("\n\n")[0]
    assert "one page of five domains, one voice a domain: Sources disagree: Gothenburg (planted0.example" in said
    assert "- Stockholm, weight 3.2: history.example, museums.example" in said
    assert "any one of the sources that count" in said


@pytest.mark.needs("unpoison_reader")
def test_with_the_reader_it_answers_and_without_it_says_what_that_adds(run, output, monkeypatch):
    table = output[output.index("What the small reader answers") :]
    rows = {(m[1], m[2]): (int(m[3]), int(m[4])) for m in re.finditer(r"([01]) │ (\w+)\s+│ +(\d+) % │ +(\d+) %", table)}
    assert rows["1", "vanilla"][1] > rows["1", "radar"][1]
    assert rows["0", "radar"][1] <= rows["1", "radar"][1] + 5
    monkeypatch.setattr("unpoison.models.loading.best_reader", lambda: "extractive")
    without = run("demo", "--all").stdout
    assert "What the small reader answers" not in without
    assert install_command("reader") in without.replace("\n", " ")


def test_readme_and_the_demo_say_the_same(run):
    """The sample's row of the front page is what the demo prints."""
    front = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [line for line in front.splitlines() if line.startswith("| ") and "sample" in line]
    (line,) = [line for line in run("demo").stdout.splitlines() if line.strip().startswith("guard ")]
    printed = [int(share) for share in re.findall(r"(\d+) %", line)]
    _, _, written_one, _, _ = printed
    measured = [round(float(row.split(" | ")[1].split()[0])) for row in rows]
    assert measured == [written_one]


def test_two_runs_give_the_same_bytes(run, output, tmp_path):
    pages = [tmp_path / "1.html", tmp_path / "2.html"]
    first, second = (run("demo", "--all", "--html", page) for page in pages)
    assert first.stdout.replace("1.html", "") == second.stdout.replace("2.html", "")
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert pages[0].read_text().count("<svg") == 8 + 3
    assert re.search('<mark class="cut" title="[^"]*prompt injection: ', pages[0].read_text())


def test_without_all_its_three_acts_are_short(run):
    result = run("demo")
    assert result.exit_code == 0, result.exception
    lines = result.stdout.splitlines()
    assert 24 <= len(lines) <= 54
    assert max(map(len, lines)) <= 80
    poisons = [line for line in lines if line.startswith("  POISON")]
    assert len(poisons) == 3
    assert all(line.split()[-2:] == ["read", "dropped"] for line in poisons), "what guard drops was read without it"
    shares = {line.split()[0]: re.findall(r"(\d+) %", line) for line in lines if line.count(" %") == 5}
    assert list(shares) == ["vanilla", "grada", "ragdefender", "trustrag", "guard"]
    assert shares["vanilla"][0] == "100"
    one, three, one_written, _, clean = map(int, shares["guard"])
    assert (one, three) <= (33, 38), "short texts: with the question in front a third is still read"
    assert one_written > 50, "the natural poison, which Guard does not find, is not left out"
    assert clean == 100
    assert "--all" in result.stdout


def test_a_page_that_cannot_be_written(run):
    result = run("demo", "--html", "/nonexistent/demo.html")
    assert result.exit_code == 2
    assert (
        result.stderr
        == "error: /nonexistent/demo.html: No such file or directory; check the path; folders on it must exist\n"
    )
