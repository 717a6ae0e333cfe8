"""A classifier of prompt injections (`injection_model=`) in place of the built-in detector.

It sees runs of whole sentences, and of a suspicious run each sentence by itself, so that a false alarm costs a sentence
and not a passage. The driver asks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unpoison.injections import THRESHOLD, Detection
from unpoison.injections.detections import Stretch
from unpoison.models.requests import Flow, classify
from unpoison.text.alignment import Region
from unpoison.text.sentences import sentences

__all__ = ["classified", "runs"]

FLOOR = 0.01
"""The probability from which a run is named; from the usual threshold on, its sentences are asked about."""

MAX_RUN_CHARS = 1_500
"""Characters of a run of sentences: about 300 words, which fit into the 512 tokens of most classifiers. The model's
adapter judges longer input in windows."""


class _Run(NamedTuple):
    """A run of whole sentences of a text."""

    text: int
    start: int
    end: int


def classified(texts: Sequence[str], /) -> Flow[list[Detection]]:
    """Detect texts: one request for all runs, and one for the sentences of the suspicious ones."""
    windows = [_Run(n, *region) for n, text in enumerate(texts) for region in runs(text)]
    likely = yield from classify([texts[run.text][run.start : run.end] for run in windows])
    suspicious = [(run, float(p)) for run, p in zip(windows, likely) if p > THRESHOLD]
    parts = [
        [
            _Run(run.text, run.start + first, run.start + last)
            for first, last in sentences(texts[run.text][run.start : run.end])
        ]
        for run, _ in suspicious
    ]
    alone = yield from classify([texts[one.text][one.start : one.end] for own in parts for one in own])
    odds = iter(alone.tolist())
    stretches: list[list[Stretch]] = [[] for _ in texts]
    for run, p in zip(windows, likely.tolist()):
        if FLOOR <= p <= THRESHOLD:
            stretches[run.text].append(Stretch(run.start, run.end, p))
    for (run, probability), own in zip(suspicious, parts):
        judged = [(one, next(odds)) for one in own]
        worst = [Stretch(one.start, one.end, p) for one, p in judged if p > THRESHOLD]
        stretches[run.text] += worst or [Stretch(run.start, run.end, probability)]
    highest = [0.0] * len(texts)
    for run, p in zip(windows, likely.tolist()):
        highest[run.text] = max(highest[run.text], p)
    return [Detection(text, p, tuple(sorted(own))) for text, p, own in zip(texts, highest, stretches)]


def runs(text: str) -> list[Region]:
    """Runs of whole sentences of at most 1,500 characters that cover a text; a longer sentence is cut. O(n) time."""
    runs = list[Region]()
    for start, end in sentences(text):
        for begin in range(start, end, MAX_RUN_CHARS):
            close = min(end, begin + MAX_RUN_CHARS)
            if runs and close - runs[-1][0] <= MAX_RUN_CHARS:
                runs[-1] = runs[-1][0], close
            else:
                runs.append((begin, close))
    return runs
