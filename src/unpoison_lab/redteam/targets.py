"""A system under test: its protocol, and which planted texts it read."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage
from unpoison.errors import OptionError, TargetError, clip
from unpoison.rag import Rag
from unpoison.text.canonical import canonical

__all__ = [
    "RagTarget",
    "RedteamTarget",
    "TargetDocument",
    "TargetReply",
    "check_handles",
    "fingerprints",
    "load_target",
    "new_canary",
    "passages_of",
    "planted_positions",
    "read_count",
]


PREFIX = "unpoison-"
"""Prefix of every canary, so that one search finds all marked documents."""
MAX_HANDLE_LENGTH = 512
"""Characters of an id that a target gives to a document."""
MAX_HANDLES = 1000
"""Ids of one document: stores cut texts into pieces."""
UUID_LENGTH = 36
"""Characters of a UUID, and of the shortest id that is looked for within other names."""
MIN_PIECE_LENGTH = 40
"""Minimum length of a passage that counts as a piece of a planted text."""


def new_canary() -> str:
    """A mark that no other document has: `unpoison-` and a random UUID."""
    return f"{PREFIX}{uuid4()}"


@dataclass(frozen=True, slots=True)
class TargetDocument:
    """A document to plant.

    Attributes:
        text: The attack's text.
        canary: The unique mark in its metadata, by which an operator finds it.
        title: None if the attack plants none.
    """

    text: str
    canary: str
    title: str | None = None

    @property
    def uuid(self) -> str:
        """The canary without its prefix, for stores whose ids are UUIDs."""
        return self.canary.removeprefix(PREFIX)


@dataclass(frozen=True, slots=True)
class TargetReply:
    """The reply of a system under test.

    Attributes:
        answer: Its words.
        passages: The texts that it read, best first; None if the system does not return them.
        ids: Their ids or sources; None if the system does not return them.
    """

    answer: str
    passages: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None


@runtime_checkable
class RedteamTarget(Protocol):
    """A system under test. Its methods are called from several threads at once.

    One more method is optional: `own_ids(canary)` returns handles chosen by the caller, known before anything is
    planted.

    An exception in any of these methods fails one question. A `TargetError` may say that a retry can succeed, or that
    nothing was planted.
    """

    def ask(self, question: str) -> TargetReply | str:
        """The answer, with the passages that were read if the system returns them."""
        ...

    def plant(self, documents: Sequence[TargetDocument]) -> Sequence[str]:
        """Add documents; returns handles to remove them by, one or several (pieces) for each document."""
        ...

    def remove(self, handles: Sequence[str]) -> Iterable[str] | None:
        """Remove documents; returns the handles that the system did not know."""
        ...


class RagTarget:
    """Our own `Rag` as a target: documents are planted into its retriever.

    Args:
        rag: With a generator.
        name: For reports.
    """

    def __init__(self, rag: Rag, name: str) -> None:
        if rag.defense.models.generator is None:
            raise OptionError("the Rag has no generator, so it cannot answer; give it one")
        self._rag, self._store, self.name = rag, rag.retriever, name
        if not (hasattr(self._store, "add") and hasattr(self._store, "remove")):
            raise OptionError(
                f"{type(self._store).__name__} cannot be planted into; give a retriever with add and remove"
            )

    def ask(self, question: str) -> TargetReply:
        answer: Answer = self._rag.ask(question)
        read = answer.screening.read
        texts = tuple(passage.shown if passage.cuts else passage.raw for passage in read)
        return TargetReply(answer.text, texts, tuple(passage.id or "" for passage in read))

    def plant(self, documents: Sequence[TargetDocument]) -> list[str]:
        store: Any = self._store
        store.add([Passage(d.text, id=d.uuid, title=d.title, source=d.canary) for d in documents])
        return [document.uuid for document in documents]

    def remove(self, handles: Sequence[str]) -> None:
        store: Any = self._store
        store.remove(list(handles))

    def own_ids(self, canary: str) -> list[str]:
        return [TargetDocument("", canary).uuid]


def load_target(where: str, folder: Path) -> RedteamTarget:
    """The object behind `module:attribute`: a target, a class of one, or a `Rag`.

    Args:
        where: Such as `my_target:target`.
        folder: Where modules are looked for too.

    Raises:
        OptionError: There is no such object, or it is not a target.
    """
    module, _, attribute = where.partition(":")
    if not module or not attribute:
        raise OptionError(f"{clip(where)} names no object; write module:attribute")
    try:
        with _looked_for_in(folder):
            loaded: Any = getattr(import_module(module), attribute)
    except (ModuleNotFoundError, AttributeError) as error:
        raise OptionError(f"{clip(where)} cannot be loaded: {error}; put the module beside the configuration") from None
    loaded = loaded() if isinstance(loaded, type) else loaded
    if isinstance(loaded, Rag):
        return RagTarget(loaded, where)
    if not isinstance(loaded, RedteamTarget):
        raise OptionError(f"{clip(where)} is no target; give an object with ask, plant and remove, or a Rag")
    return loaded


@contextmanager
def _looked_for_in(folder: Path) -> Iterator[None]:
    """Look for modules in a folder too, while they are loaded and no longer."""
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.reverse()  # `remove` takes the first of equal entries, and ours is the last
        sys.path.remove(str(folder))
        sys.path.reverse()


def check_handles(values: Iterable[Any], owner: str) -> list[str]:
    """Handles that are safe to put into a request: each can only mean one document.

    Raises:
        TargetError: None at all, too many, or one that is empty, only dots, has a wildcard or a control character.
    """
    handles = [str(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in values]
    if not handles or len(handles) > MAX_HANDLES:
        raise TargetError(f"{owner} must give 1 to {MAX_HANDLES:,} ids, got {len(handles):,}; see its path")
    for value in handles:
        if not isinstance(value, str) or not _is_safe(value):
            raise TargetError(f"{owner} gave {clip(value)}, which cannot be the id of one document; see its path")
    return list(dict.fromkeys(handles))


def _is_safe(handle: str) -> bool:
    if not 0 < len(handle) <= MAX_HANDLE_LENGTH or not handle.strip(". ") or "*" in handle:
        return False
    return handle.isprintable()  # neither control characters nor halves of a surrogate pair are


def passages_of(reply: TargetReply) -> Iterator[Passage]:
    """The passages that a system showed, with unique ids, and a source if the name is a path or address."""
    texts, names = reply.passages or (), reply.ids or ()
    for position, text in enumerate(texts):
        name = names[position] if len(names) == len(texts) else ""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        suffix = name.rpartition("/")[2].rpartition(".")[2] if "." in name else ""
        is_source = "/" in name or (suffix.isalnum() and not suffix.isdigit())
        yield Passage(text, id=f"{name or 'passage'}-{digest}", source=name if is_source else None)


def fingerprints(passages: Sequence[str] | None) -> tuple[str, ...]:
    """Hashes that identify passages."""
    return tuple(map(_fingerprint, map(_plain, passages or ())))


def read_count(
    reply: TargetReply, texts: Sequence[str], handles: Sequence[Sequence[str]], honest: frozenset[str] = frozenset()
) -> int | None:
    """How many of the planted texts the system read.

    A text was read if the system returns one of its ids, also inside a longer name such as a file name; or if a
    passage contains it, or is a piece of it of 40 characters or more. White space and case are ignored.

    Args:
        reply: The system's.
        texts: The planted texts.
        handles: The ids of each.
        honest: Hashes of passages that it read before; a poison that quotes one is not read with it.

    Returns:
        None if the system returns neither passages nor ids.
    """
    if reply.passages is None and reply.ids is None:
        return None
    read = set(planted_positions(reply, texts, handles, honest).values())
    return len(read.union(number for number, own in enumerate(handles) if _named(own, reply.ids or ())))


def planted_positions(
    reply: TargetReply, texts: Sequence[str], handles: Sequence[Sequence[str]], honest: frozenset[str] = frozenset()
) -> dict[int, int]:
    """Position of a passage -> number of the planted text that it is, as in `read_count`."""
    names, passages = reply.ids or (), [_plain(text) for text in reply.passages or ()]
    found: dict[int, int] = {}
    for position, passage in enumerate(passages):
        name = names[position : position + 1] if len(names) == len(passages) else ()
        for number, (text, own) in enumerate(zip(texts, handles, strict=True)):
            known = passage and _fingerprint(passage) not in honest and _same(_plain(text), passage)
            if known or _named(own, name):
                found.setdefault(position, number)
    return found


def _named(own: Sequence[str], names: Sequence[str]) -> bool:
    """Whether one of our ids is among the names or, if long enough to be unique, inside one."""
    return any(
        handle in names or (len(handle) >= UUID_LENGTH and any(handle in name for name in names)) for handle in own
    )


def _same(planted: str, passage: str) -> bool:
    return planted in passage or (len(passage) >= MIN_PIECE_LENGTH and passage in planted)


def _plain(text: str) -> str:
    return " ".join(canonical(text).text.casefold().split())


def _fingerprint(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
