"""The allow list: `allow` of a policy and of Guard, `exempt` of the adapters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING
from unicodedata import normalize

from unpoison.errors import OptionError, clip
from unpoison.sources.policy import Pattern, parse_pattern

if TYPE_CHECKING:
    from unpoison.core.passages import Passage

__all__ = ["Allowed", "text_hash"]

HASH = "sha256:"
HASH_DIGITS = 32
"""Hexadecimal digits of a hash in a reason, and the fewest in a list."""

_HASH = re.compile(rf"{HASH}[0-9a-f]{{{HASH_DIGITS},64}}")


def text_hash(text: str) -> str:
    """The entry of a list `allow` for exactly this text: `sha256:` and 32 digits."""
    return HASH + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


class Allowed:
    """A list of ids, text hashes, sources and source patterns.

    Args:
        names: `sha256:` with 32 or more hexadecimal digits, the id of a passage (`faq-12` or `id:faq-12`), a source, or
            a pattern as in the lists of a policy (`docs.example`, `https://docs.example/hr/**`).
        where: The name of the option in errors.

    Raises:
        OptionError: Not a list of strings, or a malformed hash.
    """

    def __init__(self, names: Iterable[str], where: str = "allow") -> None:
        if isinstance(names, str) or not all(isinstance(name, str) and name.strip() for name in names):
            raise OptionError(f"{where} must be a list of ids, hashes and sources, got {clip(names)}")
        self.names = tuple(normalize("NFC", name.strip()) for name in names)
        self._exact = {name.removeprefix("id:") for name in self.names}
        self._hashes = [name.lower() for name in self.names if name.lower().startswith(HASH)]
        for name in self._hashes:
            if not _HASH.fullmatch(name):
                raise OptionError(f"{where} holds {clip(name)}; write {HASH} and 32 to 64 hexadecimal digits")
        self._patterns = [
            pattern for name in self.names if not name.lower().startswith((HASH, "id:")) for pattern in _pattern(name)
        ]

    def __bool__(self) -> bool:
        return bool(self.names)

    def matches(self, passage: Passage, origin: str | None = None) -> bool:
        """Whether the list names a passage.

        Args:
            passage: The caller's passage.
            origin: Its origin by the rule of a policy; by default its own.
        """
        if not self.names:
            return False
        known, source = (None if name is None else normalize("NFC", name) for name in (passage.id, passage.source))
        if known in self._exact or source in self._exact or self.holds_text(passage.text):
            return True
        party = passage.origin if origin is None and self._patterns else origin or ""
        return any(pattern.matches(source, party) for pattern in self._patterns)

    def holds_text(self, text: str) -> bool:
        """Whether the list has the hash of exactly this text."""
        if not self._hashes:
            return False
        whole = HASH + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return any(whole.startswith(name) for name in self._hashes)


def _pattern(name: str) -> list[Pattern]:
    """A name as a source pattern; none if it is not a valid pattern, such as an id."""
    try:
        return [parse_pattern(name, "allow")]
    except OptionError:
        return []
