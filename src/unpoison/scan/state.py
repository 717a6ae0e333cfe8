"""What a scan leaves behind for the next one: finished parts while it runs, then which documents were judged."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from unpoison.batch.parts import Shards
from unpoison.errors import InputError, clip
from unpoison.scan.documents import Document

__all__ = ["State", "usual_folder"]

SEEN = "judged.json"
FORMAT = 1
"""Of the file; another version's is judged anew."""


@dataclass(frozen=True, slots=True)
class State:
    """A folder that belongs to one source.

    Attributes:
        folder: Made by `open`, for its owner alone.
    """

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> State:
        """The state in a folder, which is made where there is none.

        Raises:
            OSError: It cannot be made.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder)

    @property
    def parts(self) -> Path:
        """Where parts of an unfinished scan lie."""
        return self.folder / "parts"

    def judged_keys(self) -> frozenset[str]:
        """Keys of the documents that earlier scans judged.

        Raises:
            InputError: The file is damaged, or of another version.
        """
        path = self.folder / SEEN
        if not path.exists():
            return frozenset()
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
            keys = held["keys"]
            right = held["format"] == FORMAT and all(isinstance(key, str) for key in keys)
        except (ValueError, KeyError, TypeError):
            right = False
        if not right:
            raise InputError(f"{path} is damaged or of another version; delete it, and everything is judged anew")
        return frozenset(keys)

    def finish(self, documents: Iterable[Document]) -> None:
        """Remember the documents as judged, in one step, and forget the parts.

        Raises:
            OSError: The folder cannot be written.
        """
        draft = self.folder / f"{SEEN}.{os.getpid()}.draft"
        keys = sorted({document.key for document in documents} | self.judged_keys())
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, "keys": keys}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.folder / SEEN)
        if self.parts.exists():
            Shards(self.parts).clear()


def usual_folder(source: str) -> Path:
    """Where the state of a source is kept if nobody says: beside a file or folder, else in the working directory."""
    if source != "-" and Path(source).exists():
        path = Path(source)
        return path.resolve().with_name(f"{path.resolve().name}.scan")
    digest = blake2b(source.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Path(f"unpoison-{digest}.scan")  # never the address itself, which may hold a password


def is_unfinished(state: State) -> bool:
    """Whether an earlier scan was broken off."""
    return state.parts.exists() and any(state.parts.iterdir())


def describe_source(source: str) -> str:
    """A source as messages name it, without the password of an address."""
    scheme, mark, rest = source.partition("://")
    secret, at, host = rest.rpartition("@")
    return clip(f"{scheme}://{host}" if mark and at and secret else source, 120)
