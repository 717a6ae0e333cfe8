"""Whether the tests of a module notice a change in it: `python tools/mutants.py`, or `make mutants`.

Each mutant is the package with one operator, constant, condition or call changed, in a copy; the test file that mirrors
the module runs on it (`src/unpoison/sources/policy.py`, `tests/sources/test_policy.py`). A mutant is killed if a test
fails or does not end. What survives is listed: most are tests to write, some are changes that change nothing, such as
the size of a cache. Then comes what was killed, by room. Places are drawn from a seed, so two runs compare.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, zip_longest
from pathlib import Path
from queue import Queue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"

SLOWEST = 120.0
"""Seconds of a mirror's own run above which its module takes no part."""

PATIENCE = 10
"""A mutant that takes so many times as long as its mirror alone, and half a minute, does not end."""

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip


class Mutant(NamedTuple):
    """A change of one place.

    Attributes:
        path: The file, relative to `src`.
        line: Where it is changed, from 1.
        start, end: The bytes of the line that are changed.
        before, after: The changed expression or statement.
    """

    path: Path
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"src/{self.path}:{self.line}: {self.before} -> {self.after}"

    def of(self, source: str) -> str:
        """The whole file with the change."""
        lines = source.encode().splitlines(keepends=True)
        line = lines[self.line - 1]
        lines[self.line - 1] = line[: self.start] + self.after.encode() + line[self.end :]
        return b"".join(lines).decode()


def mutants(source: str, path: Path = Path()) -> list[Mutant]:
    """Every mutant of a source, in the order of its text; a few may be no Python."""
    found, lines = [], source.encode().splitlines()
    for node in _places(ast.parse(source)):
        start, end = node.col_offset, node.end_col_offset
        after = _changed(node) if node.lineno == node.end_lineno else None
        if after is not None:
            before = lines[node.lineno - 1][start:end].decode()
            found.append(Mutant(path, node.lineno, start, end or 0, before, after))
    return found


def _places(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """The expressions and statements that may be changed: no annotation, decorator, docstring or error."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("__"):
            continue
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from _places(ast.Expression(node.value))
            continue
        if isinstance(node, ast.arg) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        if isinstance(node, ast.ClassDef):  # not how a dataclass is stored
            yield from _places(ast.Module(node.body, []))
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for part in (node.args.defaults, [one for one in node.args.kw_defaults if one is not None], node.body):
                yield from _places(ast.Module([*part], []))  # type: ignore[list-item]
            continue
        if isinstance(node, (ast.expr, ast.stmt)):
            yield node
        yield from _places(node)


def _changed(node: ast.AST) -> str | None:
    """The text that stands for a node in its mutant; None if it has none."""
    match node:
        case ast.Compare(ops=[operator]) | ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in SWAPS:
            swapped = SWAPS[type(operator)]()
            field = "ops" if isinstance(node, ast.Compare) else "op"
            whole = type(node)(**{**vars(node), field: [swapped] if field == "ops" else swapped})
            return f"({ast.unparse(whole)})"
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return f"({ast.unparse(inner)})"
        case ast.Constant(value=bool(value)):
            return str(not value)
        case ast.Constant(value=int(value)):
            return str(value + 1)
        case ast.Constant(value=float(value)):
            return repr(value * 2 if value else 1.0)
        case ast.IfExp(test=test, body=body, orelse=other):
            return f"({ast.unparse(ast.IfExp(test, other, body))})"
        case ast.Expr(value=ast.Call()):
            return "pass"
        case ast.Continue():
            return "break"
        case ast.Break():
            return "continue"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            return "return None"
        case _:
            return None


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _read(path: Path) -> str:
    return (SOURCES / path).read_text(encoding="utf-8")


def mirror(path: Path) -> Path:
    """The test file of a source, by its name."""
    package, *rooms = path.parent.parts
    above = ROOT / "tests" if package == "unpoison" else ROOT / "tests" / "lab"
    return above.joinpath(*rooms, f"test_{path.name}")


def room(path: Path) -> str:
    """The folder of a house that holds a source; the house itself for a file beside the folders."""
    return "/".join(path.parent.parts[:2])


def drawn(count: int, seed: int, only: str = "") -> list[Mutant]:
    """Mutants from files with a mirror: each room equally often and in it each file, as far as there are places."""
    chance = random.Random(seed)  # noqa: S311  no secret
    files = [path.relative_to(SOURCES) for path in sorted(SOURCES.rglob("*.py"))]
    files = [path for path in files if only in str(path) and mirror(path).is_file()]
    rooms = defaultdict[str, list[list[Mutant]]](list)
    for path in files:
        own = mutants(_read(path), path)
        chance.shuffle(own)
        rooms[room(path)].append(own)
    for offered in rooms.values():
        chance.shuffle(offered)
    every = in_turn([list(in_turn(offered)) for offered in rooms.values()])
    return list(islice((mutant for mutant in every if _compiles(mutant.of(_read(mutant.path)))), count))


def in_turn(lists: Sequence[Sequence[Mutant]]) -> Iterator[Mutant]:
    """The first of each, then the second of each, until all are empty."""
    return (one for turn in zip_longest(*lists) for one in turn if one is not None)


class Runner:
    """Runs mirrors on copies of the sources, one copy for each process."""

    def __init__(self, folder: Path, processes: int) -> None:
        self._copies: Queue[Path] = Queue()
        for number in range(processes):
            shutil.copytree(SOURCES, folder / str(number), ignore=shutil.ignore_patterns("__pycache__"))
            self._copies.put(folder / str(number))
        self._alone: dict[Path, float] = {}

    def killed(self, mutant: Mutant) -> bool | None:
        """Whether its mirror notices it; None if the mirror fails without it, or takes too long."""
        copy, tests = self._copies.get(), mirror(mutant.path)
        try:
            if tests not in self._alone:
                began = time.monotonic()
                passed = self._passes(copy, tests, SLOWEST)
                self._alone[tests] = time.monotonic() - began if passed else SLOWEST
            if self._alone[tests] >= SLOWEST:
                return None
            before = (copy / mutant.path).read_bytes()
            (copy / mutant.path).write_text(mutant.of(before.decode()), encoding="utf-8")
            try:
                return not self._passes(copy, tests, max(30, PATIENCE * self._alone[tests]))
            finally:
                (copy / mutant.path).write_bytes(before)
        finally:
            self._copies.put(copy)

    def _passes(self, copy: Path, tests: Path, seconds: float) -> bool:
        command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", str(tests)]
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", type=int, default=200, help="changes to try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="PART", help="files whose path holds this, such as sources/")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--least", type=float, default=0.75, help="the share to kill, below which this fails")
    options = parser.parse_args(given)
    tried, killed = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.processes) as pool:
        runner = Runner(Path(folder), options.processes)
        chosen = drawn(options.places, options.seed, options.only)
        for mutant, noticed in zip(chosen, pool.map(runner.killed, chosen), strict=True):
            if noticed is None:
                print(f"left out, its tests fail or take long without a change: {mirror(mutant.path).name}", flush=True)
                continue
            tried[room(mutant.path)] += 1
            killed[room(mutant.path)] += noticed
            if not noticed:
                print(f"survives {mutant}", flush=True)
    for name in sorted(tried):
        print(f"{name:30} {killed[name]:3} of {tried[name]:3}")
    print(f"{killed.total()} of {tried.total()} mutants killed by the test file that mirrors them")
    return int(killed.total() < options.least * tried.total())


if __name__ == "__main__":
    sys.exit(main())
