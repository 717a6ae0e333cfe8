"""How many small faults the tests notice: `python -m benchmarks mutants [FOLDER_OR_FILE ...] --total 300`.

`--total` draws so many of all modules together, each fault as likely as any other, and the rate with its interval
stands under the table; `--sample` draws so many of each module.

Each mutant is one module with one fault of `mutations.py`, chosen at random with a seed. It is compiled in memory, in a
process of its own, so the source on disk is never touched. Only the tests that mirror the module run, until the first
that fails. What is done stands in the results file, one JSON line a mutant, and is not done again as long as module and
tests are the same; so a run may be stopped and continued. `equivalent_mutants.jsonl` names those that change no
behaviour, with the reason; they do not count.

Why not mutmut or cosmic-ray: mutmut leaves constants outside functions alone, where the thresholds stand, and wants a
run of all tests first; cosmic-ray writes each fault into the source on disk. Neither takes a sample.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.machinery
import importlib.util
import json
import math
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.quality.mutations import changes

__all__: list[str] = []

ROOT = Path(__file__).resolve().parents[2]
SOURCE, TESTS = ROOT / "src" / "unpoison", ROOT / "tests"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.jsonl")
MEASURES = ("tallies", "measures", "matching", "certified", "noise", "rates")
ROOMS = ("algorithms", "text", "defenses", "beliefs", "scan", "models", "bench/redteam", "serve")
DEFAULT = (*ROOMS, *(f"bench/evaluation/{name}.py" for name in MEASURES))
PRELOADED = [
    "pytest",
    "hypothesis",
    "numpy",
    "scipy.sparse.csgraph",
    "scipy.cluster.hierarchy",
    "rapidfuzz",
    "benchmarks.quality.mutations",
]
UNWANTED = "not torch and not browser and not ray"
ELSEWHERE = ("test_processes.py", "test_process.py")
"""Tests in processes of their own, where the fault is not."""
MEMORY = 8 << 30  # bytes of address space: a mutant that builds without end fails, and not the machine
SPARE = 20  # seconds of processor time beside four times what the tests take


def modules(names: list[str]) -> list[Path]:
    """The modules meant by folders and files below `src/unpoison`, or by glob patterns."""
    found: list[Path] = []
    for name in names:
        path = SOURCE / name
        found += sorted(path.glob("*.py")) if path.is_dir() else sorted(SOURCE.glob(name))
    return [path for path in dict.fromkeys(found) if path.name != "__init__.py"]


def mirrored(module: Path) -> list[Path]:
    """The test files of a module, the nearest first.

    Those of its name and of the beginning of its name (`radar_static`: `test_radar_static*`, `test_radar*`), then
    those that import it, then those named as the modules of its room that import it. Where there is none, those of its
    folder that use a public name of it.
    """
    words = module.stem.split("_")
    stems = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
    importers = [path.stem for path in sorted(module.parent.glob("*.py")) if _imports(path, module) and path != module]
    folder = TESTS / module.parent.relative_to(SOURCE)
    found = [path for stem in stems for path in _named(folder, stem)]
    found += [path for path in sorted(TESTS.rglob("test_*.py")) if _imports(path, module)]
    found += [path for stem in importers for path in _named(folder, stem)]
    return _usable(found) or _usable(_using(folder, module)) or _usable(sorted(folder.glob("test_*.py")))


def _usable(paths: list[Path]) -> list[Path]:
    return [path for path in dict.fromkeys(paths) if path.name not in ELSEWHERE]


def _using(folder: Path, module: Path) -> list[Path]:
    """The tests of a folder that use a public name of the module."""
    public = re.findall(r'"(\w+)"', "".join(re.findall(r"__all__ = \[(.*?)\]", _text(module), re.DOTALL)))
    using = re.compile(rf"\b({'|'.join(public) or '(?!)'})\b")
    return [path for path in sorted(folder.glob("test_*.py")) if using.search(_text(path))]


def _named(folder: Path, stem: str) -> list[Path]:
    return sorted(path for path in folder.glob(f"test_*{stem}*.py") if re.search(rf"_{stem}(_|\.)", path.name))


def _imports(path: Path, module: Path) -> bool:
    room = ".".join(["unpoison", *module.parent.relative_to(SOURCE).parts])
    name = re.escape(module.stem)
    return (
        re.search(rf"from {room}\.{name} |from {room} import [^\n]*\b{name}\b|import {room}\.{name}\b", _text(path))
        is not None
    )


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def noticed(module: Path, index: int | None, tests: list[Path], limit: float | None) -> tuple[str, float]:
    """As `run`, the nearest test file first: it notices most, and to collect the others takes longer than to run it."""
    spent, results = 0.0, set[str]()
    for part in filter(None, (tests[:1], tests[1:])):
        result, seconds = run(module, index, part, limit)
        spent += seconds
        results.add(result)
        if result not in ("survived", "untested"):
            return result, spent
    return ("survived" if "survived" in results else "untested"), spent


def run(module: Path, index: int | None, tests: list[Path], seconds: float | None) -> tuple[str, float]:
    """Run the tests against one mutant, or the module as it is: what came of it, and the processor seconds it took."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(module, index, tests, seconds, theirs))
    process.start()
    theirs.close()
    process.join(None if seconds is None else 20 * seconds)  # the clock only ends what waits for ever
    waiting = process.is_alive()
    if waiting:
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    try:
        code, spent = mine.recv()
    except EOFError:  # it ended without a word
        code, spent = process.exitcode, seconds or 0.0
    if waiting or code == -signal.SIGXCPU:
        return "endless", spent
    if code == 5:  # none of the tests is wanted here: they load real checkpoints
        return "untested", spent
    if code == 0:
        return "survived", spent
    # 1: a test failed; 2 to 4: they could not even be collected, which is noticed too.
    return ("killed" if code in (1, 2, 3, 4) else "broken"), spent


