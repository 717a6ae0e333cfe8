from __future__ import annotations

import re
from pathlib import Path

import pytest

from unpoison.io.rows import load_sample
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


def test_it_shows_a_catch_a_miss_and_the_figures(output):
    assert "A CATCH: " in output
    assert "AN HONEST MISS: " in output
    assert f"All {len(load_sample())} questions" in output
    assert "unpoison screen FILE" in output
    assert "No language model" in output


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


def test_it_shows_a_hidden_poison_an_order_and_sources_that_disagree(output):
    hidden, order, disagree = (
        output[output.index(f"{name}: ") :].split("\n\n")[0]
        for name in ("A HIDDEN POISON", "A PROMPT INJECTION", "SOURCES THAT DISAGREE")
    )
    assert "\\u200b" in hidden
    assert "\u200b" not in output
    assert re.search(r"dropped: .*\d+ invisible characters inside words", " ".join(hidden.split()))
    assert "guard:prompt_injection=drop drops it: prompt injection: " in order
    read = order[order.index("has a model read") :]
    assert "[removed]" in read
    assert "assistant" not in read
    assert re.search(r"told to the user: sources disagree: .*\(1 passage\), .*\(1\) \[\d\] against \[\d\]", disagree)


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


def test_no_defense_reads_that_a_passage_is_planted():
    from unpoison.cli.demo_cases import plant

    for row in load_sample():
        genuine = {passage.text: passage for passage in row.passages}
        for passage, label in zip(*plant(row, 3)):
            original = genuine[passage.text.removeprefix(f"{row.query.text}. ") if label == "poison" else passage.text]
            assert (passage.title, passage.id, passage.source) == (original.title, original.id, original.source)


def test_the_figures_are_shares(output):
    shares = [int(share) for share in re.findall(r"(\d+) %", output.partition("What the small reader answers")[0])]
    assert len(shares) == 4 * 4 * 5 + 5 * 2
    assert all(0 <= share <= 100 for share in shares)
    assert re.search(r"1 │ vanilla\s+│\s+100 % │\s+0 %", output), "undefended, the planted poison is read"


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
