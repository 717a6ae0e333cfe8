"""Passages that give orders to the model: found at the door, and put back into the screening as dropped.

The defense behind the door never sees them, so they can neither mislead it nor reach a prompt of its. Where orders are
to be cut, it sees what is left of the passages instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.left_out import Because, put_back
from unpoison.defenses.order_cuts import WithoutOrders, order_spans, without_orders
from unpoison.kernels.prompt_injection import LONGEST_QUOTE, THRESHOLD, injection, injections
from unpoison.reasons import PROMPT_INJECTION, Reason, quotable
from unpoison.types import Evidence, Passage, Screening, Span, Verdict, united

__all__ = ["Orders", "OrdersPolicy", "orders_in", "with_orders"]

OrdersPolicy = Literal["drop", "keep"]


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
    probability = injections([passage.reading for passage in passages])
    worst = {i: injection(passages[i].reading) for i in np.flatnonzero(probability > THRESHOLD).tolist()}
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
    """The screening of the passages that give no order as a screening of all; cut orders become spans."""
    read, k = set(orders.read), len(passages)
    dropped = {i: _given(orders, i) for i in range(k) if i not in read}
    screening = put_back(screening, passages, orders.read, dropped)
    verdicts = tuple(_cut(v, orders) if v.index in orders.spans and v.index in read else v for v in screening.verdicts)
    arrays = {**screening.evidence.arrays, "orders": orders.probability}
    notes = (*screening.evidence.notes, *_notes(orders, k))
    evidence = Evidence(arrays, notes, screening.evidence.graph)
    return replace(screening, passages=passages, verdicts=verdicts, evidence=evidence)


def _notes(orders: Orders, k: int) -> list[str]:
    unread, cut = k - len(orders.read), len(orders.spans) - (k - len(orders.read))
    notes = [f"not read, for giving orders to the model: {unread} of {k} passages"] if unread else []
    return [*notes, f"read without the orders that they give to the model: {cut} of {k} passages"] if cut else notes


def _given(orders: Orders, i: int) -> Because:
    return Because(Reason.of(PROMPT_INJECTION, quote=quotable(orders.quotes[i], LONGEST_QUOTE)), orders.spans[i])


def _cut(verdict: Verdict, orders: Orders) -> Verdict:
    """What the defense says of the rest, and that it is one."""
    quote = quotable(orders.quotes[verdict.index], LONGEST_QUOTE)
    reason = Reason.of("prompt_injection.cut", quote=quote, clauses=[verdict.reason.clause])
    return replace(verdict, reason=reason, spans=united([*verdict.spans, *orders.spans[verdict.index]]))
