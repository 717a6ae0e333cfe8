"""The key of a query: the same for what a person would call the same question, on every machine, in every version."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

from unpoison.errors import InputError, OptionError, clip

__all__ = ["belief_key", "check_key", "check_namespace"]

_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEY = re.compile(r"[^\s\x00-\x1f\x7f]{1,128}")


def belief_key(query: str) -> str:
    """32 hexadecimal digits of the normalised query.

    Normalised means: compatible characters unified (NFKC), case folded, white space as single spaces, and no full
    stops, question or exclamation marks at the end.
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", query).casefold())
    line = " ".join(text.split()).rstrip(".?!\u3002 ")
    return blake2b(line.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def check_key(key: str) -> str:
    """The key, if every store can hold it.

    Raises:
        InputError: Empty, longer than 128 characters, or with white space or control characters.
    """
    if not isinstance(key, str) or not _KEY.fullmatch(key) or not key.isprintable():
        raise InputError(
            f"a belief's key must be 1 to 128 visible characters, got {clip(key)}; belief_key(query) makes one"
        )
    return key


def check_namespace(namespace: str) -> str:
    """The namespace, if every store can hold it.

    Raises:
        OptionError: Not 1 to 64 letters, digits, dots, hyphens and underscores.
    """
    if not isinstance(namespace, str) or not _NAMESPACE.fullmatch(namespace):
        raise OptionError(
            f"namespace must be 1 to 64 letters, digits, dots, hyphens or underscores, got {clip(namespace)}"
        )
    return namespace
