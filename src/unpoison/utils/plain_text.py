"""Makes untrusted text safe to print, and delimits it in a prompt.

Printed text is one line without terminal escapes and bidirectional controls. The delimiter in a prompt is a keyed hash
of all its texts, with a secret of this installation: the same prompt gets the same one, so that reply caches work.
Without the key an attacker who knows the question and the passages could compute it.
"""

from __future__ import annotations

import os
import re
import secrets
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

__all__ = [
    "KEY", "count_noun", "digest_text", "encodable", "excerpt", "first_of", "marker", "plain", "without_invisible",
]  # fmt: skip

# Escape sequences as terminals read them: operating-system commands to their end, control sequences, then the rest.
_ESCAPES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?"
)

# Joiners shape Persian and Indic words and emoji; other format characters are invisible or bidirectional controls.
_JOINERS = "\u200c\u200d"


def plain(text: str) -> str:
    """An untrusted text on one line, safe for terminals.

    Escape sequences, control and format characters are removed; lone surrogates become question marks.
    """
    return " ".join(without_invisible(text).split())


def without_invisible(text: str) -> str:
    """Like `plain`, but keeps lines and spaces."""
    if text.isprintable():
        return text
    kept = (c for c in _ESCAPES.sub("", text) if _is_visible(c))
    return "".join(kept).encode("utf-8", "replace").decode()


def _is_visible(character: str) -> bool:
    return character in _JOINERS or character.isspace() or unicodedata.category(character) not in ("Cc", "Cf")


def excerpt(text: str, limit: int = 80) -> str:
    """The first `limit` characters of `plain(text)`, with an ellipsis where something follows."""
    line = plain(text[: 20 * limit])  # a passage may be megabytes long
    return line if len(line) <= limit and len(text) <= 20 * limit else f"{line[: limit - 1].rstrip()}…"


def count_noun(number: int, noun: str) -> str:
    """Such as "1 row" or "1,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_of(items: Sequence[object], most: int) -> str:
    """The first `most` items of a list, and how many others there are: "a, b and 3 more"."""
    more = len(items) - most
    return ", ".join(map(str, items[:most])) + (f" and {more:,} more" if more > 0 else "")


def encodable(text: str) -> str:
    """The text with lone surrogates (valid in Python and JSON, not in UTF-8) replaced by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


KEY = "UNPOISON_FENCE_KEY"
"""The environment variable with the secret, for machines that share a reply cache."""


def key_file() -> Path:
    """The file with this installation's secret, used if `KEY` is not set.

    Raises:
        RuntimeError: There is no home directory.
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "unpoison", "fence-key")


def marker(texts: Sequence[str]) -> str:
    """Twelve hexadecimal digits that occur in none of the texts; deterministic on this installation."""
    whole = chr(0).join(texts).encode("utf-8", "surrogatepass")
    salt, key = 0, _secret(os.environ.get(KEY))
    while True:
        digest = blake2b(str(salt).encode() + b"\0" + whole, digest_size=6, key=key).hexdigest()
        if not any(digest in text for text in texts):
            return digest
        salt += 1


def digest_text(purpose: str, text: str) -> str:
    """A keyed hash of 16 hexadecimal digits, for logs that must not contain the text.

    Deterministic on all installations that share the secret; without the secret nobody can test guesses of the text.
    `purpose`, of 16 characters at most, separates uses.
    """
    data, key = text.encode("utf-8", "surrogatepass"), _secret(os.environ.get(KEY))
    return blake2b(data, digest_size=8, key=key, person=purpose.encode()).hexdigest()


@cache
def _secret(given: str | None) -> bytes:
    """The secret of the environment, else of this installation, else of this process."""
    if given:
        return blake2b(given.encode("utf-8", "surrogateescape"), digest_size=32).digest()
    with suppress(OSError, RuntimeError):
        path = key_file()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
            draft.touch(mode=0o600, exist_ok=False)
            draft.write_bytes(secrets.token_bytes(32))
            try:
                os.link(draft, path)  # atomic: the first process wins
            finally:
                draft.unlink()
        secret = path.read_bytes()
        if len(secret) == 32:
            return secret
    return secrets.token_bytes(32)
