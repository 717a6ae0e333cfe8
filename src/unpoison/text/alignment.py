"""Maps the characters of an edited text to the original, so that findings can be shown in the original text.

`Edits` applies replacements without a record; `Trace` applies the same ones and records, for every character, the
region of the original text that it came from. So there is one canonical reading, traced on demand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNTRACED", "Change", "Edits", "Region", "Regions", "Trace", "merge_regions"]

Change = tuple[int, int, str]
"""Start, end (exclusive), and the replacement."""

Region = tuple[int, int]
"""Start and end (exclusive)."""

Regions = tuple[Region, ...]

UNSEEN, ASIDE = 1, 2
"""Levels of a message: one that no reader of the text sees, and one in a comment or tag, as honest pages have."""

Numbers = NDArray[np.int32]


class Edits:
    """Replacements in a text."""

    traced: ClassVar[bool] = False

    def sub(self, pattern: re.Pattern[str], by: str | Callable[[re.Match[str]], str], text: str) -> str:
        """`pattern.sub(by, text)`."""
        return pattern.sub(by, text)

    def put(self, text: str, changes: Sequence[Change]) -> str:
        """Apply changes in ascending order without overlaps."""
        parts, end_of_last = list[str](), 0
        for start, end, new in changes:
            parts += text[end_of_last:start], new
            end_of_last = end
        return "".join([*parts, text[end_of_last:]])

    def cut(self, text: str, start: int, end: int) -> str:
        """`text[start:end]`."""
        return text[start:end]

    def mark_message(self, positions: Sequence[int], level: int = UNSEEN) -> None:
        """Mark the characters at these positions as a message, which `append_messages` appends later.

        Args:
            positions: In the current text.
            level: `UNSEEN` or `ASIDE`.
        """

    def append_messages(self, text: str, messages: Sequence[str]) -> str:
        """The text, followed by the marked messages, in that order, each on its own line."""
        return "\n".join([text, *messages])


UNTRACED = Edits()


class Trace(Edits):
    """Replacements with a record.

    Attributes:
        start, end: For each character of the current text, the region of the original text that it came from, shape
            (n,). The characters of a replacement share the replaced region; if the lengths are equal, each character
            has its own.
        hidden: Which characters belong to messages outside the shown text, `UNSEEN` or `ASIDE`; else 0; shape (n,).

    Each step takes O(n) time and memory for a text of n characters.
    """

    traced: ClassVar[bool] = True

    def __init__(self, text: str) -> None:
        self.start: Numbers = np.arange(len(text), dtype=np.int32)
        self.end: Numbers = self.start + np.int32(1)
        self.hidden: NDArray[np.int8] = np.zeros(len(text), np.int8)
        self._messages: list[tuple[Numbers, Numbers, int]] = []
        self._sorted_starts: tuple[Numbers, Numbers] | None = None

    def sub(self, pattern: re.Pattern[str], by: str | Callable[[re.Match[str]], str], text: str) -> str:
        new = by if callable(by) else (lambda match: match.expand(by)) if "\\" in by else lambda _: by
        return self.put(text, [(match.start(), match.end(), new(match)) for match in pattern.finditer(text)])

    def put(self, text: str, changes: Sequence[Change]) -> str:
        changes = [change for change in changes if text[change[0] : change[1]] != change[2]]
        if changes:
            self._remap(*_character_origins(len(text), changes))
        return super().put(text, changes)

    def cut(self, text: str, start: int, end: int) -> str:
        if start > 0 or end < len(text):
            self.start, self.end, self.hidden = self.start[start:end], self.end[start:end], self.hidden[start:end]
        return text[start:end]

    def mark_message(self, positions: Sequence[int], level: int = UNSEEN) -> None:
        indices = np.asarray(positions, np.intp)
        self._messages.append((self.start[indices], self.end[indices], level))

    def append_messages(self, text: str, messages: Sequence[str]) -> str:
        for start, end, level in self._messages:  # the line break before a message has no origin
            self.start = np.concatenate([self.start, start[:1], start])
            self.end = np.concatenate([self.end, start[:1], end])
            self.hidden = np.concatenate([self.hidden, np.full(1 + len(start), level, np.int8)])
        self._messages = []
        return super().append_messages(text, messages)

    def _remap(self, first: NDArray[np.intp], last: NDArray[np.intp]) -> None:
        start, end = self.start[first], self.end[last]
        # A replacement from the text into an appended message gets the origin of its first character.
        self.start, self.end = start, np.where(end < start, self.end[first], end)
        self.hidden = self.hidden[first]

    def regions(self, start: int, end: int) -> Regions:
        """The regions of the original text behind the characters from `start` to `end`, ascending.

        Original characters between two of these that were removed, such as an invisible character inside a word or a
        tag, belong to the region.

        Complexity: O(n log n) time for the n characters of the text the first time, then O(w log n) for a window of w.
        """
        starts, ends = self.start[start:end], self.end[start:end]
        real = ends > starts
        pieces = merge_regions(list(zip(starts[real].tolist(), ends[real].tolist(), strict=True)))
        origins = self._origins()
        regions: list[Region] = []
        for piece in pieces:
            if regions and np.searchsorted(origins, regions[-1][1]) == np.searchsorted(origins, piece[0]):
                regions[-1] = regions[-1][0], piece[1]
            else:
                regions.append(piece)
        return tuple(regions)

    def _origins(self) -> Numbers:
        """The origins of the characters, ascending."""
        if self._sorted_starts is None or self._sorted_starts[0] is not self.start:
            self._sorted_starts = self.start, np.sort(self.start[self.end > self.start])
        return self._sorted_starts[1]

    def messages(self, level: int) -> Regions:
        """The regions of messages of a level, ascending."""
        edges = np.flatnonzero(np.diff(np.concatenate([[0], self.hidden == level, [0]]).astype(np.int8)))
        return tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))

    def within(self, regions: Sequence[Region]) -> NDArray[np.bool_]:
        """Which characters came from any of these regions of the original text, shape (n,)."""
        borders = np.array(merge_regions(regions), np.int64).reshape(-1, 2)
        next_one = np.searchsorted(borders[:, 1], self.start, side="right")  # the first that ends after its start
        inside = next_one < len(borders)
        inside[inside] = borders[next_one[inside], 0] < self.end[inside]
        return np.asarray(inside & (self.end > self.start))


def merge_regions(regions: Sequence[Region]) -> Regions:
    """The same regions, ascending; overlapping or adjacent ones are merged."""
    joined_regions: list[Region] = []
    for start, end in sorted(regions):
        if joined_regions and start <= joined_regions[-1][1]:
            joined_regions[-1] = joined_regions[-1][0], max(end, joined_regions[-1][1])
        else:
            joined_regions.append((start, end))
    return tuple(joined_regions)


def _character_origins(length: int, changes: Sequence[Change]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For each character after the changes, the first and last character before them that it came from."""
    starts = np.array([change[0] for change in changes], np.intp)
    ends = np.array([change[1] for change in changes], np.intp)
    sizes = np.array([len(change[2]) for change in changes], np.intp)
    before = np.concatenate([[0], ends])
    # Unchanged and new parts alternate.
    counts = np.empty(2 * len(changes) + 1, np.intp)
    counts[::2] = np.concatenate([starts, [length]]) - before
    counts[1::2] = sizes
    base = np.empty_like(counts)
    base[::2], base[1::2] = before, starts
    single = np.ones(len(counts), bool)
    single[1::2] = sizes == ends - starts  # replaced character by character
    final = np.empty_like(counts)
    final[::2], final[1::2] = before, np.maximum(ends - 1, starts)
    turn = np.repeat(np.arange(len(counts)), counts)
    offset = np.arange(len(turn)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = base[turn] + np.where(single[turn], offset, 0)
    return first, np.where(single[turn], first, final[turn])
