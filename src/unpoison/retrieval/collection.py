"""Passages by position, each with an id of its own: what the indexes in memory are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from unpoison.core.passages import Passage
from unpoison.errors import InputError, clip

__all__ = ["Collection"]


class Collection:
    """Passages in the order in which they were added. Those that are removed leave their place empty."""

    def __init__(self) -> None:
        self._passages: list[Passage | None] = []
        self._ids: dict[str, int] = {}

    def prepare(self, passages: Iterable[Any]) -> list[Passage]:
        """Passages as they can be added; nothing is added yet.

        A passage without an id is named by its place in the collection, counted from 0.

        Raises:
            InputError: An unusable passage, or an id that is taken; the message names it.
        """
        if isinstance(passages, (str, bytes)):
            raise InputError(f"passages must be a list of passages, got {clip(passages)}; wrap it in a list")
        prepared, new = list[Passage](), set[str]()
        for position, value in enumerate(passages):
            passage = Passage.of(value, position)
            if passage.id is None:
                passage = replace(passage, id=str(len(self._passages) + position))
            name = passage.id or ""
            if name in self._ids or name in new:
                raise InputError(
                    f"passages[{position}].id is {clip(name)}, which another passage has; give each an id of its own"
                )
            new.add(name)
            prepared.append(passage)
        return prepared

    def extend(self, prepared: Iterable[Passage]) -> None:
        """Add what `prepare` returned."""
        for passage in prepared:
            self._ids[passage.id or ""] = len(self._passages)
            self._passages.append(passage)

    def remove(self, ids: Iterable[str]) -> dict[int, Passage]:
        """Take passages out; what was taken, by its place. Ids that no passage has are passed over."""
        taken = dict[int, Passage]()
        for name in ids:
            position = self._ids.pop(name, None)
            if position is not None:
                taken[position] = self[position]
                self._passages[position] = None
        return taken

    def without(self, ids: Iterable[str]) -> tuple[Collection, list[int]]:
        """A collection that lacks some passages, numbered 0, 1, 2, ... in their order, and the places they had here."""
        gone = frozenset(ids) & self._ids.keys()
        rest = Collection()
        rest.extend(passage for passage in self if passage.id not in gone)
        return rest, sorted(self._ids[name] for name in gone)

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, position: int) -> Passage:
        passage = self._passages[position]
        if passage is None:
            raise InputError(f"the passage at place {position:,} was removed")
        return passage

    def __iter__(self) -> Iterator[Passage]:
        return (passage for passage in self._passages if passage is not None)
