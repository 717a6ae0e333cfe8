"""How long `import unpoison` takes, what it must not bring along, and how much the core installs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from statistics import median

import unpoison

__all__ = ["import_seconds", "installed_megabytes", "uninvited"]

UNINVITED = ("torch", "transformers", "sentence_transformers", "sklearn", "scipy", "onnxruntime", "openai", "anthropic")
"""What no plain import may load."""


def _in_fresh_interpreter(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603  our own code


def import_seconds(statement: str, times: int = 5) -> float:
    """Median over fresh interpreters, the interpreter's own start not counted."""
    code = f"import time; begin = time.perf_counter(); {statement}; print(time.perf_counter() - begin)"
    return median(float(_in_fresh_interpreter(code)) for _ in range(times))


def uninvited(statement: str) -> list[str]:
    """Which heavy modules the import loads although nothing asked for them."""
    code = f"import sys; {statement}; print(*(name for name in {UNINVITED!r} if name in sys.modules))"
    return _in_fresh_interpreter(code).split()


def installed_megabytes() -> dict[str, float]:
    """Size of the package and of everything that its core requires, as delivered (without compiled bytecode)."""
    sizes = {"unpoison": _megabytes(Path(unpoison.__file__).parent.rglob("*"))}
    for name in _required("unpoison", set()):
        files = distribution(name).files or ()
        sizes[name] = _megabytes(Path(str(file.locate())) for file in files)
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def _megabytes(paths: Iterable[Path]) -> float:
    return sum(path.stat().st_size for path in paths if path.is_file() and path.suffix != ".pyc") / 1e6


def _required(name: str, seen: set[str]) -> Iterator[str]:
    """Names of all packages that one requires, without extras; those not installed here are left out."""
    from packaging.requirements import Requirement

    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if not wanted or requirement.name in seen:
            continue
        seen.add(requirement.name)
        try:
            distribution(requirement.name)
        except PackageNotFoundError:
            continue
        yield requirement.name
        yield from _required(requirement.name, seen)
