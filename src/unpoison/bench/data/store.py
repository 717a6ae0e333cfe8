"""The folder of built evaluation files: names to paths, hashes compared, nothing half-written under a final name."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from unpoison.bench.data.catalogue import DataFile, catalogue, data_file, name_of
from unpoison.errors import InputError

__all__ = ["BUILT", "FOLDER", "Store", "data_folder", "data_path", "is_name"]

FOLDER = "UNPOISON_DATA"
"""The environment variable with the folder of evaluation files."""


BUILT = "evaluation-data"
"""What stands for the folder of built files where a command takes a folder of data sets."""


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """`UNPOISON_DATA`, else `unpoison/data` in the user's cache folder (XDG; on Windows the local application data)."""
    if environment.get(FOLDER):
        return Path(environment[FOLDER])
    variable, fallback = ("LOCALAPPDATA", "AppData/Local") if sys.platform == "win32" else ("XDG_CACHE_HOME", ".cache")
    return Path(environment.get(variable) or Path.home() / fallback, "unpoison", "data")


class Store:
    """A folder with `NAME.jsonl` of each built file and `sources/`, what was downloaded for them.

    Args:
        folder: By default `UNPOISON_DATA`, else in the user's cache.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = default_folder() if folder is None else Path(folder)

    def path(self, file: DataFile) -> Path:
        """Where a built file is, or will be."""
        return self.folder / f"{file.name}.jsonl"

    def has(self, file: DataFile) -> bool:
        """Whether the file is there with the size that it must have; a fast look, no proof."""
        with suppress(OSError):
            return self.path(file).stat().st_size == file.bytes
        return False

    def verify(self, file: DataFile) -> Path:
        """The path of a built file whose hash was compared now.

        Raises:
            InputError: It is not there, or its content is another; the message has the command that gets it.
        """
        path = self.path(file)
        try:
            right = path.stat().st_size == file.bytes and digest_of(path) == file.sha256
        except OSError:
            also = f"; it cannot be rebuilt ({file.unavailable})" if file.unavailable else ""
            raise InputError(f"{file.name} is not on this machine: unpoison data get {file.name}{also}") from None
        if not right:
            raise InputError(
                f"{path} is not the file that the tables were measured on; get it again: unpoison data get {file.name}"
            )
        return path

    def write(self, path: Path, content: bytes) -> None:
        """Write a file of the store: under its name it is whole or not there.

        Raises:
            InputError: The disk is full, or the folder cannot be written.
        """
        draft = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:40]}.", delete=False) as stream:
                draft = stream.name
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(draft, path)
        except OSError as error:
            if draft is not None:
                with suppress(OSError):
                    os.unlink(draft)
            raise InputError(
                f"{path} cannot be written: {error.strerror}; {len(content):,} bytes are needed there, or set "
                f"{FOLDER} to another folder"
            ) from None

    def sizes(self) -> tuple[int, int]:
        """Bytes of the built files and of what was downloaded for them."""
        built = sum(file.bytes for file in catalogue().values() if self.has(file))
        sources = sum(path.stat().st_size for path in self.folder.glob("sources/**/*") if path.is_file())
        return built, sources


def digest_of(path: Path) -> str:
    """The SHA-256 of a file in hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_name(spec: str) -> bool:
    """Whether a text where a path may stand is the name of an evaluation file: known, and no file of that name here."""
    plain = "/" not in spec and os.sep not in spec
    return plain and name_of(spec) in catalogue() and not Path(spec).exists()


def data_path(spec: str | Path) -> Path:
    """The file that a name or a path means: what every command does with the data that it is given.

    Args:
        spec: `nq_poisoned`, or a path, which is given back as it is.

    Raises:
        InputError: The named file was not built yet, or is damaged; the message has the command that gets it.
    """
    text = str(spec)
    return Store().verify(data_file(text)) if is_name(text) else Path(text)


def data_folder(spec: str | Path) -> Path | None:
    """The folder of data sets that a text means; None where it means no folder.

    Args:
        spec: `evaluation-data` for the folder of built files, or a path.

    Raises:
        InputError: Nothing was built yet.
    """
    if Path(spec).is_dir():
        return Path(spec)
    if str(spec) != BUILT:
        return None
    store = Store()
    if not any(store.has(file) for file in catalogue().values()):
        raise InputError(f"{store.folder} holds no evaluation file; get one: unpoison data get NAME")
    return store.folder
