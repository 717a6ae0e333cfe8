"""The two runs of `.ci/run`: the second one leaves out what passed in the first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PYTEST = [sys.executable, "-m", "pytest", "-p", "xdist.plugin"]
OWN = """
import os, pytest
def test_passes(): assert "UNPOISON_PASSED" not in os.environ or os.environ.get("UNPOISON_NEEDS")
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.needs("no_such_package")
def test_needs(): pass
@pytest.mark.parametrize("text", ["a b", "é", "[x]"])
def test_of_texts(text): pass
@pytest.fixture
def breaks():
    yield
    assert False
def test_that_breaks_at_its_end(breaks): pass
"""


def ran(folder: Path, **environment: str) -> tuple[int, list[str]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UNPOISON_", "PYTEST_"))}
    done = subprocess.run(
        [*PYTEST, "--numprocesses", "2", "--dist", "worksteal", "-rA", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        env={**kept, **environment, "PYTHONIOENCODING": "utf-8", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        encoding="utf-8",
    )
    return done.returncode, sorted(line for line in done.stdout.splitlines() if line.startswith("PASSED"))


def test_a_second_run_leaves_out_what_passed_in_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    for name in ("conftest.py", "needs.py", "injection_double.py"):
        shutil.copy(HERE / name, folder / name)
    marks = "\n".join(f"    {name}: x" for name in ("slow", "needs(*packages)"))
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = .\nmarkers =\n{marks}\n")
    (folder / "test_own.py").write_text(OWN, encoding="utf-8")
    passed = str(tmp_path / "passed")
    code, first = ran(folder, UNPOISON_PASSED=passed)
    assert (code, len(first)) == (1, 5), "the test that breaks at its end passes before that"
    code, second = ran(folder, UNPOISON_PASSED=passed, UNPOISON_NEEDS="all")
    assert code == 1
    assert second == ["PASSED test_own.py::test_slow", "PASSED test_own.py::test_that_breaks_at_its_end"]
