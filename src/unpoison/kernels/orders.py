"""Orders: stretches of a text that address the model that reads it instead of the person who does.

Words that orders are made of come in kinds ("ignore" voids, "instructions" guide, "reply" answers, ...), and signs are
made of kinds (`order_signs`). Some signs speak for an order and some against one; a stretch of text is as suspicious as
its distinct signs say together, and a text as its most suspicious stretch of any length. So nothing that is added
before or behind an order clears it, and words put inside it lower its log-odds by `MOST_AGAINST` at most as long as
they leave its signs within their reach. `data/orders.json` holds kinds, signs and weights;
`benchmarks/train_orders.py` fits them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise
from math import exp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.kernels.order_signs import (
    FAR,
    NEAR,
    Kinds,
    Lexicon,
    OrderSigns,
    SignTable,
    occurrences_apart,
    occurrences_in,
    signs,
)
from unpoison.kernels.sentences import sentences

__all__ = [
    "MOST_AGAINST",
    "THRESHOLD",
    "WINDOW",
    "Order",
    "OrderWeights",
    "Stretches",
    "loaded",
    "order",
    "shipped",
    "stretches",
    "suspicions",
]

WINDOW = 28
"""Words of the longest stretch whose signs count together."""

MOST_AGAINST = 6.0
"""How much the signs against an order lower the log-odds of a stretch at most."""

THRESHOLD = 0.5
"""The probability from which a stretch is called an order; the fit shifts its scale so that it is this one."""

LONGEST_QUOTE = 160
"""Characters of an order that a reason shows."""

BLOCK = 8192
"""Words whose stretches are looked at together, which bounds memory."""

TOGETHER = 65_536
"""Characters of texts that are looked at together, which bounds memory too."""

_ENDS = re.compile(r"[.!?\u3002\uff01\uff1f\n]")


@dataclass(frozen=True)
class OrderWeights:
    """What the signs say.

    Attributes:
        lexicon: The words.
        bias: Log-odds of a stretch without any sign.
        weight: What each sign adds, by its two kinds and the reach.
    """

    lexicon: Lexicon
    bias: float
    weight: Mapping[Kinds, float]

    @cached_property
    def _rows(self) -> list[tuple[int, int, float, bool]]:
        number, size = self.lexicon.number, len(self.lexicon.names)
        return sorted(
            (number[first] * size + number[second], reach, value, reach > NEAR)
            for (first, second, reach), value in self.weight.items()
        )

    @cached_property
    def table(self) -> SignTable:
        """The signs, in the order of `values`."""
        far = np.zeros(len(self.lexicon.names), bool)
        far[[code // len(far) for code, _, _, is_far in self._rows if is_far]] = True
        code, reach = (np.array([row[i] for row in self._rows], np.int64) for i in (0, 1))
        return SignTable(code, reach, far)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The weights by sign, shape (n signs,)."""
        return np.array([row[2] for row in self._rows], float)


SPARED = 2.0
"""Log-odds that a sentence more has to add to belong to an order."""


class Order(NamedTuple):
    """The most suspicious stretch of a text.

    Attributes:
        probability: Of being an order, in [0, 1].
        quote: The sentence or sentences around it, at most 160 characters; empty where there is no sign.
        start, end: Where it stands in the text, from its first sign to its last; both 0 where there is none.
    """

    probability: float
    quote: str
    start: int = 0
    end: int = 0


class Stretches(NamedTuple):
    """The best stretches of a text, by the word that they end with; position 0 is what stands before the first word.

    Attributes:
        total: What the signs of each add up to, shape (words + 1,).
        begin: The number of the first word of each, shape (words + 1,).
    """

    total: NDArray[np.float64]
    begin: NDArray[np.int64]


def order(text: str, weights: OrderWeights | None = None) -> Order:
    """The stretch of a text that is most like an order.

    Args:
        text: Canonical.
        weights: Other than the shipped ones.

    Complexity: O(n log n) time in the text's length.
    """
    used = shipped() if weights is None else weights
    best, start, end = _best(text, used)
    if best > 0:
        start, end = _narrowed(text, start, end, used, best)
    return Order(_probability(best, used), _quoted(text, start, end) if best > 0 else "", start, end)


def suspicions(texts: Sequence[str], weights: OrderWeights | None = None) -> NDArray[np.float64]:
    """`order(text).probability` for each of k texts, in a third of the time; shape (k,).

    Complexity: O(n log n) time in the length of all texts.
    """
    used = shipped() if weights is None else weights
    totals = [total for part in _parts(texts) for total in _highest(part, used)]
    return np.array([_probability(total, used) for total in totals], float)


