"""Packages that some tests need and `make test` does not install; `conftest.py` says how tests name them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

import pytest

__all__ = ["ABSENT", "missing", "need"]

ABSENT = "needs the package "
"""How the reason of a skip for a missing package begins."""


def missing(packages: Iterable[str]) -> str | None:
    """The first of the packages that is not installed."""
    return next((package for package in packages if not _is_installed(package)), None)


def need(*packages: str) -> None:
    """Skip the running test where one of the packages is not installed; for fixtures, which take no marks."""
    if package := missing(packages):
        pytest.skip(f"{ABSENT}{package}")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the parent of a dotted name
        return False
