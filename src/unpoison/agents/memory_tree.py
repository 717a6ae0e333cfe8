"""What was made from what: a memory is read only while all that it was made from may be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from unpoison.agents.memory_recall import Recall, Recalled
from unpoison.agents.memory_store import Memory
from unpoison.agents.screening import ScreenedResult
from unpoison.errors import InputError, clip

__all__ = ["Parent", "ancestors_closed", "descendants", "is_open", "make_room", "parents_of", "readable", "sources_of"]

MAX_MADE_FROM = 1_000
"""Memories that one is made from, and sources that one has."""

Parent = str | Memory | Recalled | Recall | ScreenedResult
"""What a memory may be made from: a memory or its id, all that was read at once, a tool's result."""


def descendants(ids: Iterable[str], memories: Sequence[Memory]) -> list[str]:
    """The ids of all that was made from some memories, at any number of steps, without these. O(n) time."""
    children: dict[str, list[str]] = defaultdict(list)
    for memory in memories:
        for parent in memory.derived_from:
            children[parent].append(memory.id)
    first = list(ids)
    found, left = dict.fromkeys(first), first[:]
    while left:
        for child in children.get(left.pop(), ()):
            if child not in found:
                found[child] = None
                left.append(child)
    return list(found)[len(dict.fromkeys(first)) :]


def readable(memories: Sequence[Memory]) -> set[str]:
    """The ids of what may be read. What is no longer stored was open: what is closed is dropped with its heirs."""
    closed = [memory.id for memory in memories if not is_open(memory)]
    return {memory.id for memory in memories}.difference(closed, descendants(closed, memories))


def ancestors_closed(memory: Memory, memories: Sequence[Memory], opened: Collection[str]) -> str | None:
    """The first of what a memory was made from that is set aside, but for those that are opened; None without any."""
    by_id = {one.id: one for one in memories}
    left, seen = list(memory.derived_from), set[str]()
    while left:
        name = left.pop()
        parent = by_id.get(name)
        if parent is None or name in seen:
            continue
        seen.add(name)
        if not is_open(parent) and name not in opened:
            return name
        left.extend(parent.derived_from)
    return None


def make_room(stored: Sequence[Memory], new: Memory, most: int) -> list[str]:
    """The ids of what goes, so that of `most` memories a new one has a place.

    First what nobody may read, then the least trusted, the oldest first, and none for a less trusted one.

    Raises:
        InputError: All others are more trusted, or the new one was made from what would go.
    """
    excess = len(stored) + 1 - most
    if excess <= 0:
        return []
    alive = readable(stored)
    ranked = sorted(stored, key=lambda one: (one.id in alive, one.trust, one.written))
    gone: dict[str, None] = {}
    for victim in ranked:
        if len(gone) >= excess:
            break
        if victim.id in alive and victim.trust > new.trust:
            raise InputError(
                f"the store holds {len(stored):,} memories, all of them more trusted than this one; forget some, or "
                "raise max_memories"
            )
        gone[victim.id] = None
        if victim.id not in alive:  # what was made from it must not come back when it is gone
            gone.update(dict.fromkeys(descendants([victim.id], stored)))
    if not gone.keys().isdisjoint(new.derived_from):
        raise InputError(
            "the store is full, and what this memory was made from would have to go for it; raise max_memories"
        )
    return list(gone)


def is_open(memory: Memory) -> bool:
    """Whether nobody has set it aside; what it was made from is not asked."""
    return memory.state in ("live", "released")


def parents_of(made_from: Iterable[Parent], by_id: Mapping[str, Memory]) -> tuple[list[Memory], list[ScreenedResult]]:
    """The memories and results that a memory is made from.

    Raises:
        InputError: A memory that does not exist, or too many.
    """
    if isinstance(made_from, (str, Memory, Recalled, Recall, ScreenedResult)):
        made_from = [made_from]
    ids, results = dict[str, None](), list[ScreenedResult]()
    for one in made_from:
        if isinstance(one, ScreenedResult):
            results.append(one)
        elif isinstance(one, Recall):
            ids.update(dict.fromkeys(memory.memory.id for memory in one.memories))
        else:
            held = one.memory if isinstance(one, Recalled) else one
            ids[held.id if isinstance(held, Memory) else held] = None
    if len(ids) + len(results) > MAX_MADE_FROM:
        raise InputError(f"a memory is made from at most {MAX_MADE_FROM:,} others; sum up some of them first")
    missing = [name for name in ids if name not in by_id]
    if missing:
        raise InputError(
            f"there is no memory {clip(missing[0])} to be made from; take ids from what was written or read"
        )
    return [by_id[name] for name in ids], results


def sources_of(source: str | None, parents: Sequence[Memory], results: Sequence[ScreenedResult]) -> tuple[str, ...]:
    """The sources of a memory: its own, and all those of what it was made from."""
    named = [source, *(result.source for result in results)]
    found = dict.fromkeys([*filter(None, named), *(one for parent in parents for one in parent.sources)])
    if len(found) > MAX_MADE_FROM:
        raise InputError(f"a memory has at most {MAX_MADE_FROM:,} sources; make it from fewer")
    return tuple(found)
