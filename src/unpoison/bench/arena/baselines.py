"""Two rules that anybody would write first: entries of the arena, no defenses of the package."""

from __future__ import annotations

import re

import numpy as np

from unpoison.defenses.base import Defense
from unpoison.models.requests import Flow
from unpoison.text.tokens import words
from unpoison.types import Passage, Query, Screening

__all__ = ["Phrases", "Repetition"]


class Repetition(Defense):
    """Drop passages that hold nearly all words of the question side by side, as poison with the question in front does.

    Args:
        share: Of the question's words, in a row in the passage, from which it is dropped.
    """

    name = "repetition"
    summary = "drops what repeats the question"

    def __init__(self, share: float = 0.8) -> None:
        super().__init__()
        self.share = share

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        yield from ()
        asked = words(query.reading, frozenset())
        repeated = [_longest_run(asked, words(passage.reading, frozenset())) for passage in passages]
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=[i for i, share in enumerate(repeated) if share < self.share],
            scores=[-share for share in repeated],
            reasons=[f"{share:.0%} of the question's words stand in a row" for share in repeated],
        )


def _longest_run(asked: list[str], text: list[str]) -> float:
    """The longest run of the question's words in a text, as a share of them; O(len(asked) * len(text))."""
    best, ends = 0, np.zeros(len(asked) + 1, int)
    for word in text:
        grown = np.zeros_like(ends)
        for i, own in enumerate(asked):
            if own == word:
                grown[i + 1] = ends[i] + 1
        best, ends = max(best, int(grown.max())), grown
    return best / len(asked) if asked else 0.0


PHRASES = (
    "ignore all previous", "ignore the previous", "ignore previous", "ignore all prior", "ignore the above",
    "ignore any previous", "ignore your instructions", "disregard all previous", "disregard the above",
    "disregard previous", "disregard your", "forget all previous", "forget everything", "forget your instructions",
    "forget the above", "override your", "new instructions", "system prompt", "system override", "you are now",
    "act as", "pretend to be", "pretend you are", "developer mode", "jailbreak", "do anything now", "from now on",
    "instead of answering", "do not follow", "stop following", "reveal your", "print your instructions",
    "repeat your instructions", "send an email to", "<|im_start|>", "[inst]", "### instruction", "begin_system",
    "important!!!", "you must now",
)  # fmt: skip


class Phrases(Defense):
    """Drop passages with one of forty phrases that filters of prompts look for."""

    name = "phrases"
    summary = "a list of forty phrases"

    def __init__(self) -> None:
        super().__init__()
        self._phrases = re.compile("|".join(map(re.escape, PHRASES)), re.IGNORECASE)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        yield from ()
        counts = [len(self._phrases.findall(passage.reading)) for passage in passages]
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=[i for i, count in enumerate(counts) if not count],
            scores=[-float(count) for count in counts],
            reasons=[f"{count} phrases of prompt injections" for count in counts],
        )
