"""Gates on the command line, and the examples for pipelines, run as a pipeline would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).parents[2]
EVALUATE = ("evaluate", "-d", "guard", "-g", "extractive", "--limit", 4, "sample")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_gate_decides_the_exit_code_of_an_evaluation(run, tmp_path):
    passed = run(*EVALUATE, "--fail-if", "asr > 99%", "--junit", "j.xml")
    assert passed.exit_code == 0, passed.stderr
    assert "checks passed" in passed.stderr
    assert ElementTree.parse(tmp_path / "j.xml").getroot().get("failures") == "0"  # noqa: S314  our own
    failed = run(*EVALUATE, "--fail-if", "accuracy <= 100%", "--sarif", "s.sarif", "--json")
    assert failed.exit_code == 1
    assert "gate failed: accuracy <= 100%: guard" in failed.stderr
    results = json.loads((tmp_path / "s.sarif").read_text())["runs"][0]["results"]
    assert {result["ruleId"] for result in results} == {"gate"}
    assert "vanilla" not in json.dumps(results)
    (tmp_path / "last.json").write_text(failed.stdout)
    same = run(*EVALUATE, "--against", "last.json")
    assert same.exit_code == 0, same.stderr


def test_other_failures_are_2_and_files_are_written_all_the_same(run, tmp_path):
    slip = run(*EVALUATE, "--fail-if", "asf > 5%")
    assert (slip.exit_code, "did you mean 'asr'" in slip.stderr) == (2, True)
    assert "measured" not in slip.stderr  # before anything ran
    silent = run("evaluate", "-d", "guard", "--limit", 2, "sample", "--fail-if", "asr > 5%", "--junit", "j.xml")
    assert (silent.exit_code, "needs answers" in silent.stderr) == (2, True)
    assert "measured" not in silent.stderr
    assert not (tmp_path / "j.xml").exists()
    nothing = run(*EVALUATE, "--fail-if", "graded > 5%", "--junit", "j.xml")
    assert nothing.exit_code == 2
    assert "applies to nothing" in nothing.stderr
    assert "applies to nothing" in (tmp_path / "j.xml").read_text()
    missing = run(*EVALUATE, "--against", "none.json")
    assert (missing.exit_code, "cannot be read" in missing.stderr) == (2, True)


def test_a_worse_defense_fails_against_the_last_run(run, tmp_path):
    good = json.loads(run(*EVALUATE, "--json").stdout)
    for cell in good["cells"]:
        for name in ("asr", "poisoned", "accuracy"):
            figure = cell["figures"][name]
            if figure["value"] is not None:
                figure |= {"value": float(name == "accuracy"), "low": 0.0, "high": 1.0, "count": 1000}
    (tmp_path / "last.json").write_text(json.dumps(good))
    result = run("evaluate", "-d", "vanilla", *EVALUATE[3:], "--against", "last.json")
    assert result.exit_code in (1, 2)
    if result.exit_code == 1:
        assert "not worse than before" in result.stderr


def steps(pipeline: str) -> list[str]:
    document = yaml.safe_load((ROOT / "examples" / "ci" / pipeline).read_text())
    if pipeline == "github.yaml":
        commands = [step["run"] for step in document["jobs"]["redteam"]["steps"] if "run" in step]
    else:
        commands = [*document["redteam"]["script"], *document["redteam"]["after_script"]]
    assert commands[0].startswith("pip install 'unpoison[redteam]'")
    return commands[1:]


@pytest.mark.parametrize("pipeline", ["github.yaml", "gitlab.yaml"])
def test_the_examples_for_pipelines_run(tmp_path, pipeline):
    shutil.copytree(ROOT / "examples" / "ci", tmp_path / "examples" / "ci")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "unpoison"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from unpoison.cli import main; main()' \"$@\"\n")
    script.chmod(0o755)
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path}
    for command in steps(pipeline) * (2 if pipeline == "gitlab.yaml" else 1):  # the second run has one to compare with
        done = subprocess.run(["bash", "-ec", command], capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert ElementTree.parse(tmp_path / "redteam.xml").getroot().get("failures") == "0"  # noqa: S314  our own
    json.loads((tmp_path / "redteam.sarif").read_text())
    assert json.loads((tmp_path / "redteam.json").read_text())["complete"]
