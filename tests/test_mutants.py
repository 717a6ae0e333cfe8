"""What a mutant changes: one place of a module that does something, and nothing that only says something."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("x = a < b", ["(a <= b)"]),
        ("x = a and not b", ["(a or not b)", "(b)"]),
        ("x = a + 1.5", ["(a - 1.5)", "3.0"]),
        ("LIMIT: int = 3", ["4"]),
        ("x = 1 if a else 0", ["(0 if a else 1)", "2", "1"]),
        ("def f(x: int = 3, *, y: bool = True) -> int:\n    return x * y", ["4", "False", "return None", "(x + y)"]),
        ("for x in y:\n    if x:\n        continue\n    f(x)", ["break", "pass"]),
        ('"""Says 3."""\nfrom a import b\n__all__ = ["b"]\nx: "3 < 4"', []),
        ('def f():\n    """3 < 4"""\n    raise ValueError(f"{3 < 4}")', []),
        ("@dataclass(frozen=True)\nclass A:\n    x: int = 3", ["4"]),
        ("if TYPE_CHECKING:\n    x = 3", []),
        ("x = 'é' * 2", ["('é' + 2)", "3"]),
    ],
)
def test_a_mutant_changes_one_place_that_does_something(tool: ModuleType, source: str, changes: list[str]) -> None:
    found = tool.mutants(source)
    assert [mutant.after for mutant in found] == changes
    assert all(mutant.of(source) != source for mutant in found)
    assert all(len(mutant.of(source).splitlines()) == len(source.splitlines()) for mutant in found)


def test_the_same_seed_draws_the_same_places_from_files_with_a_mirror(tool: ModuleType) -> None:
    drawn = tool.drawn(20, 1, "algorithms/")
    assert drawn == tool.drawn(20, 1, "algorithms/")
    assert drawn != tool.drawn(20, 2, "algorithms/")
    assert len({mutant.path for mutant in drawn}) > 5
    assert all(tool.mirror(mutant.path).is_file() for mutant in drawn)


def test_every_room_is_drawn_from_equally_often(tool: ModuleType) -> None:
    rooms = [tool.room(mutant.path) for mutant in tool.drawn(9, 1, "unpoison/c")]
    assert rooms == 3 * ["unpoison/check", "unpoison/cli", "unpoison/core"]


def test_what_was_killed_is_said_by_room(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mirror that fails without a change has no say."""
    noticed = {"unpoison/check": None, "unpoison/cli": False, "unpoison/core": True}
    monkeypatch.setattr(tool.Runner, "killed", lambda _, mutant: noticed[tool.room(mutant.path)])
    assert tool.main(["--places", "9", "--only", "unpoison/c", "--processes", "1"]) == 1
    *_, cli, core, whole = map(str.split, capsys.readouterr().out.splitlines())
    assert cli == ["unpoison/cli", "0", "of", "3"]
    assert core == ["unpoison/core", "3", "of", "3"]
    assert whole[:3] == ["3", "of", "6"]


def test_a_change_that_the_tests_notice_is_killed_and_another_is_not(tool: ModuleType, tmp_path: Path) -> None:
    path = Path("unpoison/algorithms/intervals.py")
    source = (tool.SOURCES / path).read_text(encoding="utf-8")
    runner = tool.Runner(tmp_path, 1)
    first = next(mutant for mutant in tool.mutants(source, path) if mutant.after == "return None")
    assert runner.killed(first)
    assert runner.killed(first._replace(after=first.before)) is False
    assert (tmp_path / "0" / path).read_text(encoding="utf-8") == source
