"""The budgets of the house, which fail and do not drift; and the page on the architecture, which says what is there."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from typer.main import get_command

import unpoison
from code_lines import code_lines
from unpoison.cli import COMMANDS, app
from unpoison.core import registry
from unpoison.defenses.base import ScreeningOptions

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "unpoison"
LAB = ROOT / "src" / "unpoison_lab"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

LINES = {
    "unpoison": 29_222,
    "unpoison/agents": 1_987,  # where calls go: the mechanism, the gate of the proxy, three frameworks
    "unpoison/algorithms": 533,
    "unpoison/core": 1_187,
    "unpoison/injections": 1_241,  # clauses of long sentences, runs of fragments, what a key for machines holds
    "unpoison/models": 2_985,  # a second reader, for all languages but English
    "unpoison/retrieval": 1_034,
    "unpoison/runtime": 483,
    "unpoison/scan": 3_712,  # readers of nine more types of files, each place named
    "unpoison/check": 284,
    "unpoison/serve": 1_819,
    "unpoison/sources": 1_113,
    "unpoison_lab": 10_441,
}
"""The most lines of code of each house and room."""

MODULES = {"unpoison": 226, "unpoison_lab": 80}
"""The most modules of each house."""

BUDGETS = {
    "modules with one importer": 37,
    "names that nobody imports": 0,
    "modules without a test file of their name": 22,
    "lines of code in tests": 44_705,
    "stays of `unpoison evaluate`": 22,
    "commands": 14,
    "options of one command": 20,
    "own options of one defense": 10,
    "names in unpoison.__all__": 20,
    "words in README.md": 900,
    "words in docs": 61_922,
}
"""The most that there may be of each. Lower a number where it is undercut by much; a higher one needs a reason."""


SOURCES = sorted([*PACKAGE.rglob("*.py"), *LAB.rglob("*.py")])


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def imported_by(path: Path, modules: set[str]) -> Iterator[str]:
    """The modules of the package that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)


def with_one_importer() -> list[str]:
    """Modules that one other imports and nobody else; packages, commands and what the registry names are left out."""
    files = {module_of(path): path for path in SOURCES}
    importers = defaultdict[str, set[str]](set)
    for name, path in files.items():
        for used in imported_by(path, set(files)):
            importers[used].add(name)
    kinds = ("defenses", "attacks", "ablations", "commands")
    named = {target.partition(":")[0] for kind in registry.BUILT_IN.values() for target in kind.values()}
    named |= {point.module for kind in kinds for point in registry.entry_points_of(kind).values()}
    named |= {f"unpoison.cli.{name.replace('-', '_')}" for group in COMMANDS.values() for name in group}
    plain = [name for name, path in files.items() if path.stem != "__init__" and name not in named]
    return [name for name in plain if len(importers[name] - {name}) == 1]


def idle_names() -> list[str]:
    """What a module lists in `__all__` and no other file has a word for."""
    folders = ("tests", "benchmarks", "tools", "examples", "packages")
    files = [*SOURCES, ROOT / "pyproject.toml", *(path for folder in folders for path in (ROOT / folder).rglob("*.py"))]
    files += (ROOT / "docs").rglob("*.md")
    said = {path: set(re.findall(r"\w+", path.read_text(encoding="utf-8"))) for path in files}
    idle = []
    for path in SOURCES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                listed = {part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)}
                listed -= set[Any]().union(*(said[other] for other in files if other != path))
                idle += [f"{module_of(path)}.{name}" for name in sorted(listed)]
    return idle


