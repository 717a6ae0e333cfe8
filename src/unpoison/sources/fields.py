"""The metadata of a passage, and the fields that name its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

__all__ = ["EMPTY", "Metadata", "Scalar", "metadata_of", "source_in"]

Scalar = str | int | float

MAX_FIELDS = 32
MAX_VALUE_CHARS = 1_000
"""Characters of a name and of a value; the rest is cut off."""

MAX_NUMBER = 2**63
"""Numbers of a larger magnitude, infinity and NaN are left out."""

SOURCE_FIELDS = ("source", "url", "uri", "link", "file_path")
"""Fields of a mapping that name the source; the first that is present counts."""

METADATA_SOURCES = ("source", "url", "uri", "link", "file_path", "file_name")
"""The same in the metadata of LangChain, LlamaIndex and Haystack."""

OWN = frozenset(
    "text content page_content id title source score embedding metadata meta label attack".split()  # noqa: SIM905
)
"""Fields that are not metadata: attributes of a passage, and labels of an evaluation."""


class Metadata(dict[str, Scalar]):
    """A read-only dictionary."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the metadata of a passage are read only; make a passage with others")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[Metadata], tuple[dict[str, Scalar]]]:
        return Metadata, (dict(self),)


EMPTY = Metadata()


def metadata_of(fields: Mapping[Any, object], more: object = None) -> Metadata:
    """The numbers and texts among some fields: at most 32, texts cut to 1,000 characters, numbers as JSON has them.

    Args:
        fields: Of a passage, its own (`text`, `id`, ...) among them, which are left out.
        more: Its `metadata` or `meta`; what is no mapping is left out. The fields outside come first.
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
        elif isinstance(value, (int, float)) and -MAX_NUMBER < value < MAX_NUMBER:
            found.append((name[:MAX_VALUE_CHARS], value))
        else:
            continue
        if len(found) == MAX_FIELDS:
            break
    return found


def source_in(fields: Mapping[Any, object], more: object = None) -> Any:
    """The source that a passage's fields name, else that its metadata do; None for none.

    What stands under `source` itself is given back whatever it is, for the caller to check.
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
