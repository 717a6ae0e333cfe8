"""A classifier of prompt injections (`injection_model=`) in place of the built-in detector.

It sees runs of whole sentences, and of a suspicious run each sentence by itself, so that a false alarm costs a sentence
and not a passage.
"""

from __future__ import annotations

from collections.abc import Sequence

from unpoison.injections.detector import FLOOR, THRESHOLD, Detection, Stretch
from unpoison.models.requests import Flow, classify
from unpoison.text.alignment import Region
from unpoison.text.sentences import sentences

__all__ = ["classify_texts", "runs"]

MAX_RUN_CHARS = 1_500
"""Characters of a run of sentences: about 300 words, which fit into the 512 tokens of most classifiers. The model's
adapter judges longer input in windows."""


def classify_texts(texts: Sequence[str], /) -> Flow[list[Detection]]:
    """Detect texts: one request for all runs, and one for the sentences of the suspicious ones."""
    given = [(n, start, text[start:end]) for n, text in enumerate(texts) for start, end in runs(text)]
    likely = (yield from classify([run for _, _, run in given])).tolist()
    parts = [sentences(run) if p > THRESHOLD else [] for (_, _, run), p in zip(given, likely)]
    alone = yield from classify([run[first:last] for (_, _, run), own in zip(given, parts) for first, last in own])
    odds = iter(alone.tolist())
    highest, found = [0.0] * len(texts), [list[Stretch]() for _ in texts]
    for (n, start, run), p, own in zip(given, likely, parts):
        highest[n] = max(highest[n], p)
        judged = [Stretch(start + first, start + last, next(odds)) for first, last in own]
        worst = [one for one in judged if one.probability > THRESHOLD]
        found[n] += worst or [Stretch(start, start + len(run), p)] * (p >= FLOOR)
    return [Detection(text, p, tuple(own)) for text, p, own in zip(texts, highest, found)]


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
