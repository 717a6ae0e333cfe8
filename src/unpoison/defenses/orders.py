"""Passages that give orders to the model: found at the door, and put back into the screening as dropped.

The defense behind the door never sees them, so they can neither mislead it nor reach a prompt of its. Where orders are
to be cut, it sees what is left of the passages instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.order_cuts import WithoutOrders, order_spans, without_orders
from unpoison.kernels.meant_orders import order, suspicions
from unpoison.kernels.orders import LONGEST_QUOTE, THRESHOLD
from unpoison.reasons import PROMPT_INJECTION, Reason, quotable
from unpoison.types import Claim, Contest, Evidence, Passage, Rival, Screening, Span, Verdict, united

__all__ = ["Orders", "OrdersPolicy", "orders_in", "with_orders"]

OrdersPolicy = Literal["drop", "keep"]

R = TypeVar("R", Claim, Rival)

ANSWERING = "answering"
"""The positions of the passages that answered; where it is given, all flat arrays go by these passages alone."""

_NAMED = re.compile(r"\bpassage (\d{1,4}(?:, \d{1,4})*)\b")


class Orders(NamedTuple):
    """What the passages order.

    Attributes:
        probability: That a passage gives an order, by its worst stretch, in [0, 1], shape (k,).
        quotes: That stretch, of those that give one, by position.
        passages: What the defense gets of them: those that give none, and the rests of those that are cut.
        read: The positions of these, rising.
        spans: Where the orders stand, by position.
    """

    probability: NDArray[np.float64]
    quotes: Mapping[int, str]
    passages: tuple[Passage, ...]
    read: tuple[int, ...]
    spans: Mapping[int, tuple[Span, ...]]


def orders_in(passages: Sequence[Passage], *, cut: bool = False) -> Orders:
    """Judge each passage by itself. O(n log n) time in the length of the texts.

    Args:
        passages: All of a question.
        cut: Whether passages whose orders are confined to a few sentences are read without these.
    """
    probability = suspicions([passage.reading for passage in passages])
    worst = {i: order(passages[i].reading) for i in np.flatnonzero(probability > THRESHOLD).tolist()}
    rests = {
        i: without_orders(passages[i], given) if cut else WithoutOrders(None, order_spans(passages[i], given))
        for i, given in worst.items()
    }
    left = [rests[i].passage if i in rests else passage for i, passage in enumerate(passages)]
    return Orders(
        probability,
        {i: given.quote for i, given in worst.items()},
        tuple(passage for passage in left if passage is not None),
        tuple(i for i, passage in enumerate(left) if passage is not None),
        {i: rest.spans for i, rest in rests.items()},
    )


def with_orders(screening: Screening, orders: Orders, passages: tuple[Passage, ...]) -> Screening:
    """The screening of the passages that give no order as a screening of all.

    Positions in reasons, claims, contests, notes and arrays become those of all passages, and cut orders spans. Dropped
    orders get the lowest score, and in the arrays zero, the probability of poison 1 and the cluster -1.
    """
    read = orders.read
    verdicts, evidence = screening.verdicts, screening.evidence
    claims, contested = screening.claims, screening.contested
    if len(read) < len(passages):
        lowest = min([0.0, *(v.score for v in verdicts)])
        moved = {read[v.index]: replace(v, index=read[v.index], reason=_moved(v.reason, read)) for v in verdicts}
        verdicts = tuple(moved.get(i) or _dropped(i, lowest, orders) for i in range(len(passages)))
        evidence = replace(
            evidence,
            arrays=_spread_all(evidence, read, len(passages)),
            notes=tuple(_renumbered(note, read) for note in evidence.notes),
        )
        claims = tuple(_behind(claim, read) for claim in claims)
        contested = tuple(Contest(tuple(_behind(rival, read) for rival in contest.rivals)) for contest in contested)
    verdicts = tuple(_cut(v, orders) if v.index in orders.spans and v.index in read else v for v in verdicts)
    arrays = {**evidence.arrays, "orders": orders.probability}
    notes = (*evidence.notes, *_notes(orders, len(passages)))
    return replace(
        screening,
        passages=passages,
        verdicts=verdicts,
        evidence=Evidence(arrays, notes, evidence.graph),
        contested=contested,
        claims=claims,
    )


def _behind(said: R, read: Sequence[int]) -> R:
    """A claim or a rival with the positions of its passages among all."""
    return replace(said, passages=tuple(read[i] for i in said.passages))


def _notes(orders: Orders, k: int) -> list[str]:
    unread, cut = k - len(orders.read), len(orders.spans) - (k - len(orders.read))
    notes = [f"not read, for giving orders to the model: {unread} of {k} passages"] if unread else []
    return [*notes, f"read without the orders that they give to the model: {cut} of {k} passages"] if cut else notes


def _dropped(i: int, score: float, orders: Orders) -> Verdict:
    reason = Reason.of(PROMPT_INJECTION, quote=quotable(orders.quotes[i], LONGEST_QUOTE))
    return Verdict(i, False, score, None, reason, orders.spans[i])


def _cut(verdict: Verdict, orders: Orders) -> Verdict:
    """What the defense says of the rest, and that it is one."""
    quote = quotable(orders.quotes[verdict.index], LONGEST_QUOTE)
    reason = Reason.of("prompt_injection.cut", quote=quote, clauses=[verdict.reason.clause])
    return replace(verdict, reason=reason, spans=united([*verdict.spans, *orders.spans[verdict.index]]))


def _moved(reason: Reason, read: Sequence[int]) -> Reason:
    """A reason whose positions count only what was read; of somebody's own sentence what it calls "passage 2"."""
    return reason.moved(lambda n: read[n] if n < len(read) else n, lambda text: _renumbered(text, read))


def _renumbered(text: str, read: Sequence[int]) -> str:
    """A sentence whose "passage 2, 3" count only what was read."""

    def renumbered(match: re.Match[str]) -> str:
        numbers = [int(number) for number in match[1].split(", ")]
        return "passage " + ", ".join(str(read[n]) if n < len(read) else str(n) for n in numbers)

    return _NAMED.sub(renumbered, text)


def _spread_all(arrays: Mapping[str, NDArray[Any]], read: Sequence[int], k: int) -> dict[str, NDArray[Any]]:
    if ANSWERING not in arrays:
        return {name: _spread(name, array, read, k) for name, array in arrays.items()}
    spread = {name: _spread(name, array, read, k) if array.ndim > 1 else array for name, array in arrays.items()}
    return {**spread, ANSWERING: np.array(read, int)[arrays[ANSWERING]]}


def _spread(name: str, array: NDArray[Any], read: Sequence[int], k: int) -> NDArray[Any]:
    """An array by passage in the positions of all passages."""
    if not array.ndim or any(size != len(read) for size in array.shape):
        return array
    whole = np.zeros((k,) * array.ndim, array.dtype)
    if name == "speaker":  # its values are positions too
        whole, array = np.arange(k), np.array(read, int)[array]
    elif name == "clusters":
        whole -= 1
    elif name == "probability":
        whole += 1
    whole[np.ix_(*[list(read)] * array.ndim)] = array
    return whole
