"""Redaction: keep a suspicious passage without its suspicious windows, if the rest is harmless.

Windows of a passage's reading above the threshold are cut, the rest is checked again together with the other passages,
and only a harmless rest is kept. So a false positive costs a few sentences, and every kept text was checked as it will
be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage
from unpoison.core.reasons import Reason
from unpoison.core.verdicts import Span, merge_spans, spans_of, without
from unpoison.injections.cutting import harmless, hidden_spans

__all__ = ["Judged", "Redaction", "Window", "redact_passages", "suspicious_spans"]

Matrix = NDArray[np.float64]

NOTHING: Mapping[int, tuple[Span, ...]] = MappingProxyType({})

ROUNDS = 2
"""Maximum rounds of cutting a rest that is still suspicious; each costs another check of all passages."""


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
        threshold: Passages above it are dropped or cut.
        windows: By position, in any order. Windows may overlap; of nested ones the smallest counts.
        firm: Positions of passages that are dropped whole.
    """

    probability: Matrix
    threshold: float
    windows: Mapping[int, Sequence[Window]]
    firm: frozenset[int] = frozenset()


Judge = Callable[[tuple[Passage, ...]], Judged]


class Redaction(NamedTuple):
    """The result of redaction for k passages.

    Attributes:
        passages: After cuts.
        probability: Of the rest of each passage, shape (k,); of the whole passage if nothing is cut.
        spans: Suspicious spans by position; for those in `cut`, the removed spans.
        cut: Positions of passages that are kept with cuts.
    """

    passages: tuple[Passage, ...]
    probability: Matrix
    spans: Mapping[int, tuple[Span, ...]]
    cut: frozenset[int] = frozenset()

    def reason(self, i: int, clauses: Sequence[Reason]) -> Reason:
        """The reason of a passage kept with cuts, with the findings in the whole passage as clauses."""
        spans, probability = len(self.spans[i]), self.probability[i]
        return Reason.of("guard.redacted", spans=spans, probability=probability, clauses=clauses)

    @property
    def notes(self) -> tuple[str, ...]:
        """A note if anything is cut."""
        if not self.cut:
            return ()
        return (f"kept without their suspicious spans: {len(self.cut)} of {len(self.passages)} passages",)


def suspicious_spans(passages: Sequence[Passage], judged: Judged) -> dict[int, tuple[Span, ...]]:
    """The suspicious windows and hidden content of dropped passages, as spans of the caller's texts."""
    dropped = np.flatnonzero(judged.probability > judged.threshold).tolist()
    by_position = {i: _spans(passages[i], judged, i) for i in dropped}
    return {i: spans for i, spans in by_position.items() if spans}


def redact_passages(
    passages: tuple[Passage, ...], judged: Judged, judge: Judge, hidden: Mapping[int, tuple[Span, ...]] = NOTHING
) -> Redaction:
    """Cut suspicious windows, check the rests, and keep the harmless ones.

    Args:
        passages: All passages of a question, already without the spans in `hidden`.
        judged: The results of the checks.
        judge: Repeats the checks after further cuts.
        hidden: The spans cut before.
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
    """The rests of passages that are not empty and contain no injection."""
    rests = {i: without(passages[i], own) for i, own in spans.items()}
    return {i: rest for i, rest in rests.items() if harmless(rest)}


def _spans(passage: Passage, judged: Judged, i: int) -> tuple[Span, ...]:
    text, suspicious = passage.reading, [w for w in judged.windows.get(i, ()) if w.probability > judged.threshold]
    windows = [
        (*_with_marks(text, window.start, window.end), round(window.probability, 4), window.reason)
        for window in _smallest(suspicious)
    ]
    hidden = hidden_spans(passage, float(judged.probability[i]))
    return merge_spans([*chain.from_iterable(spans_of(passage, windows)), *hidden])


def _smallest(windows: Sequence[Window]) -> list[Window]:
    """The windows that contain no other suspicious window."""
    smallest, latest = list[Window](), -1
    for window in sorted(windows, key=lambda window: (window.end, -window.start)):
        if window.start > latest:
            smallest.append(window)
            latest = window.start
    return smallest


def _with_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """A window with adjacent punctuation: its full stop, quotation marks, brackets."""
    while start > 0 and not (text[start - 1].isspace() or text[start - 1].isalnum()):
        start -= 1
    while end < len(text) and not (text[end].isspace() or text[end].isalnum()):
        end += 1
    return start, end
