from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def made() -> str:
    """What the demo prints."""
    from typer.testing import CliRunner

    from unpoison.cli import app

    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0, result.exception
    assert result.stderr == ""
    return result.stdout


def test_known_sources_reveal_a_lie_that_style_does_not(made):
    rows = {line[2:24].strip(): (line[24:52].strip(), line[52:].strip()) for line in made.splitlines()}
    assert rows["texts alone"] == ("Gothenburg", "Gothenburg"), "style alone does not find it"
    assert rows["one vote a domain"] == ("Stockholm, agreed", "both, disputed")
    assert rows["four domains known"] == ("Stockholm, agreed", "Stockholm, agreed")


def test_readme_and_the_demo_say_the_same(made):
    """The sample's row of the front page is what the demo prints."""
    front = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [line for line in front.splitlines() if line.startswith("| ") and "sample" in line]
    (line,) = [line for line in made.splitlines() if line.strip().startswith("guard ")]
    printed = [int(share) for share in re.findall(r"(\d+) %", line)]
    _, written_one, _ = printed
    measured = [round(float(row.split(" | ")[1].split()[0])) for row in rows]
    assert measured == [written_one]


def test_its_three_acts_are_short(made):
    lines = made.partition("Next:")[0].splitlines()
    assert max(map(len, lines)) <= 80
    poisons = [line for line in lines if line.startswith("  POISON")]
    assert len(poisons) == 1
    assert all(line.split()[-2:] == ["read", "dropped"] for line in poisons), "what guard drops was read without it"
    assert "undefended" not in "".join(lines), "the first five of ten are read, which is a choice of its own"
    shares = {line[2:16].strip(): re.findall(r"(\d+) %", line) for line in lines if line.count(" %") == 3}
    assert list(shares) == ["first five", "grada", "ragdefender", "trustrag", "guard"]
    assert shares["first five"][0] == "100"
    one, one_written, clean = map(int, shares["guard"])
    assert one <= 33, "short texts: with the question in front a third is still read"
    assert one_written > 50, "the natural poison, which Guard does not find, is not left out"
    assert clean == 100
