"""What is finished, on the disk, so that a batch that was killed goes on where it was."""

from __future__ import annotations

import os
from pathlib import Path

from unpoison.batch.work import Finished
from unpoison.errors import InputError

__all__ = ["Shards"]

SUFFIX = ".part"


class Shards:
    """The finished parts of one output, a file for each, named by a hash of its rows and of what was done to them.

    A file is there whole or not at all, also after a power failure. Several processes may write the same folder.

    Args:
        folder: Made where there is none.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder

    def save(self, key: str, content: bytes) -> None:
        draft = self.draft(key)
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path(key))

    def read(self, key: str) -> Finished | None:
        """A finished part, None where there is none or the file is damaged."""
        try:
            return Finished.from_bytes(self._path(key).read_bytes())
        except (FileNotFoundError, InputError):
            return None

    def draft(self, name: str) -> Path:
        """Where this process may write a file that is to be renamed."""
        return self.folder / f"{name}.{os.getpid()}.draft"

    def clear(self) -> None:
        """Delete what a batch left here; other people's files stay, and so does the folder that holds them."""
        for path in self.folder.iterdir():
            if path.suffix in (SUFFIX, ".draft"):
                path.unlink(missing_ok=True)
        self.leave()

    def leave(self) -> None:
        """Delete the folder if it is empty."""
        try:
            self.folder.rmdir()
        except OSError:
            return

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"
