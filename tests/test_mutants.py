"""The mutation run: which faults it makes, which tests it asks, and that it tells noticed from unnoticed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent

SOURCE = '''
"""Words with numbers: 1 < 2."""
from typing import TYPE_CHECKING
__all__ = ["f"]
if TYPE_CHECKING:
    LIMIT = 3

@decorated(frozen=True)
def f(a: "int | 3", b: int = 7) -> "4":
    """Five, 5."""
    if not a:
        raise ValueError(f"a must be above {0}, got {a}")
    return min(a, 0.85) < b and g(-a)
'''


@pytest.fixture
def mutations(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.quality import mutations

    return mutations


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.quality import mutants

    return mutants


def test_every_kind_of_fault_and_nothing_in_texts_and_annotations(mutations: ModuleType) -> None:
    assert [change.text for change in mutations.changes(ast.parse(SOURCE))] == [
        "7 -> 8",
        "not a -> not not a",
        "-a -> +a",
        "0.85 -> 0.15",
        "min -> max",
        "min(a, 0.85) < b -> min(a, 0.85) <= b",
        "min(a, 0.85) < b -> min(a, 0.85) > b",
        "min(a, 0.85) < b and g(-a) -> min(a, 0.85) < b or g(-a)",
    ]


def test_listing_changes_nothing_and_each_change_is_another_program(mutations: ModuleType) -> None:
    text = (ROOT / "src" / "unpoison" / "algorithms" / "mincut.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    changes_found = mutations.changes(tree)
    assert ast.dump(tree) == ast.dump(ast.parse(text))
    programs = set()
    for i in range(len(changes_found)):
        tree = ast.parse(text)
        mutations.changes(tree)[i].apply()
        compile(ast.fix_missing_locations(tree), "mincut.py", "exec")
        programs.add(ast.dump(tree))
    assert len(programs) == len(changes_found) > 50
    assert ast.dump(ast.parse(text)) not in programs


@pytest.mark.parametrize(
    ("module", "first"),
    [
        ("algorithms/mincut.py", "algorithms/test_mincut.py"),
        ("defenses/radar_static.py", "defenses/test_radar.py"),
        ("text/quantities.py", "text/test_answers.py"),  # no tests of its own: those of the module that uses it
        ("bench/evaluation/records.py", "bench/evaluation/test_records.py"),
    ],
)
def test_the_nearest_tests_come_first(mutants: ModuleType, module: str, first: str) -> None:
    assert mutants.mirrored(mutants.SOURCE / module)[0] == mutants.TESTS / first


def test_a_module_without_a_test_of_its_name_has_tests_all_the_same(mutants: ModuleType) -> None:
    modules = mutants.modules(list(mutants.DEFAULT))
    assert len(modules) > 80
    assert all(mutants.mirrored(module) for module in modules)


def test_faults_are_noticed_and_remembered(tmp_path: Path) -> None:
    results = tmp_path / "mutants.jsonl"
    command = [sys.executable, "-m", "benchmarks", "mutants", "text/keywords.py", "--sample", "1"]
    command += ["--only=i == 0 ->", "--results", str(results)]
    for _ in range(2):
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        assert "| text/keywords.py | 1 | 1 | 0 | 0 | 100% |" in result.stdout
        (row,) = map(json.loads, results.read_text().splitlines())
        assert (row["result"], row["change"]) == ("killed", "i == 0 -> i != 0")
