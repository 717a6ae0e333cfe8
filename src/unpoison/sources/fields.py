"""Metadata of a passage, and the fields with its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, NoReturn

__all__ = ["EMPTY", "Metadata", "metadata_of", "source_in"]

Scalar = str | int | float

MAX_FIELDS = 32
MAX_VALUE_CHARS = 1_000
"""Maximum characters of a name and of a value; the rest is cut."""

MAX_NUMBER = 2**63
"""Larger numbers, infinity and NaN are left out."""

SOURCE_FIELDS = ("source", "url", "uri", "link", "file_path")
"""Fields with the source; the first one present is used."""

METADATA_SOURCES = ("source", "url", "uri", "link", "file_path", "file_name")
"""The same in the metadata of LangChain, LlamaIndex and Haystack documents."""

OWN = frozenset(
    "text content page_content id title source score embedding metadata meta label attack".split()  # noqa: SIM905
)
"""Fields that are not metadata: attributes of a passage and evaluation labels."""


class Metadata(dict[str, Scalar]):
    """A read-only dictionary."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the metadata of a passage is read-only; create a new passage")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[Metadata], tuple[dict[str, Scalar]]]:
        return Metadata, (dict(self),)


EMPTY = Metadata()


def metadata_of(fields: Mapping[Any, object], more: object = None) -> Metadata:
    """The numbers, texts and dates among fields: at most 32, texts cut to 1,000 characters, finite numbers only.

    Args:
        fields: The fields of a passage; its attributes (`text`, `id`, ...) are left out.
        more: Its `metadata` or `meta`, if that is a mapping; `fields` take precedence.
    """
    found = dict(_scalars(fields.items(), OWN))
    if isinstance(more, Mapping) and more:
        for name, value in _scalars(more.items(), frozenset()):
            if len(found) >= MAX_FIELDS:
                break
            found.setdefault(name, value)
    return Metadata(found) if found else EMPTY


def _scalars(items: Iterable[tuple[Any, object]], but: frozenset[str]) -> list[tuple[str, Scalar]]:
    found: list[tuple[str, Scalar]] = []
    for name, value in items:
        if not isinstance(name, str) or name in but:
            continue
        if isinstance(value, str):
            found.append((name[:MAX_VALUE_CHARS], value[:MAX_VALUE_CHARS]))
        elif isinstance(value, date):
            found.append((name[:MAX_VALUE_CHARS], value.isoformat()))
        elif isinstance(value, (int, float)) and -MAX_NUMBER < value < MAX_NUMBER:
            found.append((name[:MAX_VALUE_CHARS], value))
        else:
            continue
        if len(found) == MAX_FIELDS:
            break
    return found


def source_in(fields: Mapping[Any, object], more: object = None) -> Any:
    """The source in a passage's fields, else in its metadata; None without one.

    A value of `source` itself is returned unchecked, so that the caller can report a wrong type.
    """
    if fields.get("source") is not None:
        return fields["source"]
    for holder, names in ((fields, SOURCE_FIELDS), (more, METADATA_SOURCES)):
        if isinstance(holder, Mapping):
            for name in names:
                value = holder.get(name)
                if isinstance(value, str) and value.strip():
                    return value
    return None