def commands(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its full name."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
    else:
        for part, below in inner.items():
            yield from commands(below, f"{name} {part}".strip())


def options_of(command: Any) -> int:
    return sum(one.param_type_name == "option" and one.name != "help" for one in command.params)


def own_options(defense: type) -> int:
    """Arguments of a defense's own constructor, its models and what every defense takes left out."""
    shared = set(ScreeningOptions.__annotations__) | {"keep", "shell"}
    models = {"encoder", "generator", "nli", "similarity", "scorer", "model", "beliefs", "models"}
    return len(set(inspect.signature(defense).parameters) - shared - models)


STAYS = """
import sys
from unpoison.cli import app

entered = set()

def enter(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    if event == "call" and name.startswith("unpoison_lab.") and frame.f_code.co_name != "<module>":
        while frame is not None and frame.f_code.co_name != "<module>":  # one on the way is that of an import
            frame = frame.f_back
        if frame is None or not frame.f_globals["__name__"].startswith("unpoison_lab."):
            entered.add(name)

sys.setprofile(enter)
try:
    app(["evaluate", "--limit", "2"])
finally:
    sys.setprofile(None)
    print("stays", *sorted(entered))
"""


def stays(folder: Path) -> list[str]:
    """The modules of the laboratory in which `unpoison evaluate` on the sample comes to a function, once imported."""
    done = subprocess.run([sys.executable, "-c", STAYS], cwd=folder, capture_output=True, text=True, check=False)
    return next(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("stays"))


def words(*pages: Path) -> int:
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


def largest(counts: dict[str, int]) -> tuple[int, str]:
    name = max(counts, key=lambda name: counts[name])
    return counts[name], name


def measured(budget: str) -> tuple[int, str]:
    """A figure, and what it is about."""
    match budget:
        case "modules without a test file of their name":
            inner = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__")]
            bare = [str(one) for one in inner if not (ROOT / "tests" / one.parent / f"test_{one.name}").is_file()]
            return len(bare), ", ".join(sorted(bare))
        case "names that nobody imports":
            idle = idle_names()
            return len(idle), ", ".join(idle)
        case "modules with one importer":
            found = with_one_importer()
            return len(found), ", ".join(found)
        case "lines of code in tests":
            return sum(code_lines(path) for path in (ROOT / "tests").rglob("*.py")), ""
        case "stays of `unpoison evaluate`":
            with TemporaryDirectory() as folder:
                entered = stays(Path(folder))
            return len(entered), ", ".join(entered)
        case "commands":
            names = list(getattr(get_command(app), "commands", {}))
            return len(names), ", ".join(names)
        case "options of one command":
            return largest({name: options_of(command) for name, command in commands(get_command(app))})
        case "own options of one defense":
            return largest({n: own_options(registry.find("defenses", n)) for n in registry.names("defenses")})
        case "names in unpoison.__all__":
            return len(unpoison.__all__), ""
        case "words in README.md":
            return words(ROOT / "README.md"), ""
        case "words in docs":
            return words(*(ROOT / "docs").rglob("*.md")), ""
    raise AssertionError(budget)


@pytest.mark.parametrize("room", LINES)
def test_a_room_is_no_larger_than_planned(room: str) -> None:
    found = sum(map(code_lines, (PACKAGE.parent / room).rglob("*.py")))
    assert found <= LINES[room], f"{room}: {found:,} of {LINES[room]:,} lines of code"


@pytest.mark.parametrize("house", MODULES)
def test_a_house_has_no_more_modules_than_planned(house: str) -> None:
    assert len([*(PACKAGE.parent / house).rglob("*.py")]) <= MODULES[house]


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_budget_holds(budget: str) -> None:
    figure, about = measured(budget)
    assert figure <= BUDGETS[budget], f"{budget}: {figure:,} of {BUDGETS[budget]:,}. {about}"


def test_every_command_has_a_question_and_no_other_is_there() -> None:
    assert set(getattr(get_command(app), "commands", {})) == {name for group in COMMANDS.values() for name in group}
    assert all(question.endswith("?") for group in COMMANDS.values() for question in group.values())


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.*")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_the_product_never_names_the_laboratory(path: Path) -> None:
    """Neither in an import nor in a string: what the laboratory adds is found as an entry point."""
    if path.suffix != ".pyc" and path.is_file():
        assert LAB.name.encode() not in path.read_bytes()


def layer_of() -> dict[str, int]:
    """The rooms of the product, each with its place in the contract; 0 is at the top."""
    read = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = read["tool"]["importlinter"]["contracts"][0]["layers"]
    return {room.strip(): place for place, layer in enumerate(layers) for room in layer.split(":")}


def test_no_string_points_upwards() -> None:
    """A module that a room names in a string, to be imported later, stands below it as one that it imports does."""
    layers = layer_of()
    rooms = {name.removeprefix("unpoison."): place for name, place in layers.items()}
    for path in sorted(PACKAGE.glob("*/**/*.py")):
        room = path.relative_to(PACKAGE).parts[0]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
                named = re.fullmatch(r"unpoison\.([a-z_]+)(?:\.[a-z_]+)*(?::\w+)?", node.value)
                if named and named[1] in rooms:
                    assert rooms[room] <= rooms[named[1]], f"{path}:{node.lineno}: {node.value}"


def test_the_picture_is_drawn_from_the_import_contract():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "draw_house.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_every_folder_is_in_the_picture_once():
    picture = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    names = re.findall(r"<text x=[^>]*>([a-z]+)</text>", picture)
    assert sorted(names) == sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    assert LAB.name in picture


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([a-z_/]+/[a-z_]+\.(?:py|md))`", PAGE))))
def test_every_file_that_the_page_names_exists(path: str):
    assert (PACKAGE / path).exists() or (LAB.parent / path).exists() or (ROOT / path).exists()


def test_a_class_name_means_one_thing():
    """Of public classes of modules; two adapters of frameworks share the name of the tool that they make."""
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.relative_to(PACKAGE.parent).as_posix())
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert set(twice) <= {"ScreeningTool"}, twice
