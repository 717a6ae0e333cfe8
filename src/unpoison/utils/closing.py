"""What holds a file or a connection is a context manager that closes itself."""

from __future__ import annotations

from typing import Self

__all__ = ["Closing"]


class Closing:
    """`with` for a class that has `close`; an error inside goes on."""

    __slots__ = ()

    def close(self) -> None:
        """Let go of files and connections; most have nothing to close."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
