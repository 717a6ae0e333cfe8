"""What a secret decides of a fitted Guard: which columns its trees may see, and which parts of a style count.

Who has read this package knows every column and weight, and can search for a text that passes. A Guard of one's own
looks at other evidence of the same kinds, and a searcher without its file cannot know at which.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard.model import COMPANY, WORDING
from unpoison.errors import OptionError
from unpoison.kernels.style import Style
from unpoison.kernels.window_evidence import COLUMNS

__all__ = ["GROUPS", "SEEN_GROUPS", "Choice", "drawn", "group_of", "part_of"]

GROUPS: Final = 12
"""Parts of a style, by a hash of its runs."""

SEEN_GROUPS: Final = 6
"""Of these so many count, twice as much each: 924 choices for the passages' style, as many for the windows'."""

SHARE: Final = 0.7
"""Each other column is seen with this probability."""

ALWAYS: Final = frozenset({"similarity", "coverage", "claim", "wording", "wording_claim", "suspicion", "style"})
"""Without these little is found; what `wording` and `style` say is the secret's choice anyway."""

NEVER: Final = frozenset({"wording_most", "wording_least"})
"""They cannot be told from the parts of a style, as the sentence that is extreme depends on all of them."""

FEWEST: Final = 16
"""Bytes of a secret; shorter ones can be guessed."""

SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio of 64 bits: neighbouring codes fall into different groups."""


class Choice(NamedTuple):
    """What is seen.

    Attributes:
        first, second, alone, windows: The columns of each step, by name, in their order.
        style, window_style: The groups that count, rising.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    alone: tuple[str, ...]
    windows: tuple[str, ...]
    style: tuple[int, ...]
    window_style: tuple[int, ...]


def drawn(secret: str, columns: Sequence[str], own: Sequence[str]) -> Choice:
    """The choice that a secret makes, the same on every machine.

    Args:
        secret: At least 16 bytes.
        columns: Of the evidence.
        own: Those of them, or of `WORDING`, that do not depend on the other passages.

    Raises:
        OptionError: The secret is too short.
    """
    key = secret.encode("utf-8", "surrogatepass")
    if len(key) < FEWEST:
        raise OptionError(f"a secret of {len(key)} bytes can be guessed; give {FEWEST} or more, such as random letters")
    lots = partial(_lot, blake2b(key).digest())

    def some(step: str, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(n for n in names if n not in NEVER and (n in ALWAYS or lots(step, n) < SHARE))

    def half(step: str) -> tuple[int, ...]:
        return tuple(sorted(sorted(range(GROUPS), key=lambda group: lots(step, str(group)))[:SEEN_GROUPS]))

    both = (*columns, *WORDING)
    return Choice(
        first=some("first", both),
        second=some("second", (*both, *COMPANY)),
        alone=some("alone", own),
        windows=some("windows", COLUMNS),
        style=half("style"),
        window_style=half("window style"),
    )


def _lot(key: bytes, step: str, name: str) -> float:
    """A number in [0, 1) that the key draws for a column or group of a step, whatever others there are."""
    digest = blake2b(f"{step}\n{name}".encode(), key=key, digest_size=8, person=b"unpoison guard").digest()
    return int.from_bytes(digest, "little") / 2**64


def group_of(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The group of each run, in [0, GROUPS), shape (f,)."""
    high = (codes.astype(np.uint64) * SPREAD) >> np.uint64(32)
    return (high % np.uint64(GROUPS)).astype(np.int64)


def part_of(style: Style, groups: Sequence[int]) -> Style:
    """A style of which only these groups count, more each, so that the whole stays about as large.

    The other runs stay, without weight: a text's length counts all of them, so what groups say adds up.
    """
    share = GROUPS / len(groups)
    counts = np.isin(group_of(style.code), groups)
    return Style(style.code, np.where(counts, style.weight * share, 0.0), style.base)
