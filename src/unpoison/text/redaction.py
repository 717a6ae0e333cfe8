"""A reading without some stretches of the text that it was made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.text.alignment import Change, Region, Trace
from unpoison.text.canonical import Canonical, canonical

__all__ = ["MARK", "redact_text", "redact_with_trace"]

MARK = "[removed]"
"""What a model is shown where something was cut."""


def redact_with_trace(text: str, regions: Sequence[Region] = ()) -> tuple[Canonical, Trace]:
    """`redact_text`, and where its characters come from."""
    trace = Trace(text)
    whole = canonical(text, edits=trace)
    if not regions:
        return whole, trace
    left = trace.put(whole.text, list(_cuts(whole.text, trace, regions, "")))
    return Canonical(canonical(left, edits=trace).text, whole.hidden), trace


def redact_text(text: str, regions: Sequence[Region], mark: str = "") -> Canonical:
    """The canonical text without what was made of some stretches of the raw one, and what was hidden in the raw one.

    Args:
        text: Raw.
        regions: Stretches of it, in any order.
        mark: What stands where something was cut; nothing where it was hidden, for nobody misses that.

    Returns:
        `canonical` of its text is the same text: what is left is read again, so that no cut can make a tag.

    Complexity: O(n log n) time, O(n) memory for n characters.
    """
    trace = Trace(text)
    whole = canonical(text, edits=trace)
    left = trace.put(whole.text, list(_cuts(whole.text, trace, regions, mark)))
    return Canonical(canonical(left).text, whole.hidden)


def _cuts(text: str, trace: Trace, regions: Sequence[Region], mark: str) -> Iterator[Change]:
    """What to take out of a canonical text; cuts with nothing but white space between them are one."""
    gone = trace.within(regions)
    words = np.cumsum(np.concatenate([[0], ~gone & ~_blank(text)]))  # how many letters stay before each position
    edges = np.flatnonzero(np.diff(np.concatenate([[False], gone, [False]]).astype(np.int8)))
    stretches: list[Region] = []
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if stretches and words[stretches[-1][1]] == words[start]:
            stretches[-1] = stretches[-1][0], end
        else:
            stretches.append((start, end))
    for start, end in stretches:
        shown = mark if mark and not trace.hidden[start:end].all() else ""
        before = " " if text[start - 1 : start].strip() else ""
        after = " " if text[end : end + 1].strip() else ""
        yield start, end, f"{before}{shown}{after}" if shown else before and after


def _blank(text: str) -> NDArray[np.bool_]:
    return np.fromiter(map(str.isspace, text), bool, len(text))
