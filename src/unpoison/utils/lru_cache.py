"""What was used last, up to so many bytes: the dictionary of every cache whose entries differ in size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["LRUCache"]

K = TypeVar("K")
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """A dictionary that forgets what was not used for longest. Safe for threads; O(1) for each use.

    Args:
        size: Bytes that an entry takes, roughly, its key included; at least 1.
        most: Bytes of all entries together. What alone is larger is not kept.
        entries: Entries at most.
    """

    def __init__(self, size: Callable[[K, V], int], most: int, entries: int | None = None) -> None:
        self._size, self._most, self._entries = size, most, entries
        self._values: OrderedDict[K, V] = OrderedDict()
        self._sizes: dict[K, int] = {}  # what is kept may grow
        self._held = 0
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value, None for none; it counts as used."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        """Keep a value, and forget others for it."""
        size = self._size(key, value)
        with self._lock:
            self._drop(key)
            if size > self._most:
                return
            self._values[key], self._sizes[key] = value, size
            self._held += size
            self._make_room()

    def grow(self, key: K, by: int) -> None:
        """Say that a value, where it is still kept, takes so many bytes more, and forget others for it."""
        with self._lock:
            if key not in self._sizes:
                return
            self._sizes[key] += by
            self._held += by
            if self._sizes[key] > self._most:
                self._drop(key)
            self._make_room()

    def clear(self) -> None:
        """Forget everything."""
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
