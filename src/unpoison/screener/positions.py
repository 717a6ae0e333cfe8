"""Maps the screening of the passages that a defense read to a screening of all that the caller passed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Span, Verdict

__all__ = ["Because", "put_back"]

ANSWERING = "answering"
"""Array with the positions of the passages that answered. If present, all flat arrays have an entry for each of
these passages only."""

_NAMED = re.compile(r"\bpassage (\d{1,4}(?:, \d{1,4})*)\b")


class Because(NamedTuple):
    """Why a passage was left out, and the parts of it that caused this."""

    reason: Reason
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class _Places:
    """Maps positions among the passages read to positions among all.

    Attributes:
        read: Position of each passage that was read, ascending.
        copies: Position of each copy, mapped to that of its original.
        k: The number of all passages.
    """

    read: Sequence[int]
    copies: Mapping[int, int]
    k: int

    def of(self, positions: Sequence[int]) -> tuple[int, ...]:
        """The positions of these passages and of their copies, ascending."""
        here = {self.read[i] for i in positions}
        return tuple(sorted(here | {copy for copy, first in self.copies.items() if first in here}))

    def text(self, text: str) -> str:
        """Renumber "passage 2, 3" in a sentence."""

        def renumber(match: re.Match[str]) -> str:
            numbers = [int(number) for number in match[1].split(", ")]
            return "passage " + ", ".join(str(self.read[n]) if n < len(self.read) else str(n) for n in numbers)

        return _NAMED.sub(renumber, text)

    def reason(self, reason: Reason) -> Reason:
        """Renumber the positions in a reason."""
        return reason.remap(lambda n: self.read[n] if n < len(self.read) else n, self.text)

    def arrays(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        if ANSWERING not in arrays:
            return {name: self._array(name, array) for name, array in arrays.items()}
        spread = {name: self._array(name, array) if array.ndim > 1 else array for name, array in arrays.items()}
        return {**spread, ANSWERING: np.array(self.read, int)[arrays[ANSWERING]]}

    def _array(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Extend an array with one entry per passage read to one entry per passage."""
        if not array.ndim or any(size != len(self.read) for size in array.shape):
            return array
        whole = np.zeros((self.k,) * array.ndim, array.dtype)
        if name == "clusters":
            whole -= 1
        elif name == "probability":
            whole += 1
        number = {place: i for i, place in enumerate(self.read)}
        source = number | {copy: number[first] for copy, first in self.copies.items() if first in number}
        at = sorted(source)
        whole[np.ix_(*[at] * array.ndim)] = array[np.ix_(*[[source[i] for i in at]] * array.ndim)]
        return whole


def put_back(
    screening: Screening,
    passages: tuple[Passage, ...],
    read: Sequence[int],
    dropped: Mapping[int, Because],
    copies: Mapping[int, int] | None = None,
) -> Screening:
    """Turn the screening of the passages that were read into a screening of all.

    Positions in reasons, notes, claims, contests and arrays are renumbered. A passage that was left out gets the
    lowest score; in the arrays it gets 0, as probability of poison 1, as cluster -1. A copy gets the verdict of its
    original and ranks directly behind it.

    Args:
        screening: Of the passages that were read.
        passages: All of them.
        read: Positions of the passages that were read, ascending.
        dropped: Passages left out and dropped, by position.
        copies: Duplicates left out, each mapped to its original. Every position is in one of the three.
    """
    if len(read) == len(passages):
        return screening
    places = _Places(read, copies or {}, len(passages))
    lowest = min([0.0, *(v.score for v in screening.verdicts)])
    verdicts = {i: Verdict(i, False, lowest, None, why.reason, why.spans) for i, why in dropped.items()}
    for v in screening.verdicts:
        verdicts[read[v.index]] = replace(v, index=read[v.index], reason=places.reason(v.reason))
    for copy, first in places.copies.items():
        verdicts[copy] = replace(verdicts[first], index=copy, reason=Reason.of("copies.copy", passage=first))
    order = [copy for i in screening.kept_indices for copy in _with_copies(read[i], places.copies)]
    ranks = {i: rank for rank, i in enumerate(order)}
    return replace(
        screening,
        passages=passages,
        verdicts=tuple(replace(verdicts[i], rank=ranks.get(i)) for i in range(len(passages))),
        evidence=replace(
            screening.evidence,
            arrays=places.arrays(screening.evidence.arrays),
            notes=tuple(places.text(note) for note in screening.evidence.notes),
        ),
        contested=tuple(
            replace(contest, rivals=tuple(replace(r, passages=places.of(r.passages)) for r in contest.rivals))
            for contest in screening.contested
        ),
        claims=tuple(replace(claim, passages=places.of(claim.passages)) for claim in screening.claims),
    )


def _with_copies(first: int, copies: Mapping[int, int]) -> list[int]:
    return [first, *(copy for copy, of in copies.items() if of == first)]
