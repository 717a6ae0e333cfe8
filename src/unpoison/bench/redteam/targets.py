"""A running system under test: how it is asked, planted into and cleaned, and which planted texts it read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

from unpoison.errors import TargetError, clip
from unpoison.text.canonical import canonical

__all__ = [
    "PREFIX",
    "Answered",
    "Document",
    "Target",
    "check_handles",
    "fingerprints",
    "new_canary",
    "planted_positions",
    "read_count",
]

PREFIX = "unpoison-"
"""What every canary begins with, so that an operator finds all marked documents by one search."""

MAX_HANDLE_LENGTH = 512
"""Characters of an id that a target gives to a document."""
MAX_HANDLES = 1000
"""Of one document: stores cut long texts into pieces, but these are short."""
UUID_LENGTH = 36
"""Characters of a UUID, and of the shortest id that is looked for within other names."""
MIN_PIECE_LENGTH = 40
"""With so many characters or more, a passage that stands within a planted text is taken for a piece of it."""


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
        cited: Names that the answer cites, where it does: ids, or names of files. A document that is cited was read,
            but one that was read need not be cited.
    """

    answer: str
    passages: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    cited: tuple[str, ...] | None = None


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


def fingerprints(passages: Sequence[str] | None) -> tuple[str, ...]:
    """Hashes of passages, by which they are known again."""
    return tuple(map(_fingerprint, map(_plain, passages or ())))


def read_count(
    reply: Answered, texts: Sequence[str], handles: Sequence[Sequence[str]], honest: frozenset[str] = frozenset()
) -> int | None:
    """How many of the planted texts the system read.

    A text was read where one of its ids is among those that the system tells or cites, or stands within one, as a UUID
    does in the name of a file or of a piece; or where a passage holds it, or where it holds a passage of 40 characters
    or more: systems cut texts into pieces. White space and case do not count.

    Args:
        reply: What the system said.
        texts: The planted texts.
        handles: The ids of each.
        honest: Hashes of passages that it had read before; a poison that quotes one is not read with it.

    Returns:
        None where the system tells neither passages nor ids, and cites nothing.
    """
    if reply.passages is None and reply.ids is None and reply.cited is None:
        return None
    names = frozenset((*(reply.ids or ()), *(reply.cited or ())))
    passages = [text for text in map(_plain, reply.passages or ()) if text and _fingerprint(text) not in honest]
    return sum(
        not names.isdisjoint(own) or _within(own, names) or any(_same(_plain(text), passage) for passage in passages)
        for text, own in zip(texts, handles, strict=True)
    )


def planted_positions(
    reply: Answered, texts: Sequence[str], handles: Sequence[Sequence[str]], honest: frozenset[str] = frozenset()
) -> dict[int, int]:
    """Which passage is which planted text, as `read_count` knows them, for a system that tells passages.

    Returns:
        By the passage's position the number of the text.
    """
    names, passages = reply.ids or (), [_plain(text) for text in reply.passages or ()]
    found: dict[int, int] = {}
    for position, passage in enumerate(passages):
        name = names[position : position + 1] if len(names) == len(passages) else ()
        for number, (text, own) in enumerate(zip(texts, handles, strict=True)):
            known = not frozenset(name).isdisjoint(own) or _within(own, name)
            if known or (passage and _fingerprint(passage) not in honest and _same(_plain(text), passage)):
                found.setdefault(position, number)
    return found


def _within(own: Sequence[str], names: Iterable[str]) -> bool:
    """Whether an id that nothing holds by chance stands within a name."""
    long = [handle for handle in own if len(handle) >= UUID_LENGTH]
    return any(handle in name for handle in long for name in names)


def _same(planted: str, passage: str) -> bool:
    return planted in passage or (len(passage) >= MIN_PIECE_LENGTH and passage in planted)


def _plain(text: str) -> str:
    return " ".join(canonical(text).text.casefold().split())


def _fingerprint(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
