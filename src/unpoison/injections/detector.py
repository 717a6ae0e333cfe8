"""The door to this room: `Detector` says of any text how likely it holds a prompt injection, and where.

Certain signs are found by a grammar (`injections.signs`), everything else by a transformer (`injections.model`). Where
its libraries are missing, only the signs are found, and every judgement says so.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from unpoison.injections import model
from unpoison.injections.reading import Layout, readings
from unpoison.injections.signs import find_signs
from unpoison.text.analysis import each

if TYPE_CHECKING:
    from unpoison.models.requests import Flow

__all__ = [
    "CERTAIN", "DETECTOR", "FLOOR", "MAX_QUOTE_CHARS", "STRONG", "THRESHOLD", "UNJUDGED", "Detect", "Detection",
    "Detector", "Injection", "Stretch",
]  # fmt: skip

Detect: TypeAlias = "Callable[[Sequence[str]], Flow[list[Detection]]]"
"""Judges texts as a flow: `Detector.flow`, or a classifier behind the driver (`screener.classifier`)."""

THRESHOLD = 0.1
"""The probability from which a stretch is called an injection, unless `prompt_injection_threshold` says otherwise."""

STRONG = 0.5
"""The probability from which what follows an injection in its block goes with it (`injections.blocks`)."""

MAX_QUOTE_CHARS = 160
"""Characters of an injection that a reason shows."""

CERTAIN = 0.95
"""The probability of a certain sign, at least."""

FLOOR = 0.01
"""The probability from which a sentence is named, or a run of them where a classifier judges."""

SLOPE = 2.0
"""What a log-odds of the transformer counts: it is sure of more than it says, as a mean over pieces is."""

UNJUDGED = "not judged for prompt injection beyond certain signs, as onnxruntime is not installed or the model is off"


class Stretch(NamedTuple):
    """A sentence of a text that may be an injection, or a part of one.

    Attributes:
        start, end: Its position in the text.
        probability: Of being one, in [0, 1].
    """

    start: int
    end: int
    probability: float


class Injection(NamedTuple):
    """A run of sentences that is an injection, or the worst sentence of a harmless text.

    Attributes:
        probability: Of being an injection, in [0, 1].
        quote: Its words, at most 160 characters.
        start, end: Its position in the text; both 0 where there is none.
    """

    probability: float
    quote: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Detection:
    """The detection on one text.

    Attributes:
        text: The text.
        probability: That it holds an injection: that of its worst sentence, in [0, 1].
        stretches: The sentences that are worth a look, ascending, without overlaps.
        note: What was not judged, as one sentence; "" if everything was.
    """

    text: str
    probability: float
    stretches: tuple[Stretch, ...] = ()
    note: str = ""

    @property
    def worst(self) -> Injection:
        """The most suspicious sentence."""
        if not self.stretches:
            return Injection(self.probability, "")
        return self._injection(max(self.stretches, key=lambda one: one.probability))

    def above(self, threshold: float) -> list[Injection]:
        """The injections: runs of sentences above a threshold, with the highest probability in them."""
        return [self._injection(run) for run in self._runs(threshold)]

    def _runs(self, threshold: float) -> Iterator[Stretch]:
        run: Stretch | None = None
        for one in self.stretches:
            if one.probability <= threshold:
                continue
            if run is not None and not self.text[run.end : one.start].strip():
                run = Stretch(run.start, max(run.end, one.end), max(run.probability, one.probability))
                continue
            if run is not None:
                yield run
            run = one
        if run is not None:
            yield run

    def _injection(self, stretch: Stretch) -> Injection:
        start, end, probability = stretch
        return Injection(probability, " ".join(self.text[start:end].split())[:MAX_QUOTE_CHARS], start, end)

    def __sizeof__(self) -> int:
        return 200 + 150 * len(self.stretches)


class Detector:
    """Finds prompt injections. Thread-safe; a text that was judged before costs one look-up.

    A detection depends on its text alone, not on the others.
    """

    def detect(self, texts: Sequence[str], /) -> list[Detection]:
        """The detections in k canonical texts.

        O(n) time for n characters; ten passages of 100 words without an order take 20 to 150 ms.

        Raises:
            ModelError: The files of the model were cut or changed.
        """
        return each(texts, _detect_signs if self.note else _detect)

    @property
    def note(self) -> str:
        """What is not judged here, as one sentence; "" if everything is."""
        return UNJUDGED if model.shipped_model() is None else ""

    def __call__(self, text: str, /) -> Detection:
        """The detection in one text."""
        return self.detect([text])[0]

    def flow(self, texts: Sequence[str], /) -> Generator[Any, Any, list[Detection]]:
        """`detect` as a flow without requests; the driver runs it beside the event loop."""
        yield from ()
        return self.detect(texts)


DETECTOR = Detector()
"""The one that every surface asks."""


def _detect(texts: Sequence[str]) -> list[Detection]:
    return _judge(texts, model.shipped_model())


def _detect_signs(texts: Sequence[str]) -> list[Detection]:
    """What is found without the transformer; a function of its own, because what it finds is remembered by its name."""
    return _judge(texts, None)


def _judge(texts: Sequence[str], judge: model.SentenceModel | None) -> list[Detection]:
    read = [(n, reading) for n, text in enumerate(texts) for reading in readings(text)]
    found: list[list[Stretch]] = [[] for _ in texts]
    said = judge.log_odds([(reading.text, reading.sentences) for _, reading in read]) if judge else [[]] * len(read)
    for (n, reading), odds in zip(read, said):
        likely = ((place, _probability(one)) for *place, one in odds)
        least = STRONG if reading.strong else FLOOR
        own = [Stretch(*reading.source(*place), p) for place, p in likely if p >= least]
        own += _signs(reading)
        found[n] += [one for one in own if not _is_known(one, found[n])]
    return [_detection(text, own, "" if judge else UNJUDGED) for text, own in zip(texts, found)]


def _is_known(one: Stretch, found: Sequence[Stretch]) -> bool:
    """Whether another reading, which knows its place better, has found a stretch."""
    return any(
        other.start < one.end and one.start < other.end and other.probability >= min(one.probability, STRONG)
        for other in found
    )


def _signs(reading: Layout) -> list[Stretch]:
    """The sentences with certain signs, from the sign on; of a strong reading each is read by itself."""
    found = list[Stretch]()
    for begin, stop in reading.sentences if reading.strong else [(0, len(reading.text))]:
        for start, end in find_signs(reading.text[begin:stop]):
            close = max((last for first, last in reading.sentences if first < begin + end), default=begin + end)
            found.append(Stretch(*reading.source(begin + start, max(begin + end, close)), CERTAIN))
    return found


def _detection(text: str, stretches: Sequence[Stretch], note: str = "") -> Detection:
    """Stretches that overlap are one."""
    apart = list[Stretch]()
    for one in sorted(stretches):
        if apart and one.start < apart[-1].end:
            last = apart[-1]
            apart[-1] = Stretch(last.start, max(last.end, one.end), max(last.probability, one.probability))
        else:
            apart.append(one)
    return Detection(text, max((one.probability for one in apart), default=0.0), tuple(apart), note)


def _probability(odds: float) -> float:
    """Of log-odds above the model's threshold, which is the usual one of this package."""
    return 1 / (1 + exp(-max(min(SLOPE * odds + _USUAL, 50.0), -50.0)))


_USUAL = log(THRESHOLD / (1 - THRESHOLD))
