"""API keys, stored as SHA-256 digests.

A key file has one line per key in the format of `sha256sum`: 64 hexadecimal digits and the name of the holder.

    $ printf %s "$KEY" | sha256sum | sed 's/-/search-team/' >> keys.txt

Keys are long random texts, so a plain SHA-256 is enough: there is nothing to guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Self

from unpoison.errors import InputError, OptionError

__all__ = ["Keys", "digest"]

MAX_FILE_BYTES = 1024 * 1024
"""Bytes of the file."""

_LINE = re.compile(r"([0-9a-fA-F]{64})(?:[ \t]+\*?([A-Za-z0-9._-]{1,64}))?")


def digest(text: str | bytes) -> str:
    """The SHA-256 of a key's text, UTF-8, in lowercase hexadecimal digits."""
    return sha256(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text).hexdigest()


class Keys:
    """Keys by digest, so that the time of a lookup reveals nothing about a key.

    Args:
        names: Holder's name by digest; it appears in logs and metrics.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)

    @classmethod
    def of(cls, text: str, name: str = "default") -> Self:
        """The one key with this text.

        Raises:
            OptionError: The text is blank.
        """
        if not text.strip():
            raise OptionError("a key must not be blank; give a long random text")
        return cls({digest(text.strip()): name})

    @classmethod
    def read(cls, path: Path) -> Self:
        """The keys of a file; blank lines and lines that begin with # are skipped. Read once, at the start.

        Raises:
            InputError: The file cannot be read, holds no key, or has an invalid line; the message gives its number.
        """
        try:
            with path.open("rb") as file:
                lines = file.read(MAX_FILE_BYTES).decode("utf-8", "replace").splitlines()
        except OSError as error:
            raise InputError(
                f"the key file {path} cannot be read: {error.strerror}; give a file that holds hashes of keys"
            ) from None
        names: dict[str, str] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            match = _LINE.fullmatch(line.strip())
            if match is None:
                raise InputError(
                    f"line {number} of the key file {path} must be the SHA-256 of a key and a name; "
                    "make one with: printf %s KEY | sha256sum"
                )
            names[match[1].lower()] = match[2] if match[2] not in (None, "-") else match[1][:8].lower()
        if not names:
            raise InputError(f"the key file {path} holds no key; make one with: printf %s KEY | sha256sum")
        return cls(names)

    def __or__(self, other: Keys) -> Keys:
        """The keys of both."""
        return Keys(self._names | other._names)

    def holder(self, text: str | bytes) -> str | None:
        """The holder of a key, None if it is unknown."""
        return self._names.get(digest(text))
