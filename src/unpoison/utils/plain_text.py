"""Makes untrusted text safe to print: one line, without terminal escapes and bidirectional controls."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["count_noun", "encodable", "excerpt", "plain", "without_invisible"]

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


def encodable(text: str) -> str:
    """The text with lone surrogates (valid in Python and JSON, not in UTF-8) replaced by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
