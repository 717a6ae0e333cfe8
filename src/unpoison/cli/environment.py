"""The environment of the command line: what it adds for itself, and what the programs that it starts are given."""

from __future__ import annotations

import os

__all__ = ["environment_of_caller", "limit_threads"]

LIMITS = {"OPENBLAS_NUM_THREADS": "1"}
"""The matrices are small: more threads only wait for each other."""

_added: set[str] = set()


def limit_threads() -> None:
    """Set what the caller has not set."""
    _added.update(LIMITS.keys() - os.environ.keys())
    os.environ.update({name: LIMITS[name] for name in _added})


def environment_of_caller() -> dict[str, str]:
    """The environment without what was added to it."""
    return {name: value for name, value in os.environ.items() if name not in _added}
