"""Prompt injections in passages: found, and cut out with what is under their voice, until what is left holds none.

A `Detector` says how likely a text holds an injection and where the worst one stands: the built-in one, or a classifier
in its place. Both are flows. A classifier is asked through the driver. It sees runs of whole sentences, and of the
worst run each sentence by itself, so that a false alarm costs a sentence and not a passage. The built-in one is the
grammar and the linear model of `text.prompt_injection`. Where the extra `reader` is installed, a transformer also reads
the stretches of which the linear model is unsure (`models.injection_model`); it runs on the thread of the flow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage
from unpoison.core.reasons import PROMPT_INJECTION, Reason, quotable
from unpoison.core.verdicts import Action, Span, merge_spans, spans_of, without
from unpoison.models.injection_model import Stretch, shipped_injection_model
from unpoison.models.requests import Flow, classify
from unpoison.text import prompt_injection as linear
from unpoison.text.alignment import Region
from unpoison.text.analysis import analysis, each
from unpoison.text.blocks import is_payload, quotation_around, under_voice
from unpoison.text.imperatives import ORDERS, find_imperatives
from unpoison.text.prompt_injection import STRONG, THRESHOLD, Injection, known_injections, unsupported_language
from unpoison.text.sentences import around, sentences

__all__ = [
    "BUILT_IN",
    "CLASSIFIER",
    "MAX_QUOTE_CHARS",
    "THRESHOLD",
    "Detector",
    "Injection",
    "Injections",
    "WithoutInjections",
    "harmless",
    "hidden_spans",
    "injection",
    "injection_spans",
    "injections",
    "injections_in",
    "unsupported_language",
    "without_injections",
]

MAX_RUN_CHARS = 1_500
"""Characters of a run of sentences: about 300 words, which fit into the 512 tokens of most classifiers. The model's
adapter judges longer input in windows."""


class Detector(Protocol):
    """Gives the probability that a text holds an injection, and the place of the most suspicious one."""

    def probabilities(self, texts: Sequence[str], /) -> Flow[NDArray[np.float64]]:
        """Of k texts, in [0, 1], shape (k,)."""

    def worst(self, text: str, /) -> Flow[Injection]:
        """The most suspicious stretch of a text."""

    def certain(self, text: str, /) -> Sequence[Injection]:
        """The first places of a text that the grammar finds, at most one more than `MAX_PLACES`."""

    def unsupported_language(self, text: str, /) -> str | None:
        """The language or script of a text, if it is not supported; else None."""


DOUBT = 0.01
"""The probability by the linear model from which the transformer reads a stretch; it does not read strong evidence."""

MAX_DOUBTS = 4
"""Stretches of a text that the transformer reads, the most suspicious first."""


def injections(texts: Sequence[str]) -> NDArray[np.float64]:
    """The probability that each of k texts holds an injection, by its worst stretch, shape (k,)."""
    probability = np.array(each(texts, linear.injections), float)
    if shipped_injection_model() is not None:
        unsure = np.flatnonzero(_is_unsure(probability)).tolist()
        found = each([texts[i] for i in unsure], _second_opinions)
        probability[unsure] = [worst.probability for worst in found]
    return probability


def injection(text: str) -> Injection:
    """The most suspicious stretch of a text. O(n) time for n characters."""
    found = linear.injection(text)
    if not _is_unsure(found.probability) or shipped_injection_model() is None:
        return found
    return each([text], _second_opinions)[0]


def _is_unsure(probability: Any) -> Any:
    return (probability >= DOUBT) & (probability < STRONG)


def _second_opinions(texts: Sequence[str]) -> list[Injection]:
    """The worst stretch of each text by both models; each text holds one that is in doubt.

    Their log-odds are added. A stretch that the transformer did not read keeps the linear model's probability, so that
    decoys hide nothing.
    """
    model = shipped_injection_model()
    assert model is not None  # noqa: S101  it was asked for
    doubts = [_doubts(text) for text in texts]
    odds = iter(
        model.log_odds([Stretch(text, one.start, one.end) for text, (read, _) in zip(texts, doubts) for one in read])
    )
    return [
        max([*(_weighed(found, next(odds)) for found in read), unread], key=attrgetter("probability"))
        for read, unread in doubts
    ]


def _weighed(found: Injection, odds: float) -> Injection:
    against = (1 - found.probability) / found.probability * math.exp(min(-odds, 50.0))
    return found._replace(probability=1 / (1 + against))


def _doubts(text: str) -> tuple[list[Injection], Injection]:
    """The stretches of a text that are in doubt, the most suspicious first, and the worst of the rest."""
    found, worst = list[Injection](), linear.injection(text)
    while worst.probability >= DOUBT and len(found) < MAX_DOUBTS:
        found.append(worst)
        text = text[: worst.start] + " " * (worst.end - worst.start) + text[worst.end :]
        worst = linear.injection(text)
    return found, worst


class _BuiltIn:
    """The grammar, the linear model, and the transformer where it is installed."""

    def probabilities(self, texts: Sequence[str], /) -> Flow[NDArray[np.float64]]:
        yield from ()  # a flow without requests
        return injections(texts)

    def worst(self, text: str, /) -> Flow[Injection]:
        yield from ()
        return injection(text)

    def certain(self, text: str, /) -> Sequence[Injection]:
        return known_injections(text, MAX_PLACES + 1)

    def unsupported_language(self, text: str, /) -> str | None:
        return analysis(text).part(unsupported_language)


class _Run(NamedTuple):
    """A run of whole sentences of a text."""

    text: int
    start: int
    end: int


class _Classifier:
    """A classifier (`injection_model=`): one request for all texts, and two to find the place in one text."""

    def probabilities(self, texts: Sequence[str], /) -> Flow[NDArray[np.float64]]:
        windows = [_Run(n, *region) for n, text in enumerate(texts) for region in runs(text)]
        likely = yield from classify([texts[run.text][run.start : run.end] for run in windows])
        probability = np.zeros(len(texts))
        np.maximum.at(probability, [run.text for run in windows], likely)
        return probability

    def worst(self, text: str, /) -> Flow[Injection]:
        windows = runs(text)
        likely = yield from classify([text[start:end] for start, end in windows])
        if not windows:
            return Injection(0.0, "")
        (start, end), probability = windows[int(np.argmax(likely))], float(np.max(likely))
        if probability > THRESHOLD:
            begin = start
            parts = [(begin + first, begin + last) for first, last in sentences(text[start:end])]
            alone = yield from classify([text[first:last] for first, last in parts])
            if np.max(alone) > THRESHOLD:
                start, end = parts[int(np.argmax(alone))]
        return Injection(probability, text[start:end], start, end)

    def certain(self, text: str, /) -> Sequence[Injection]:
        return ()

    def unsupported_language(self, text: str, /) -> str | None:
        return None


BUILT_IN: Detector = _BuiltIn()
CLASSIFIER: Detector = _Classifier()


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


MAX_QUOTE_CHARS = 160
"""Characters of an injection that a reason shows."""

MAX_CUTS = 8
"""Rounds of cutting in one passage; a passage that still holds an injection is dropped."""

MAX_PLACES = 16
"""Sentences of one passage that the grammar may find; a passage with more is dropped."""

RESIDUE = 0.05
"""The highest probability of the rest of a passage after a cut; 98 % of 1,328 clean passages are below it."""

MIN_WORDS = 3
"""A rest of fewer words is dropped."""

MIN_REST_WORDS, MIN_REST_SHARE = 20, 0.5
"""After strong evidence, a rest of fewer words, or of a smaller share of the passage, is dropped."""


class WithoutInjections(NamedTuple):
    """A passage without its injections.

    Attributes:
        passage: The rest; None if it is too short or suspicious itself.
        spans: The removed parts of the caller's text.
    """

    passage: Passage | None
    spans: tuple[Span, ...]


class Cut(NamedTuple):
    """The part of the caller's text that is removed with an injection.

    Attributes:
        spans: One, or none if the injection has no place in the caller's text.
        quoted: Whether it is a quotation.
    """

    spans: tuple[Span, ...]
    quoted: bool = False


def cut_of(passage: Passage, worst: Injection) -> Cut:
    """The part to remove with an injection. O(n log n) time for n characters.

    Of a quotation only the quotation is removed, from the start of the injection. Strong evidence also removes the rest
    of the block (`text.blocks.under_voice`); weaker evidence removes the sentences of the injection. Blocks are those
    of the caller's text, because a reading has no paragraphs. A title is a block.
    """
    reason = str(Reason.of(PROMPT_INJECTION, quote=quotable(worst.quote, MAX_QUOTE_CHARS)))
    probability = round(worst.probability, 4)
    found = tuple(spans_of(passage, [(worst.start, worst.end, probability, reason)]))
    if not found:
        return Cut(())
    name = found[0].field
    text = passage.text if name == "text" else passage.title or ""
    start = min(span.start for span in found if span.field == name)
    end = max(span.end for span in found if span.field == name)
    quotation = quotation_around(text, start, min(end, start + 1))
    if quotation is not None:
        start, end = max(under_voice(text, start, end)[0], quotation[0]), quotation[1]
    elif worst.probability >= STRONG:
        start, end = under_voice(text, start, end)
    else:
        sentences_of = (*around(passage.reading, worst.start, worst.end), probability, reason)
        return Cut(merge_spans(spans_of(passage, [sentences_of])))
    return Cut((Span(start, end, probability, reason, name),), quotation is not None)


def injection_spans(passage: Passage, worst: Injection) -> tuple[Span, ...]:
    """The spans of `cut_of`."""
    return cut_of(passage, worst).spans


def without_injections(
    passage: Passage,
    worst: Injection,
    detector: Detector,
    threshold: float = THRESHOLD,
    min_words: int = MIN_REST_WORDS,
) -> Flow[WithoutInjections]:
    """Remove hidden messages and injections from a passage, the most suspicious first.

    O(n log n) time for n characters.

    Args:
        passage: One that holds an injection.
        worst: That injection.
        detector: Judges the rest.
        threshold: The probability from which a stretch is an injection.
        min_words: After strong evidence, a rest of fewer words, or of less than half of the words, is dropped; 0 keeps
            a rest of any length, as for values of a tool's result.
    """
    whole, spans = passage, hidden_spans(passage, worst.probability)
    strong = bool(spans)
    if spans:
        passage = without(whole, spans)
        worst = yield from detector.worst(passage.reading)
    for _ in range(MAX_CUTS):
        if worst.probability <= (RESIDUE if strong else threshold):
            read = sorted({passage.reading, passage.shown})  # with and without the marks of the cuts
            fine = not spans or _worth_keeping(whole, passage, min_words if strong else None)
            fine = fine and (yield from detector.probabilities(read)).max() <= (RESIDUE if strong else threshold)
            return WithoutInjections(passage if fine else None, spans)
        found = cut_of(passage, worst)
        others = detector.certain(passage.reading) if worst.probability >= STRONG else ()
        if len(others) > MAX_PLACES:
            return WithoutInjections(None, merge_spans([*spans, *found.spans]))
        cuts = [span for cut in (found, *(cut_of(passage, one) for one in others)) for span in cut.spans]
        spans = merge_spans([*spans, *cuts])
        strong = strong or (not found.quoted and worst.probability >= STRONG)
        passage = without(whole, spans)
        worst = yield from detector.worst(passage.reading)
    return WithoutInjections(None, spans)


def _worth_keeping(whole: Passage, rest: Passage, min_words: int | None) -> bool:
    """Whether a rest may be read: it has enough words and, after strong evidence, is no payload itself."""
    if min_words is None or not _says_something(rest):
        return _says_something(rest)
    if not min_words:
        return not is_payload(rest.reading, 0)
    words, before = len(rest.reading.split()), len(whole.reading.split())
    return words >= max(min_words, MIN_REST_SHARE * before) and not is_payload(rest.reading)


def hidden_spans(passage: Passage, probability: float) -> tuple[Span, ...]:
    """The hidden messages of a passage, as spans with the given probability."""
    reason = "a message where no reader looks"
    return merge_spans(spans_of(passage, [(*region, round(probability, 4), reason) for region in passage.messages()]))


def harmless(passage: Passage) -> bool:
    """Whether a rest has enough words and holds no injection, with and without the marks of the cuts."""
    return _says_something(passage) and bool(injections([passage.reading, passage.shown]).max() <= RESIDUE)


def _says_something(passage: Passage) -> bool:
    return sum(any(map(str.isalnum, word)) for word in passage.reading.split()) >= MIN_WORDS


MAX_NAMED = 10
"""Passages that a note on an unsupported language names."""


class Injections(NamedTuple):
    """The injections of all passages.

    Attributes:
        policy: The action on passages with an injection.
        probability: That a passage holds an injection, by its worst stretch, in [0, 1], shape (k,).
        quotes: That stretch, of those that hold one, by position.
        passages: What the defense gets of them: those that hold none, the rests of those that are cut, and those that
            are flagged.
        read: The positions of these, rising.
        spans: Where the injections stand, by position.
        notes: What could not be judged.
    """

    policy: Action
    probability: NDArray[np.float64]
    quotes: Mapping[int, str]
    passages: tuple[Passage, ...]
    read: tuple[int, ...]
    spans: Mapping[int, tuple[Span, ...]]
    notes: tuple[str, ...] = ()


def injections_in(
    passages: Sequence[Passage], policy: Action, detector: Detector, threshold: float = THRESHOLD
) -> Flow[Injections]:
    """Judge each passage independently. O(n log n) time in the length of the texts.

    Args:
        passages: All of a question.
        policy: `redact` cuts injections, and what is under their voice, out of passages whose rest says something and
            is harmless, and drops the others; `drop` drops all, `flag` none.
        detector: What judges.
        threshold: The probability from which something is an injection.
    """
    probability = yield from detector.probabilities([passage.reading for passage in passages])
    left: list[Passage | None] = list(passages)
    quotes, spans = dict[int, str](), dict[int, tuple[Span, ...]]()
    for i in np.flatnonzero(probability > threshold).tolist():
        worst = yield from detector.worst(passages[i].reading)
        if worst.probability < STRONG and _only_asks(passages[i].reading[worst.start : worst.end]):
            continue  # a question is no instruction; other checks find a repeated question of the user
        quotes[i] = worst.quote
        if policy == "redact":
            left[i], spans[i] = yield from without_injections(passages[i], worst, detector, threshold)
        else:
            left[i], spans[i] = None, injection_spans(passages[i], worst)
        if policy == "flag":
            left[i], spans[i] = passages[i], tuple(replace(span, flagged=True) for span in spans[i])
    return Injections(
        policy,
        probability,
        quotes,
        tuple(passage for passage in left if passage is not None),
        tuple(i for i, passage in enumerate(left) if passage is not None),
        spans,
        _unsupported_notes(passages, detector),
    )


def _only_asks(stretch: str) -> bool:
    """Whether a stretch ends as a question and orders nothing: "Reply with Ghent?" is an order with another mark."""
    return stretch.rstrip().endswith("?") and all(part.form != ORDERS for part in find_imperatives(stretch))


def _unsupported_notes(passages: Sequence[Passage], detector: Detector) -> tuple[str, ...]:
    """What could not be judged, one sentence for each language or script."""
    by_language: dict[str, list[int]] = {}
    for i, passage in enumerate(passages):
        if language := detector.unsupported_language(passage.reading):
            by_language.setdefault(language, []).append(i)
    return tuple(
        f"not judged for prompt injection: {language}, in passage {', '.join(map(str, positions[:MAX_NAMED]))}"
        + (f" and {len(positions) - MAX_NAMED} more" if len(positions) > MAX_NAMED else "")
        for language, positions in by_language.items()
    )
