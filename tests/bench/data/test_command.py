"""`unpoison data`, and names in the place of paths."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.data.conftest import BUILT, Served, World
from unpoison.bench.data.build import Terms
from unpoison.bench.evaluation import load
from unpoison.cli import app

ACCEPT = ["--accept-licence", "none"]


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def test_a_file_is_listed_got_checked_and_read_by_its_name(world: World) -> None:
    assert "tiny" in (listed := run("data", "list")) and "get 0.0 MB" in listed
    assert "cannot be rebuilt: someone/else cannot be had" in listed
    said = run("data", "get", "tiny", "--from", str(world.mirrors), code=2)
    assert "--accept-licence none" in said and "licence: MIT" in said
    said = run("data", "get", "tiny", "--from", str(world.mirrors), *ACCEPT)
    assert "the file that the tables were measured on" in said and "tiny: built, 1 rows" in said
    assert "here already" in run("data", "get", "tiny")
    assert run("data", "check") == "tiny: the file that the tables were measured on\n"
    assert load("tiny").examples[0].id == "t-0"
    rows = [json.loads(line) for line in run("data", "list", "--json").splitlines()]
    assert {row["name"]: row["here"] for row in rows} == {"tiny": True, "lost": False, "with_tiny": False}
    assert "made in 1816" in run("screen", "-d", "ragdefender", "--json", "tiny")


def test_all_licences_are_accepted_after_they_were_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("data", "get", "tiny", "--from", str(world.mirrors), "--accept-licence", "all")

    def stop(terms: Terms, slugs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Terms, "accept", stop)
        assert "licence: no licence stated" in run(*arguments, code=130)
    assert "tiny: built" in run(*arguments)


def test_several_licences_with_commas_and_one_in_a_names_place(world: World) -> None:
    said = run("data", "get", "tiny", "--accept-licence", "mit", "none", code=2)
    assert "none is a licence and no evaluation file; give several with commas: --accept-licence mit,none" in said
    assert "tiny: built" in run("data", "get", "tiny", "--from", str(world.mirrors), "--accept-licence", "mit,none")


def test_by_network(world: World, served: Served) -> None:
    assert "built" in run("data", "get", "tiny", "--mirror", served.url, *ACCEPT)
    assert len(served.asked) == 1


def test_what_is_not_there_is_answered_with_its_command(world: World) -> None:
    assert "tiny is not on this machine: unpoison data get tiny" in run("screen", "-d", "ragdefender", "tiny", code=2)
    assert "no evaluation file is named 'tinny'; did you mean 'tiny'" in run("data", "get", "tinny", code=2)
    assert "holds no evaluation file" in run("data", "check", code=2)
    assert "cannot be rebuilt: someone/else" in run("data", "get", "lost", code=2)


def test_check_names_what_is_wrong(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "tiny.jsonl").write_bytes(BUILT + b"\n")
    assert run("data", "check", "--from", str(folder), code=1).startswith("tiny: is not the file")
    assert "lost: is not there" in run("data", "check", "tiny", "lost", "--from", str(folder), code=1)


def test_training() -> None:
    said = run("data", "check", "--training")
    assert "crafted: fitted on" in said and "0 of them among" in said


@pytest.mark.skipif(sys.platform == "win32", reason="names")
def test_all_that_can_be_rebuilt(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (world.folder / "with_tiny.jsonl").write_bytes(BUILT)
    (world.folder / "tiny.jsonl").write_bytes(BUILT)
    assert run("data", "get", "all", "--from", str(world.folder), *ACCEPT).count("built, ") == 2
    (world.folder / "lost.jsonl").write_bytes(BUILT)
    assert "lost: built, " in run("data", "get", "all", "--from", str(world.folder))
