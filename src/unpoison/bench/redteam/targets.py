"""A running system under test, as this package speaks to it: it can be asked, planted into and cleaned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

from unpoison.errors import TargetError, clip

__all__ = ["Answered", "Document", "Target", "check_handles", "new_canary"]

PREFIX = "unpoison-"
"""What every canary begins with, so that an operator finds all marked documents by one search."""

MAX_HANDLE_LENGTH = 512
"""Characters of an id that a target gives to a document."""
MAX_HANDLES = 1000
"""Of one document: stores cut long texts into pieces, but these are short."""


def new_canary() -> str:
    """A mark that no other document in the world has: `unpoison-` and a random UUID."""
    return f"{PREFIX}{uuid4()}"


@dataclass(frozen=True, slots=True)
class Document:
    """What is planted.

    Attributes:
        text: What the attack wrote.
        canary: The mark in its metadata, unique; by it an operator and `redteam clean` find the document.
        title: Where the attack plants one.
    """

    text: str
    canary: str
    title: str | None = None

    @property
    def uuid(self) -> str:
        """The canary without its prefix, for stores that take UUIDs as ids only."""
        return self.canary.removeprefix(PREFIX)


@dataclass(frozen=True, slots=True)
class Answered:
    """What a system under test said.

    Attributes:
        answer: Its words.
        passages: The texts that it read, best first; None where it does not say.
        ids: Their ids, where it tells them.
    """

    answer: str
    passages: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None


@runtime_checkable
class Target(Protocol):
    """A system under test. Its methods are called from several threads at once.

    It may have three methods more. `find(canary)` gives the handles of the documents that carry the canary now: where
    there is one, only what it finds is removed. `own_ids(canary)` gives handles that we choose, before anything is
    planted. `ready(handles)` says whether they are indexed, and may index them: it is called before removing, too.

    Whatever these methods raise fails one question; a `TargetError` may say that a later try can succeed, or that
    certainly nothing was planted.
    """

    def ask(self, question: str) -> Answered | str:
        """The answer, with the passages that were read where the system tells them."""
        ...

    def plant(self, documents: Sequence[Document]) -> Sequence[str]:
        """Add documents; what they can be removed by. A document may have several handles: one for each piece."""
        ...

    def remove(self, handles: Sequence[str]) -> Iterable[str] | None:
        """Remove documents; returns the handles that the system did not know."""
        ...


def check_handles(values: Iterable[Any], owner: str) -> list[str]:
    """Handles that can be put into a request without meaning anything but one document.

    Raises:
        TargetError: None at all, too many, or one that a server could read as something else: empty, dots alone, with
            a wildcard, a control character or half a character.
    """
    handles = [str(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in values]
    if not handles or len(handles) > MAX_HANDLES:
        raise TargetError(f"{owner} must give 1 to {MAX_HANDLES:,} ids, got {len(handles):,}; see its path")
    for value in handles:
        if not isinstance(value, str) or not _harmless(value):
            raise TargetError(f"{owner} gave {clip(value)}, which cannot be the id of one document; see its path")
    return list(dict.fromkeys(handles))


def _harmless(handle: str) -> bool:
    if not 0 < len(handle) <= MAX_HANDLE_LENGTH or not handle.strip(". ") or "*" in handle:
        return False
    return handle.isprintable()  # neither control characters nor halves of a surrogate pair are
