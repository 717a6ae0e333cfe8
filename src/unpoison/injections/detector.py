"""Entry point: `detect`, which returns the probability that a text holds a prompt injection, and where it stands.

A grammar finds certain signs (`injections.signs`), a transformer everything else (`injections.model`). Without the
libraries of the transformer only signs are found, and every detection notes this.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from unpoison.injections import model
from unpoison.injections.reading import TextVariant, variants
from unpoison.injections.signs import find_signs
from unpoison.text.alignment import Region
from unpoison.text.analysis import each
from unpoison.text.sentences import clauses

if TYPE_CHECKING:
    from unpoison.models.requests import Flow

__all__ = [
    "CERTAIN", "FLOOR", "MAX_QUOTE_CHARS", "STRONG", "THRESHOLD", "UNJUDGED", "Detect", "Detection", "Injection",
    "Stretch", "detect", "detect_all", "detect_flow", "unjudged",
]  # fmt: skip

Detect: TypeAlias = "Callable[[Sequence[str]], Flow[list[Detection]]]"
"""A detector as a flow: `detect_flow`, or a classifier whose calls the driver makes (`screener.classifier`)."""

THRESHOLD = 0.1
"""The probability above which a stretch is an injection; the option `prompt_injection_threshold` overrides it."""

STRONG = 0.5
"""The probability from which the rest of an injection's block is removed with it (`injections.blocks`)."""

SURE = 0.9
"""The probability from which a sentence counts that only another layout makes, as the lines of a mail's head joined."""

MAX_QUOTE_CHARS = 160
"""Maximum characters of an injection that a reason quotes."""

CERTAIN = 0.95
"""The probability given to a certain sign."""

FLOOR = 0.01
"""The probability from which a sentence is reported, or a run of sentences by a classifier."""

LEAST = {"any": FLOOR, "strong": STRONG, "sure": SURE}
"""The probability from which a sentence of a variant counts."""

DOUBT = -8.0
"""The log-odds above which a long sentence is also judged by clauses: an order in it is outweighed by the rest."""

SLOPE = 2.0
"""Factor on the transformer's log-odds: they are a mean over tokens, which makes the model underconfident."""

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
        quote: Its text without line breaks, at most `MAX_QUOTE_CHARS` characters.
        start, end: Its position in the text; both 0 if unknown.
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
        probability: That it holds an injection, in [0, 1]: the highest of its sentences.
        stretches: The suspicious sentences, ascending, without overlaps.
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


def detect_all(texts: Sequence[str], /) -> list[Detection]:
    """Detect prompt injections in k canonical texts, each by itself; results are cached by text. Thread-safe.

    O(n) time for n characters; ten passages of 100 words without an injection take 20 to 150 ms.

    Raises:
        ModelError: The files of the model were cut or changed.
    """
    return each(texts, _detect_signs if unjudged() else _detect)


def detect(text: str, /) -> Detection:
    """`detect_all` for one text."""
    return detect_all([text])[0]


def detect_flow(texts: Sequence[str], /) -> Generator[Any, Any, list[Detection]]:
    """`detect_all` as a flow without requests; the driver runs it on a thread, beside the event loop."""
    yield from ()
    return detect_all(texts)


def unjudged() -> str:
    """What is not judged on this machine, as one sentence; "" if everything is."""
    return UNJUDGED if model.shipped_model() is None else ""


def _detect(texts: Sequence[str]) -> list[Detection]:
    return _judge(texts, model.shipped_model())


def _detect_signs(texts: Sequence[str]) -> list[Detection]:
    """Detect without the transformer. A separate function, because `each` caches results by function."""
    return _judge(texts, None)


def _judge(texts: Sequence[str], judge: model.SentenceModel | None) -> list[Detection]:
    read = [(n, variant) for n, text in enumerate(texts) for variant in variants(text)]
    found: list[list[Stretch]] = [[] for _ in texts]
    said = judge.log_odds([(variant.text, variant.sentences) for _, variant in read]) if judge else [[]] * len(read)
    for (n, variant), odds in zip(read, said):
        likely = ((place, _probability(one)) for *place, one in odds)
        least = LEAST[variant.evidence]
        own = [Stretch(*variant.source(*place), p) for place, p in likely if p >= least]
        own += _signs(variant)
        found[n] += [one for one in own if not _is_known(one, found[n])]
    if judge:
        for n, own in _clauses(judge, read, said):
            found[n] += [one for one in own if not _is_known(one, found[n])]
    return [_detection(text, own, "" if judge else UNJUDGED) for text, own in zip(texts, found)]


def _clauses(
    judge: model.SentenceModel, read: Sequence[tuple[int, TextVariant]], said: Sequence[Sequence[model.Odds]]
) -> Iterator[tuple[int, list[Stretch]]]:
    """The strong evidence in clauses of doubtful long sentences, by the number of their text."""
    doubtful = list[tuple[int, TextVariant, list[Region]]]()
    for (n, variant), odds in zip(read, said):
        places = [] if variant.evidence != "any" else [one.start for one in odds if one.odds > DOUBT]
        held = [
            (start, end) for start, end in variant.sentences if bisect_left(places, end) > bisect_left(places, start)
        ]
        if parts := [part for start, end in held for part in clauses(variant.text, start, end)]:
            doubtful.append((n, variant, parts))
    for (n, variant, _), odds in zip(doubtful, judge.log_odds([(one.text, parts) for _, one, parts in doubtful])):
        likely = [(one, _probability(one.odds)) for one in odds]
        yield n, [Stretch(*variant.source(one.start, one.end), p) for one, p in likely if p >= STRONG]


def _is_known(one: Stretch, found: Sequence[Stretch]) -> bool:
    """Whether an earlier variant, whose positions are more exact, has found the same stretch."""
    return any(
        other.start < one.end and one.start < other.end and other.probability >= min(one.probability, STRONG)
        for other in found
    )


def _signs(variant: TextVariant) -> list[Stretch]:
    """The sentences with certain signs, from the sign on; in a strong variant each sentence is searched separately."""
    found = list[Stretch]()
    for begin, stop in variant.sentences if variant.evidence != "any" else [(0, len(variant.text))]:
        for start, end in find_signs(variant.text[begin:stop]):
            number = bisect_left(variant.sentences, (begin + end,))
            close = variant.sentences[number - 1][1] if number else 0
            found.append(Stretch(*variant.source(begin + start, max(begin + end, close)), CERTAIN))
    return found


def _detection(text: str, stretches: Sequence[Stretch], note: str = "") -> Detection:
    """Make a detection, with overlapping stretches merged."""
    apart = list[Stretch]()
    for one in sorted(stretches):
        if apart and one.start < apart[-1].end:
            last = apart[-1]
            apart[-1] = Stretch(last.start, max(last.end, one.end), max(last.probability, one.probability))
        else:
            apart.append(one)
    return Detection(text, max((one.probability for one in apart), default=0.0), tuple(apart), note)


def _probability(odds: float) -> float:
    """The probability for log-odds relative to the model's threshold, which maps to `THRESHOLD`."""
    return 1 / (1 + exp(-max(min(SLOPE * odds + _USUAL, 50.0), -50.0)))


_USUAL = log(THRESHOLD / (1 - THRESHOLD))