def _parts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts in parts of at most `TOGETHER` characters, or a longer one by itself."""
    part, size = list[str](), 0
    for text in texts:
        if part and size + len(text) > TOGETHER:
            yield part
            part, size = [], 0
        part.append(text)
        size += len(text)
    if part:
        yield part


def _highest(texts: Sequence[str], weights: OrderWeights) -> list[float]:
    """What the best stretch of each text adds up to, at least 0."""
    occurrences, begin = occurrences_apart(texts, weights.lexicon, max(FAR, WINDOW))
    held = signs(occurrences, weights.table)
    total = np.zeros(int(begin[-1]) + 1)
    if len(held.sign):
        best = stretches(held, weights.values[held.sign]).total
        total = np.append(best, np.zeros(max(len(total) - len(best), 0)))
    highest: list[float] = np.maximum(np.maximum.reduceat(total, begin), 0).tolist()
    return highest


def _probability(total: float, weights: OrderWeights) -> float:
    return 1 / (1 + exp(-max(min(total + weights.bias, 50.0), -50.0)))


def _best(text: str, weights: OrderWeights) -> tuple[float, int, int]:
    """What the best stretch adds up to, and where it stands; zeros without any."""
    held = signs(occurrences_in(text, weights.lexicon), weights.table)
    values = weights.values[held.sign]
    if not len(values):
        return 0.0, 0, 0
    all_of = stretches(held, values)
    last = int(all_of.total.argmax())
    best = float(all_of.total[last])
    if best <= 0:
        return 0.0, 0, 0
    inside = (held.first >= all_of.begin[last]) & (held.last < last) & (values > 0)
    return best, int(held.start[inside].min()), int(held.end[inside].max())


def _narrowed(text: str, start: int, end: int, weights: OrderWeights, best: float) -> tuple[int, int]:
    """The fewest sentences of a stretch, one after the other, that are an order by themselves and say nearly as much.

    A stretch runs on into the next sentence for the least sign in it; what is cut or quoted should not.
    """
    enough = max(best - SPARED, -weights.bias)
    regions = [(start + first, start + last) for first, last in sentences(text[start:end])]
    # Marks alone are no sentence: a stretch has few words, but any number of marks may stand between them.
    regions = [(first, last) for first, last in regions if any(map(str.isalnum, text[first:last]))]
    while len(regions) > 1:
        for fewer in (regions[:-1], regions[1:]):
            if _best(text[fewer[0][0] : fewer[-1][1]], weights)[0] > enough:
                regions = fewer
                break
        else:
            break
    return (regions[0][0], regions[-1][1]) if regions else (start, end)


def stretches(held: OrderSigns, values: NDArray[np.float64]) -> Stretches:
    """The best stretch of at most `WINDOW` words that ends with each word; a sign counts once in it. O(n) time.

    Args:
        held: The signs of a text.
        values: What each of them adds.
    """
    # A sign that is met again is taken back there, for the stretches that hold both.
    again = np.flatnonzero(held.sign[1:] == held.sign[:-1])
    last = np.concatenate([held.last, held.last[again + 1]]) + 1
    length = last - np.concatenate([held.first, held.first[again]]) - 1
    value = np.concatenate([values, -values[again]])
    against = np.concatenate([values, values[again]]) < 0
    fits = np.flatnonzero(length < WINDOW)
    fits = fits[np.argsort(last[fits], kind="stable")]
    last, length, value, against = last[fits], length[fits], value[fits], against[fits]
    words = int(held.last.max()) + 2
    total, begin = np.zeros(words), np.zeros(words, np.int64)
    for block in range(0, words, BLOCK):
        low, high = max(block - WINDOW, 0), min(block + BLOCK, words)
        inside = slice(*np.searchsorted(last, [low, high]))
        size = high - low
        cell = (2 * length[inside] + against[inside]) * size + last[inside] - low
        sums = _sums(cell, np.where(against, -value, value)[inside], size)[..., block - low :]
        sums = sums[:, 0] - np.minimum(sums[:, 1], MOST_AGAINST)
        longest = sums.argmax(axis=0)
        total[block:high] = np.take_along_axis(sums, longest[None], axis=0)[0]
        begin[block:high] = np.arange(block, high) - longest - 1
    return Stretches(total, begin)


def _sums(cell: NDArray[np.int64], value: NDArray[np.float64], words: int) -> NDArray[np.float64]:
    """What stretches add up to, by their words less one, what it speaks for, and their last word.

    Args:
        cell: These three in one number, for each value.
        value: What is added to the shortest stretch that holds it.
        words: How many last words there are.
    """
    sums = np.asarray(np.bincount(cell, value, 2 * WINDOW * words).reshape(WINDOW, 2, words), float)
    ending = sums[0].copy()  # what ends with the same word
    for shorter, longer in pairwise(sums):
        ending += longer
        longer[:] = ending
        longer[:, 1:] += shorter[:, :-1]
    return sums


def _quoted(text: str, start: int, end: int) -> str:
    """What stands there, with the rest of its sentences as far as there is room."""
    room = max(LONGEST_QUOTE - (end - start), 0)
    begin = start
    for ending in _ENDS.finditer(text, max(start - room, 0), start):
        begin = ending.end()
    if begin == start and start <= room:
        begin = 0
    ended = _ENDS.match(text, end - 1) if end > start else None  # its last sentence is whole
    close = ended or _ENDS.search(text, end, min(end + room, len(text)))
    until = close.end() if close else end
    return " ".join(text[begin:until].split())[:LONGEST_QUOTE]


@cache
def shipped() -> OrderWeights:
    """The weights of this package."""
    return loaded(json.loads((files("unpoison") / "data" / "orders.json").read_text(encoding="utf-8")))


def loaded(data: Mapping[str, Any]) -> OrderWeights:
    """Weights as `orders.json` holds them: `kinds`, `bias`, and `signs` by their first kind and their second."""
    weight = {
        (first, second, reach): value
        for first, seconds in data["signs"].items()
        for second, reaches in seconds.items()
        for reach, value in reaches
    }
    return OrderWeights(Lexicon(data["kinds"]), data["bias"], weight)
