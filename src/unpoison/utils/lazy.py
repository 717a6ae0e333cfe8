"""Lazy imports of a package's public names, so that `import unpoison` stays fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a package.

    Args:
        package: Its full name.
        homes: Public name to defining module, relative to the package (`grada`) or absolute (`unpoison.core.answers`).
    """

    def public(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        return getattr(import_module(home if home.startswith("unpoison.") else f"{package}.{home}"), name)

    return public
