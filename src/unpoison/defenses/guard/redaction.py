"""A passage that a check would drop, kept without what makes it suspicious where the rest is harmless.

Checks say how suspicious each window of a passage's reading is. What is above the threshold is cut, the rest is checked
again in the company of the others, as any passage is, and only what is harmless then is kept. So a false alarm costs a
few sentences, and nothing is kept that was not checked as it will be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage
from unpoison.core.reasons import Reason
from unpoison.core.verdicts import Span, merge_spans, spans_of, without
from unpoison.screener.injections import harmless, hidden_spans

__all__ = ["Judged", "Redaction", "Window", "redact_passages", "suspicious_spans"]

Matrix = NDArray[np.float64]

NOTHING: Mapping[int, tuple[Span, ...]] = MappingProxyType({})

ROUNDS = 2
"""How often a rest that is still suspicious is cut again; each costs one more judgement of the whole set."""


class Window(NamedTuple):
    """A run of sentences of a passage.

    Attributes:
        start, end: Positions in the passage's reading.
        probability: Of poison, in [0, 1].
        reason: One sentence.
    """

    start: int
    end: int
    probability: float
    reason: str


class Judged(NamedTuple):
    """The results of the checks for k passages.

    Attributes:
        probability: That a passage is suspicious, shape (k,).
        threshold: Above it a passage is dropped or cut.
        windows: By position, in any order. Windows may overlap; of those that contain each other the smallest counts.
        firm: Positions that go whole, whatever could be cut.
    """

    probability: Matrix
    threshold: float
    windows: Mapping[int, Sequence[Window]]
    firm: frozenset[int] = frozenset()


Judge = Callable[[tuple[Passage, ...]], Judged]


class Redaction(NamedTuple):
    """The result of redaction for k passages.

    Attributes:
        passages: Where something is cut the rest, otherwise as they were.
        probability: Of what is left of each, shape (k,); of the whole where nothing is cut.
        spans: What is suspicious, by position; of those in `cut`, what is cut.
        cut: Positions of those that are kept without something.
    """

    passages: tuple[Passage, ...]
    probability: Matrix
    spans: Mapping[int, tuple[Span, ...]]
    cut: frozenset[int] = frozenset()

    def reason(self, i: int, clauses: Sequence[Reason]) -> Reason:
        """Why a passage is kept without something, and what was said of the whole."""
        spans, probability = len(self.spans[i]), self.probability[i]
        return Reason.of("guard.redacted", spans=spans, probability=probability, clauses=clauses)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence where anything is cut."""
        if not self.cut:
            return ()
        return (f"kept without their suspicious spans: {len(self.cut)} of {len(self.passages)} passages",)


def suspicious_spans(passages: Sequence[Passage], judged: Judged) -> dict[int, tuple[Span, ...]]:
    """The suspicious windows of the passages that are dropped, and what these hide, in the caller's texts."""
    dropped = np.flatnonzero(judged.probability > judged.threshold).tolist()
    by_position = {i: _spans(passages[i], judged, i) for i in dropped}
    return {i: spans for i, spans in by_position.items() if spans}


def redact_passages(
    passages: tuple[Passage, ...], judged: Judged, judge: Judge, hidden: Mapping[int, tuple[Span, ...]] = NOTHING
) -> Redaction:
    """Cut what is suspicious, check the rest, and keep the rests that are harmless.

    Args:
        passages: All of a question, those in `hidden` without these spans.
        judged: What the checks say of them.
        judge: Checks again, with passages of which more is cut.
        hidden: What was cut before.
    """
    probability = judged.probability.copy()
    emptied = [i for i in hidden if not harmless(passages[i])]
    probability[emptied] = 1.0
    cut = {i for i in hidden if probability[i] <= judged.threshold}
    suspicious = suspicious_spans(passages, judged)
    spans = {i: merge_spans([*hidden.get(i, ()), *suspicious.get(i, ())]) for i in {*hidden, *suspicious}}
    rests = _rests(passages, {i: spans[i] for i in suspicious if i not in judged.firm})
    for _ in range(ROUNDS):
        if not rests:
            break
        again = judge(tuple(rests.get(i, passage) for i, passage in enumerate(passages)))
        fine = {i for i in rests if again.probability[i] <= again.threshold}
        probability[list(fine)] = again.probability[list(fine)]
        passages = tuple(rests[i] if i in fine else passage for i, passage in enumerate(passages))
        cut |= fine
        more = {i: _spans(rest, again, i) for i, rest in rests.items() if i not in fine and i not in again.firm}
        more = {i: merge_spans([*spans[i], *own]) for i, own in more.items() if own}
        spans |= more
        rests = _rests(passages, more)
    return Redaction(passages, probability, spans, frozenset(cut))


def _rests(passages: Sequence[Passage], spans: Mapping[int, Sequence[Span]]) -> dict[int, Passage]:
    """What is left of passages, where it says anything and gives no order."""
    rests = {i: without(passages[i], own) for i, own in spans.items()}
    return {i: rest for i, rest in rests.items() if harmless(rest)}


def _spans(passage: Passage, judged: Judged, i: int) -> tuple[Span, ...]:
    text, suspicious = passage.reading, [w for w in judged.windows.get(i, ()) if w.probability > judged.threshold]
    windows = [
        (*_with_marks(text, window.start, window.end), round(window.probability, 4), window.reason)
        for window in _smallest(suspicious)
    ]
    hidden = hidden_spans(passage, float(judged.probability[i]))
    return merge_spans([*spans_of(passage, windows), *hidden])


def _smallest(windows: Sequence[Window]) -> list[Window]:
    """The windows that contain no other one: the smallest that is suspicious says where the trouble is."""
    smallest, latest = list[Window](), -1
    for window in sorted(windows, key=lambda window: (window.end, -window.start)):
        if window.start > latest:
            smallest.append(window)
            latest = window.start
    return smallest


def _with_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """A window with the marks that touch it: its full stop, quotation marks, brackets."""
    while start > 0 and not (text[start - 1].isspace() or text[start - 1].isalnum()):
        start -= 1
    while end < len(text) and not (text[end].isspace() or text[end].isalnum()):
        end += 1
    return start, end
