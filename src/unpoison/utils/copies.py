"""Copies and pickles of objects that hold locks, sessions of a runtime, or connections."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import Any, Self

__all__ = ["CopyableLock", "Remade"]


class CopyableLock:
    """A lock that can be copied and pickled; each copy is a new lock."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class Remade:
    """A model or a connection: pickled as the arguments of its constructor, and its own deep copy.

    Loaded data and caches stay in their process. Pickles with the same arguments are loaded once per process.
    """

    __slots__ = ("_made_by",)  # not in the instance's dictionary, which logs may show: an argument may be a key

    _made_by: tuple[Callable[..., Any], tuple[Any, ...], tuple[tuple[str, Any], ...]]

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        made = super().__new__(cls)
        made._made_by = cls, arguments, tuple(options.items())
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, self._made_by

    def __deepcopy__(self, _memo: object) -> Self:
        return self


def _make(kind: Callable[..., Any], arguments: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> Any:
    try:
        return _made_again(kind, arguments, options)
    except TypeError:  # an argument that cannot be hashed
        return kind(*arguments, **dict(options))


@lru_cache(8)
def _made_again(kind: Callable[..., Any], arguments: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> Any:
    return kind(*arguments, **dict(options))
