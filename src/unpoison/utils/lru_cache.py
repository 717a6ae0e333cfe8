"""An LRU cache with a limit in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["LRUCache"]

K = TypeVar("K")
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """A dictionary that evicts the least recently used entries. Thread-safe; O(1) per operation.

    Args:
        size: Approximate bytes of an entry with its key; at least 1.
        most: Maximum bytes of all entries; a larger entry is not stored.
        entries: Maximum number of entries.
    """

    def __init__(self, size: Callable[[K, V], int], most: int, entries: int | None = None) -> None:
        self._size, self._most, self._entries = size, most, entries
        self._values: OrderedDict[K, V] = OrderedDict()
        self._sizes: dict[K, int] = {}  # as of insertion: values may grow
        self._held = 0
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value, None if missing; marks it as used."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        """Store a value, and evict others."""
        size = self._size(key, value)
        with self._lock:
            self._drop(key)
            if size > self._most:
                return
            self._values[key], self._sizes[key] = value, size
            self._held += size
            self._make_room()

    def grow(self, key: K, by: int) -> None:
        """Add to the size of an entry, if it is still stored, and evict others."""
        with self._lock:
            if key not in self._sizes:
                return
            self._sizes[key] += by
            self._held += by
            if self._sizes[key] > self._most:
                self._drop(key)
            self._make_room()

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._values.clear()
            self._sizes.clear()
            self._held = 0

    def __len__(self) -> int:
        return len(self._values)

    def _make_room(self) -> None:
        while self._held > self._most or (self._entries is not None and len(self._values) > self._entries):
            self._drop(next(iter(self._values)))

    def _drop(self, key: K) -> None:
        self._values.pop(key, None)
        self._held -= self._sizes.pop(key, 0)
