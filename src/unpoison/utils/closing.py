"""A base class for context managers that close a file or a connection."""

from __future__ import annotations

from typing import Self

__all__ = ["Closing"]


class Closing:
    """A context manager that calls `close`."""

    __slots__ = ()

    def close(self) -> None:
        """Close files and connections; does nothing by default."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
