"""What is said of a text: how likely it holds a prompt injection, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["MAX_QUOTE_CHARS", "STRONG", "THRESHOLD", "Detection", "Injection", "Stretch"]

THRESHOLD = 0.1
"""The probability from which a stretch is called an injection, unless `prompt_injection_threshold` says otherwise."""

STRONG = 0.5
"""The probability from which what follows an injection in its block goes with it (`injections.blocks`)."""

MAX_QUOTE_CHARS = 160
"""Characters of an injection that a reason shows."""


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