def _child(module: Path, index: int | None, tests: list[Path], seconds: float | None, answer: Any) -> None:
    os.setpgid(0, 0)
    quiet = os.open(os.devnull, os.O_WRONLY)
    if not os.environ.get("UNPOISON_MUTANTS_SHOW"):
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
    os.chdir(ROOT)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    if index is not None:
        sys.meta_path.insert(0, Finder(module, index))
    import pytest

    early = "ignore::pytest.PytestAssertRewriteWarning"  # what was imported before the fork is not rewritten
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "-W", early, "-m", UNWANTED]
    code = int(pytest.main([*arguments, *map(str, tests)], plugins=[Quick()]))
    used = resource.getrusage(resource.RUSAGE_SELF)
    answer.send((code, used.ru_utime + used.ru_stime))
    answer.close()
    os._exit(0)  # nothing that a mutant left behind may keep the process


class Quick:
    """Lets hypothesis stop at the first failing example: nobody reads the smallest one here."""

    def pytest_configure(self, config: Any) -> None:
        del config
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings(), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")


class Finder:
    """Gives one module with its fault, every other one as it is."""

    def __init__(self, module: Path, index: int) -> None:
        self.module, self.index = module, index
        self.name = ".".join(["unpoison", *module.relative_to(SOURCE).with_suffix("").parts])

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(
            name, self.module, loader=Loader(name, str(self.module), self.index)
        )


class Loader(importlib.machinery.SourceFileLoader):
    """Compiles a source file with one fault, past every cache."""

    def __init__(self, name: str, path: str, index: int) -> None:
        super().__init__(name, path)
        self.index = index

    def get_code(self, fullname: str) -> Any:
        tree = ast.parse(Path(self.path).read_text(encoding="utf-8"))
        changes(tree)[self.index].apply()
        return compile(ast.fix_missing_locations(tree), self.path, "exec")


def digest(paths: list[Path]) -> str:
    return hashlib.sha256("\0".join(_text(path) for path in paths).encode()).hexdigest()[:12]


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file, none where it does not exist."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def draw(names: list[Path], sample: int, total: int | None, seed: int, only: str) -> dict[Path, list[int]]:
    """Which mutants of each module run: `sample` of each, or `total` of all together."""
    everything = dict[Path, list[int]]()
    for module in names:
        lines = _text(module).splitlines()
        found = enumerate(changes(ast.parse(_text(module))))
        everything[module] = [i for i, change in found if only in change.text or only in lines[change.line - 1]]
    if total is None:
        return {module: _some(all_of, sample, f"{seed} {module.relative_to(SOURCE)}")
                for module, all_of in everything.items()}  # fmt: skip
    pairs = [(module, i) for module, all_of in everything.items() for i in all_of]
    drawn = set(random.Random(seed).sample(pairs, min(total, len(pairs))))
    return {module: [i for i in all_of if (module, i) in drawn] for module, all_of in everything.items()}


def _some(numbers: list[int], count: int, seed: str) -> list[int]:
    return sorted(random.Random(seed).sample(numbers, min(count, len(numbers))))


