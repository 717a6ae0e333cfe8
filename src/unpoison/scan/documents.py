"""A document of an index: a passage with a name of its own, and what its metadata say of its origin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from hashlib import blake2b
from typing import Any, Self

from unpoison.core.passages import Passage
from unpoison.errors import InputError, clip

__all__ = ["Document", "Failure", "documents_of", "moment"]

METADATA = ("metadata", "meta", "payload")
"""Where a row or a framework's object keeps what it says beside the text."""

TIMES = ("added_at", "created_at", "inserted_at", "indexed_at", "published", "timestamp", "date")
"""Fields that say when a document came, the first that is there."""

AUTHORS = ("author", "authors", "uploader", "user", "owner")
"""Fields that say who brought it."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document.

    Attributes:
        passage: Its text, title, source and vector; `id` is always there.
        added_at: When it came, None where nobody says.
        author: Who brought it, None where nobody says.
        hidden: Texts that its file keeps from a reader's eyes, such as white letters on white.
        notes: What was unusual when it was read.
    """

    passage: Passage
    added_at: datetime | None = None
    author: str | None = None
    hidden: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def id(self) -> str:
        """Its name, unique within one scan."""
        return self.passage.id or ""

    @property
    def key(self) -> str:
        """A hash of name, title and text: the same document, unchanged."""
        digest = blake2b(digest_size=16)
        for part in (self.id, self.passage.title or "", self.passage.text):
            digest.update(f"{len(part)} ".encode() + part.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @classmethod
    def of(cls, value: object, position: int | None = None) -> Self:
        """Read a string, a mapping, a passage, or a framework's document, as `Passage.of` does.

        Without an id it is named by a hash of its text. Time and author are read from the fields `TIMES` and `AUTHORS`,
        or from those of its metadata.

        Raises:
            InputError: No text, or a field of the wrong type.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, Mapping) and isinstance(value.get("id"), (int, float)):
            value = {**value, "id": str(value["id"])}
        passage = Passage.of(value, position)
        metadata = _metadata(value)
        named = {
            name: metadata[name]
            for name in ("title", "source")
            if getattr(passage, name) is None and _is_text(metadata, name)
        }
        notes: tuple[str, ...] = ()
        if passage.id is None:
            named["id"] = f"text-{blake2b(passage.text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"
            notes = ("it has no id, and is named by a hash of its text",)
        time = next((metadata[name] for name in TIMES if metadata.get(name) is not None), None)
        added_at = None if time is None else moment(time)
        if time is not None and added_at is None:
            notes = (*notes, f"its time {clip(time)} cannot be read")
        author = next((str(metadata[name])[:200] for name in AUTHORS if metadata.get(name)), None)
        return cls(replace(passage, **named), added_at, author, notes=notes)

    @classmethod
    def of_row(cls, fields: Mapping[str, Any]) -> Self:
        """Read a row of a file or store: empty fields do not count, and its vector may be named otherwise.

        Raises:
            InputError: No text, or a field of the wrong type.
        """
        kept = {name: value for name, value in fields.items() if value is not None and name != "score"}
        for name in ("vector", "embeddings"):
            if "embedding" not in kept and isinstance(kept.get(name), list):
                kept["embedding"] = kept[name]
        for name in ("title", "source"):
            if name in kept and not isinstance(kept[name], str):
                del kept[name]
        return cls.of(kept)


@dataclass(frozen=True, slots=True)
class Failure:
    """A row or file that could not be read.

    Attributes:
        location: Its line, row or path.
        error: Why.
    """

    location: str
    error: str


def documents_of(values: Iterable[object]) -> Iterator[Document]:
    """Documents with distinct names: where a name is taken, the next document gets a number behind it, and a note.

    Raises:
        InputError: A value that is no document.
    """
    if isinstance(values, (str, bytes, Mapping)):
        raise InputError(f"documents must be a list of documents, got {clip(values)}; wrap it in a list")
    taken = dict[str, int]()
    for position, value in enumerate(values):
        yield unique_name(Document.of(value, position), taken)


def unique_name(document: Document, taken: dict[str, int]) -> Document:
    """The document, renamed where its name is taken; `taken` counts names and is added to."""
    name, number = document.id, taken.get(document.id, 0)
    if not number:
        taken[name] = 1
        return document
    while f"{name}#{number + 1}" in taken:
        number += 1
    taken[name] = number + 1
    taken[f"{name}#{number + 1}"] = 1
    renamed = replace(document.passage, id=f"{name}#{number + 1}")
    return replace(document, passage=renamed, notes=(*document.notes, f"another document has its id {clip(name)}"))


def moment(value: object) -> datetime | None:
    """A time as ISO text, seconds or milliseconds since 1970, a date or a datetime; None for anything else."""
    try:
        if isinstance(value, datetime):
            time = value
        elif isinstance(value, date):
            time = datetime(value.year, value.month, value.day, tzinfo=UTC)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            time = datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC)
        elif isinstance(value, str):
            time = datetime.fromisoformat(value.strip())
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _metadata(value: object) -> Mapping[str, Any]:
    """What a row or object says of itself, the outer fields before those of its metadata."""
    if isinstance(value, Mapping):
        inner: Mapping[str, Any] = next((value[name] for name in METADATA if isinstance(value.get(name), Mapping)), {})
        return {**inner, **{name: entry for name, entry in value.items() if entry is not None}}
    node = getattr(value, "node", value)
    inner = next((entry for name in METADATA if isinstance(entry := getattr(node, name, None), Mapping)), {})
    outer = {name: getattr(node, name, None) for name in (*TIMES, *AUTHORS)}
    return {
        **inner,
        **{name: entry for name, entry in outer.items() if isinstance(entry, (str, int, float, date))},
    }


def _is_text(metadata: Mapping[str, Any], name: str) -> bool:
    return isinstance(metadata.get(name), str) and bool(metadata[name])
