"""Passages by position, each with an id of its own: what the indexes in memory are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from unpoison.errors import InputError, shown
from unpoison.passages import Passage

__all__ = ["Collection"]


class Collection:
    """Passages in the order in which they were added; grows only."""

    def __init__(self) -> None:
        self._passages: list[Passage] = []
        self._ids: set[str] = set()

    def prepared(self, passages: Iterable[Any]) -> list[Passage]:
        """Passages as they can be added; nothing is added yet.

        A passage without an id is named by its place in the collection, counted from 0.

        Raises:
            InputError: An unusable passage, or an id that is taken; the message names it.
        """
        if isinstance(passages, (str, bytes)):
            raise InputError(f"passages must be a list of passages, got {shown(passages)}; wrap it in a list")
        made, new = list[Passage](), set[str]()
        for position, value in enumerate(passages):
            passage = Passage.of(value, position)
            if passage.id is None:
                passage = replace(passage, id=str(len(self) + position))
            name = passage.id or ""
            if name in self._ids or name in new:
                raise InputError(
                    f"passages[{position}].id is {shown(name)}, which another passage has; give each an id of its own"
                )
            new.add(name)
            made.append(passage)
        return made

    def extend(self, prepared: Iterable[Passage]) -> None:
        """Add what `prepared` returned."""
        for passage in prepared:
            self._passages.append(passage)
            self._ids.add(passage.id or "")

    def __len__(self) -> int:
        return len(self._passages)

    def __getitem__(self, position: int) -> Passage:
        return self._passages[position]

    def __iter__(self) -> Iterator[Passage]:
        return iter(self._passages)
