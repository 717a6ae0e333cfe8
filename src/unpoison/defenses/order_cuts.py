"""Orders cut out of the passages that give them: whole sentences, until what is left gives none."""

from __future__ import annotations

from typing import NamedTuple

from unpoison.kernels.prompt_injection import LONGEST_QUOTE, Injection, injection
from unpoison.kernels.sentences import around, sentences
from unpoison.reasons import PROMPT_INJECTION, Reason, quotable
from unpoison.spans import Span, spans_of, united, without
from unpoison.types import Passage

__all__ = ["WithoutOrders", "harmless", "hidden_spans", "order_spans", "without_orders"]

MOST_CUTS = 8
"""Orders of one passage that are cut; one that gives more consists of them."""

RESIDUE = 0.05
"""What is left of a passage that gave an order may look like one at most so much, in probability; of 1,328 clean
passages 98 % look like one less than that, so little is lost by being strict with those that gave one."""

FEWEST_WORDS = 3
"""A rest of fewer words says nothing."""


class WithoutOrders(NamedTuple):
    """A passage without its orders.

    Attributes:
        passage: Its reading gives none; None where they are not confined to a few sentences.
        spans: Where they stand in the caller's text.
    """

    passage: Passage | None
    spans: tuple[Span, ...]


def order_spans(passage: Passage, worst: Injection) -> tuple[Span, ...]:
    """The sentences of an order in the caller's text. O(n log n) time for n characters."""
    reason = str(Reason.of(PROMPT_INJECTION, quote=quotable(worst.quote, LONGEST_QUOTE)))
    window = (*around(passage.reading, worst.start, worst.end), round(worst.probability, 4), reason)
    return united(spans_of(passage, [window]))


def without_orders(passage: Passage, worst: Injection) -> WithoutOrders:
    """Cut what a passage hides, and its orders, the most suspicious first. O(n log n) time for n characters.

    Args:
        passage: One that gives an order.
        worst: That order.
    """
    whole, spans = passage, hidden_spans(passage, worst.probability)
    if spans:
        passage = without(whole, spans)
        worst = injection(passage.reading)
    for _ in range(MOST_CUTS):
        if worst.probability <= RESIDUE:
            spans = _closed(whole, spans)
            passage = without(whole, spans)
            return WithoutOrders(passage if harmless(passage) else None, spans)
        spans = united([*spans, *order_spans(passage, worst)])
        passage = without(whole, spans)
        worst = injection(passage.reading)
    return WithoutOrders(None, spans)


def _closed(passage: Passage, spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """The same, and with them each single sentence that stands between two of them in a paragraph.

    What an order is explained with ("This was approved last week.") is no order, and the order's place is its only
    evidence: on both sides of it, not on one, for an honest sentence stands beside every order that was planted.
    """
    closed = list(spans[:1])
    for span in spans[1:]:
        last = closed[-1]
        between = (passage.text if span.field == "text" else passage.title or "")[last.end : span.start]
        if span.field == last.field and "\n" not in between and len(sentences(between)) <= 1:
            reason = last.reason if last.probability >= span.probability else span.reason
            closed[-1] = Span(last.start, span.end, max(last.probability, span.probability), reason, span.field)
        else:
            closed.append(span)
    return tuple(closed)


def hidden_spans(passage: Passage, probability: float) -> tuple[Span, ...]:
    """Messages where no reader looks, in a passage that has so much suspicion on it otherwise."""
    reason = "a message where no reader looks"
    return united(spans_of(passage, [(*region, round(probability, 4), reason) for region in passage.messages()]))


def harmless(passage: Passage) -> bool:
    """Whether what is left of a passage says anything, and gives no order, with and without the marks of the cuts."""
    words = sum(any(map(str.isalnum, word)) for word in passage.reading.split())
    return words >= FEWEST_WORDS and all(
        injection(text).probability <= RESIDUE for text in {passage.reading, passage.shown}
    )