def measured(module: Path, chosen: list[int], results: Path) -> Iterator[dict[str, Any]]:
    """The mutants of one module, run or remembered."""
    name = str(module.relative_to(SOURCE))
    tests = mirrored(module)
    found = changes(ast.parse(_text(module)))
    lines = _text(module).splitlines()
    source, tested = digest([module]), digest(tests)
    # What was noticed stays so when tests are added; what survived gets another try.
    done = {(row["index"]): row for row in read(results) if row["module"] == name and row["source"] == source
            and (row["result"] != "survived" or row["tests"] == tested)}  # fmt: skip
    equivalent = {(row["line"], row["change"]) for row in read(EQUIVALENT) if row["module"] == name}
    limit = None
    for i in chosen:
        change, text = found[i], lines[found[i].line - 1].strip()
        if (text, change.text) in equivalent:
            yield {"module": name, "result": "equivalent"}
            continue
        if i not in done:
            if limit is None:
                result, seconds = noticed(module, None, tests, None)
                if result == "untested":
                    yield from ({"module": name, "result": "untested"} for _ in chosen)
                    return
                if result != "survived":
                    sys.exit(f"the tests of {name} fail without any fault: {' '.join(map(str, tests))}")
                limit = 4 * seconds + SPARE
            result, seconds = noticed(module, i, tests, limit)
            done[i] = {"module": name, "index": i, "number": change.line, "line": text, "change": change.text,
                       "result": result, "seconds": round(seconds, 1), "source": source, "tests": tested}  # fmt: skip
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(done[i]) + "\n")
            print(f"{result:9} {seconds:5.1f} s  {name}:{change.line}  {change.text}", file=sys.stderr, flush=True)
        yield done[i]


def report(rows: list[dict[str, Any]]) -> str:
    """A table of the modules, and what survived."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row["module"]][row["result"]] += 1
        counts["all"][row["result"]] += 1
    lines = [
        "| module | mutants | killed | survived | equivalent | share killed |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, count in sorted(counts.items(), key=lambda item: (item[0] == "all", item[0])):
        killed, survived = count["killed"] + count["endless"], count["survived"] + count["broken"]
        share = f"{killed / (killed + survived):.0%}" if killed + survived else "-"
        lines.append(f"| {name} | {killed + survived} | {killed} | {survived} | {count['equivalent']} | {share} |")
    killed, whole = counts["all"]["killed"] + counts["all"]["endless"], sum(counts["all"].values())
    whole -= counts["all"]["equivalent"] + counts["all"]["untested"]
    low, high = wilson(killed, whole)
    lines += ["", f"{killed} of {whole} mutants were noticed: {killed / max(whole, 1):.0%} [{low:.0%}, {high:.0%}]; "
              f"{counts['all']['equivalent']} more change no behaviour, {counts['all']['untested']} stand in modules "
              "whose tests load real checkpoints"]  # fmt: skip
    lines += ["", *(f"{row['result']}: {row['module']}:{row['number']}  {row['change']}" for row in rows
                    if row["result"] in ("survived", "broken"))]  # fmt: skip
    return "\n".join(lines)


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson, 1927)."""
    if not trials:
        return 0.0, 1.0
    z, share = 1.96, successes / trials
    middle, half = share + z**2 / (2 * trials), z * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return (middle - half) / (1 + z**2 / trials), (middle + half) / (1 + z**2 / trials)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "modules", nargs="*", default=list(DEFAULT), help="below src/unpoison: a folder, a file, a pattern"
    )
    parser.add_argument("--sample", type=int, default=20, help="mutants of each module")
    parser.add_argument("--total", type=int, help="mutants of all modules together, instead of so many of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="mutants whose line or description holds this text")
    parser.add_argument("--list", action="store_true", help="list the mutants that would run, and their tests")
    parser.add_argument("--results", type=Path, default=ROOT / "mutants.jsonl")
    options = parser.parse_args()
    began = time.monotonic()
    rows: list[dict[str, Any]] = []
    chosen = draw(modules(options.modules), options.sample, options.total, options.seed, options.only)
    for module, indices in chosen.items():
        if options.list:
            print(module.relative_to(SOURCE), *(path.relative_to(TESTS) for path in mirrored(module)))
            continue
        rows += measured(module, indices, options.results)
    if rows:
        print(report(rows))
        print(f"\n{time.monotonic() - began:.0f} seconds", file=sys.stderr)


if __name__ == "__main__":
    main()
