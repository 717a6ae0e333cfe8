from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import lines
from unpoison import __version__, cli
from unpoison.core import registry

UNPOISON = [sys.executable, "-c", "from unpoison.cli import main; main()"]


def test_version_says_what_is_installed(run):
    first, second = run("--version").stdout.splitlines()
    assert first.startswith(f"unpoison {__version__}, Python 3.")
    assert second.startswith("extras installed: ")


def test_unknown_command_and_option(run):
    for arguments in (("scren",), ("screen", "--colour", "x")):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "Error" in result.stderr


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom unpoison.cli import app\n"
        "try:\n    app(['screen', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'scipy', 'torch', 'transformers', 'sklearn', 'pyarrow', 'openai', 'unpoison_lab'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def row(number: int = 0) -> str:
    return json.dumps({"query": f"q {number}", "passages": ["one text", "another text", "a third"]}) + "\n"


def test_standard_input_in_a_process():
    done = subprocess.run([*UNPOISON, "screen", "--json", "-"], input=row() + "x\n", capture_output=True, text=True)
    assert done.returncode == 1
    assert [sorted(listed) for listed in lines(done.stdout)] == [["passages", "query", "screening"], ["error", "line"]]
    assert "Traceback" not in done.stderr


def test_a_missing_file_in_a_process():
    done = subprocess.run([*UNPOISON, "screen", "missing.jsonl"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: missing.jsonl: No such file or directory; check the path")


@pytest.mark.parametrize("form", [["--json"], []], ids=["json", "table"])
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, form: list[str]):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(map(row, range(400))))
    with subprocess.Popen(
        [*UNPOISON, "screen", "-d", "vanilla", *form, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_control_c_ends_with_130_even_while_a_model_is_slow(tmp_path: Path):
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a parent may ignore it
        "import unpoison.cli.common as running\n"
        "from unpoison.models.doubles import ScriptedGenerator\n"
        "import sys\n"
        "def load(_):\n"
        "    print('loaded', file=sys.stderr, flush=True)\n"
        "    return ScriptedGenerator('x', seconds=60)\n"
        "running.load_generator = load\n"
        "from unpoison.cli import main\nmain()"
    )
    path = tmp_path / "rows.jsonl"
    path.write_text(row() * 4)
    arguments = ["ask", "-d", "vanilla", "-g", "openai:x", "--rows", "2", "--json", str(path)]
    with subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"loaded\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
        assert b"Traceback" not in process.stderr.read()


def test_a_command_of_the_laboratory_says_what_is_missing(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "entry_points_of", lambda kind: {})
    cli._load.cache_clear()
    assert "evaluate" in run("--help").stdout
    for arguments in (("evaluate", "--limit", "2", "sample"), ("redteam", "--help")):
        result = run(*arguments)
        assert result.exit_code == 2 and "needs the laboratory" in result.stderr
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize(
    "command", ["screen rows.jsonl", "ask rows.jsonl -g extractive", "check pages", "screen \u6771"]
)
def test_a_pipe_of_another_encoding_loses_letters_and_no_result(tmp_path: Path, command: str, encoding: str) -> None:
    text = "Caf\u00e9 \u2013 \u6771\u4eac \u2192 open"
    given = {"query": f"where is {text}", "passages": [text, "b"]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(given, ensure_ascii=False), encoding="utf-8")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "one.txt").write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([*UNPOISON, *command.split()], cwd=tmp_path, env=environment, capture_output=True)
    said = (done.stdout + done.stderr).decode(encoding, "replace")
    assert "Traceback" not in said
    assert done.returncode == (2 if command.endswith("\u6771") else 1 if command.startswith("check") else 0), said


def test_lists_are_json_on_request(run):
    presets = json.loads(run("evaluate", "--preset", "list", "--json").stdout)
    told = {one["preset"]: one["sample"] for one in presets}
    assert (told["trustrag-table-6"], told["ragdefender-table-6"]) == ("runs", "no, too few poisons")
    attacks = json.loads(run("attack", "--list", "--json").stdout)
    assert {one["name"]: one["needs"] for one in attacks}["pia"] == "nothing"


@pytest.mark.parametrize("name", ["r.pdf", "r.md", "r"])
@pytest.mark.parametrize("command", ["check a --report", "scan a --html", "scan a --sarif", "audit a --html"])
def test_a_page_has_the_suffix_of_a_page(run, tmp_path: Path, command: str, name: str) -> None:
    done = run(*command.split(), str(tmp_path / name))
    assert (done.exit_code, "a report must end in ." in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / name).exists()
