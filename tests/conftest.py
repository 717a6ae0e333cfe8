"""Fixtures that every test may use, and the one way in which tests are skipped for a missing package.

`@pytest.mark.needs("torch", "transformers")` on a test, or `pytestmark = pytest.mark.needs(...)` in a module, which may
then import these packages at its top: both are skipped where one of them is not installed. A fixture calls
`needs.need`. The summary counts them. With `UNPOISON_NEEDS=all` in the environment, as `make check` sets it, such a
skip is a failure, and tests with `@pytest.mark.slow` run; without it these are skipped and counted too.

With `UNPOISON_PASSED=FILE` a run writes the tests that passed into the file if it does not exist, and leaves them out
if it does: so `.ci/run` runs `make test`, and then of `make check` what it adds.
"""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from needs import ABSENT, missing, need

if TYPE_CHECKING:
    from unpoison.injections.model import InjectionModel

settings.register_profile("unpoison", deadline=None, derandomize=True)  # no timed assertions, same cases every run
settings.load_profile("unpoison")

os.environ.setdefault("UNPOISON_FENCE_KEY", "tests")  # no test writes a key into its user's home
os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # one test a processor: threads that wait for each other take 4 times as long
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # it reports every pipeline to its makers otherwise

ROOT = Path(__file__).resolve().parent.parent


class Skipped(pytest.Module):
    """A module of tests that is not imported, since a package that it needs is not there."""

    package = ""

    def collect(self) -> Iterable[Any]:
        raise pytest.skip.Exception(f"{ABSENT}{self.package}", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    package = missing(_needs_of(module_path))
    if package is None:
        return None
    module: Skipped = Skipped.from_parent(parent, path=module_path)
    module.package = package
    return module


def _needs_of(path: Path) -> Iterator[str]:
    """The packages that `pytestmark` of a file names, read without importing it."""
    source = path.read_text(encoding="utf-8")
    if "mark.needs(" not in source:
        return
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark":
            for node in ast.walk(statement.value):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.needs":
                    yield from map(ast.literal_eval, node.args)


def pytest_configure(config: pytest.Config) -> None:
    _read_injections()
    file = os.environ.get("UNPOISON_PASSED")
    if file and not hasattr(config, "workerinput") and not Path(file).exists():
        config.stash[WRITTEN] = Path(file)
        del os.environ["UNPOISON_PASSED"]  # the workers and the programs that tests start write nothing


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    file = os.environ.get("UNPOISON_PASSED")
    passed = set(Path(file).read_text(encoding="utf-8").splitlines()) if file else ()
    left_out = [item for item in items if item.nodeid in passed]
    items[:] = [item for item in items if item.nodeid not in passed]
    config.hook.pytest_deselected(items=left_out)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("slow") and os.environ.get("UNPOISON_NEEDS") != "all":
        pytest.skip(SLOW)
    need(*(name for mark in item.iter_markers("needs") for name in mark.args))


WRITTEN = pytest.StashKey[Path]()
"""Where to write which tests passed."""

SLOW = "takes long: `make check` runs it, or UNPOISON_NEEDS=all"


def _absences(reporter: Any) -> Counter[str]:
    """Packages that were missing, with the number of tests and modules that were skipped for each."""
    reasons = [str(report.longrepr[2]) for report in reporter.stats.get("skipped", ()) if report.longrepr]
    return Counter(reason.partition(ABSENT)[2] for reason in reasons if ABSENT in reason)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if absences := _absences(terminalreporter):
        named = ", ".join(f"{package} {count}" for package, count in sorted(absences.items()))
        terminalreporter.section("packages that are not installed")
        terminalreporter.line(f"{absences.total()} tests and modules of tests skipped: {named}")
    skipped = terminalreporter.stats.get("skipped", ())
    if slow := sum(SLOW in str(report.longrepr) for report in skipped):
        terminalreporter.line(f"{slow} tests skipped that take long; `make check` runs them")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("UNPOISON_NEEDS") == "all" and reporter is not None and _absences(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if WRITTEN in session.config.stash and reporter is not None:
        broken = {report.nodeid for kind in ("failed", "error") for report in reporter.stats.get(kind, ())}
        passed = {report.nodeid for report in reporter.stats.get("passed", ())} - broken
        session.config.stash[WRITTEN].write_text("\n".join(sorted(passed)), encoding="utf-8")


def _read_injections() -> None:
    """A double reads in place of the transformer, which takes a hundred times as long, where no test asks for it."""
    from injection_double import WordsModel
    from unpoison.injections import model

    double = WordsModel()
    model._shipped = lambda: double  # type: ignore[assignment]


@pytest.fixture
def transformer(monkeypatch: pytest.MonkeyPatch) -> Iterator[InjectionModel]:
    """The transformer of injections reads; a test of what it finds is skipped without its weights."""
    from injection_double import SHIPPED
    from unpoison.injections import model
    from unpoison.text import analysis

    shipped = SHIPPED()
    if shipped is None:
        pytest.skip("the weights of the injection model are not there")
    monkeypatch.setattr(model, "_shipped", SHIPPED)
    analysis.clear()  # what the double found is not what the transformer finds
    yield shipped
    analysis.clear()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = data_folder()
    if not (folder / "nq_poisoned.jsonl").is_file():
        pytest.skip(f"SHARED DATA ABSENT: {folder} holds no evaluation data; set UNPOISON_DATA to run this test")
    return folder


def data_folder() -> Path:
    return Path(os.environ.get("UNPOISON_DATA", ROOT.parent / "shared" / "data"))
