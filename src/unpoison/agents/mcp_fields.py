"""Fields of a message that hold no text, or none as they stand: pictures, files in base64, tokens of the server."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from codecs import getincrementaldecoder
from collections.abc import Mapping
from typing import Any

from unpoison.agents.leaves import Path, show_path

__all__ = ["Fields", "as_read", "is_picture", "without_key"]

_PICTURE = re.compile(r"data:image/[a-z+.\-]{1,40};base64,[A-Za-z0-9+/]*+={0,2}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]*={0,2}")

ASKING = ("requestState", "inputRequests")
"""Fields of a result that asks: they go back to the server, or to the person who is asked, as they are."""

READING_ORDER = ("content", "structuredContent")
"""Hosts show the fields of a tool's result in this order, whatever the order in which they came."""

MAX_PICTURES = 10
"""Images and blobs that are listed as not looked into."""

BEGINNING = 1_024
"""Characters of a file in base64 that are decoded to see whether it is a text; a multiple of four."""

_URL_SAFE = str.maketrans("+/", "-_")


class Fields:
    """Whether a field is an image, a sound or a blob in base64, or one that nobody reads.

    Attributes:
        notes: What was not looked into.
        texts: Files that are texts, which hosts decode for the model.
    """

    def __init__(self, value: Any, method: str) -> None:
        self.notes: list[str] = []
        self.texts: list[str] = []
        asks = isinstance(value, dict) and value.get("resultType") == "input_required"
        self._opaque = (*(ASKING if asks else ()), *(("nextCursor",) if method.endswith("/list") else ()))

    def __call__(self, path: Path, holder: Mapping[str, Any], key: str) -> bool:
        if not path:
            return key in self._opaque
        value, kind = holder[key], "blob" if key == "blob" else holder.get("type")
        if not (key == "blob" or (key == "data" and kind in ("image", "audio"))):
            return False
        if not isinstance(value, str) or not _BASE64.fullmatch(value):
            return False
        if (text := _text_of(value)) is not None:
            self.texts.append(text)
        elif value and len(self.notes) < MAX_PICTURES:
            self.notes.append(f"not looked into: the {kind} at {show_path((*path, key))}")
        return True


def as_read(result: Any) -> Any:
    """A tool's result with its fields as hosts show them: an injection in halves is found in the order of reading."""
    if not isinstance(result, dict):
        return result
    first = {key: result[key] for key in READING_ORDER if key in result}
    return {**first, **result}


def is_picture(path: Path, holder: Mapping[str, Any], key: str) -> bool:
    """Whether a field is the picture of a tool."""
    value = holder[key]
    return path[:1] == ("icons",) and key == "src" and isinstance(value, str) and _PICTURE.fullmatch(value) is not None


def _text_of(encoded: str) -> str | None:
    """What a file in base64 says, where it is a text in UTF-8; of one that is none mostly the beginning is decoded."""
    try:
        getincrementaldecoder("utf-8")().decode(_bytes_of(encoded[:BEGINNING]))
        text = _bytes_of(encoded).decode()
    except ValueError:
        return None
    return text if text and "\0" not in text else None


def _bytes_of(encoded: str) -> bytes:
    return urlsafe_b64decode(encoded.translate(_URL_SAFE) + "=" * (-len(encoded) % 4))


def without_key(value: Any, key: str) -> Any:
    """A result without an entry of its `_meta`; the same object where it has none."""
    meta = value.get("_meta") if isinstance(value, dict) else None
    if not isinstance(meta, dict) or key not in meta:
        return value
    return {**value, "_meta": {name: held for name, held in meta.items() if name != key}}
