"""No defense stands on more modules and lines than its method needs."""

import ast
import importlib.util
from functools import cache
from pathlib import Path

import pytest

from code_lines import code_lines
from unpoison.core import registry

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "unpoison"


@cache
def imported_at_once(module: str) -> set[str]:
    """What of the package is imported with a module: by its statements outside functions, not for types alone."""
    path = Path(importlib.util.find_spec(module).origin)
    found = {module.rpartition(".")[0]} - {""}
    statements = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while statements:
        node = statements.pop()
        if isinstance(node, ast.If):
            statements += node.orelse if "TYPE_CHECKING" in ast.unparse(node.test) else [*node.body, *node.orelse]
        elif isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return {name for name in found if name.split(".")[0] == "unpoison" and is_module(name)}


def is_module(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def closure(module: str) -> tuple[int, int]:
    """How many modules are imported with a module, itself and packages included, and their lines of code."""
    seen, waiting = set[str](), [module]
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            waiting += imported_at_once(name)
    return len(seen), sum(code_lines(Path(importlib.util.find_spec(name).origin)) for name in seen)


DEFENSES = {"unpoison.defenses.grada": (35, 4_200)} | {
    registry.find("defenses", name).__module__: (60, 9_000)
    for name in registry.names("defenses")
    if name not in ("grada", "guard")
}
"""The most modules and lines of code that each may stand on; Guard is all of them together."""


@pytest.mark.parametrize("module", DEFENSES)
def test_a_defense_stands_on_little(module: str) -> None:
    modules, lines = closure(module)
    most_modules, most_lines = DEFENSES[module]
    assert modules <= most_modules
    assert lines <= most_lines
