"""The door to this room: `Detector` says of any text how likely it holds a prompt injection, and where."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from unpoison.injections import linear
from unpoison.injections.detections import STRONG, THRESHOLD, Detection, Injection
from unpoison.text.analysis import each

if TYPE_CHECKING:
    from unpoison.models.requests import Flow

__all__ = ["DETECTOR", "STRONG", "THRESHOLD", "Detect", "Detection", "Detector", "Injection"]

Detect: TypeAlias = "Callable[[Sequence[str]], Flow[list[Detection]]]"
"""Judges texts as a flow: `Detector.flow`, or a classifier behind the driver (`screener.classifier`)."""


class Detector:
    """Finds prompt injections. Thread-safe; a text that was judged before costs one look-up.

    A detection depends on its text alone, not on the others.
    """

    def detect(self, texts: Sequence[str], /) -> list[Detection]:
        """The detections on k canonical texts. O(n) time for n characters."""
        return each(texts, linear.detect)

    def __call__(self, text: str, /) -> Detection:
        """The detection on one text."""
        return self.detect([text])[0]

    def flow(self, texts: Sequence[str], /) -> Generator[Any, Any, list[Detection]]:
        """`detect` as a flow without requests; the driver runs it beside the event loop."""
        yield from ()
        return self.detect(texts)


DETECTOR = Detector()
"""The one that every surface asks."""
