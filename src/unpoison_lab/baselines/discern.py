"""Discern-and-Answer: find the perturbed passages, ignore them, answer (Hong et al., 2024).

The model names the perturbed passages itself (the paper's Disc-inst). The paper's other reader, with a discriminator in
its own encoder, is not here: its weights were not published.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple, Unpack

from unpoison.core.answers import Answer, Reply
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason, add_sentences
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense, ShellOptions, make_answer
from unpoison.models.prompts import fill_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate

__all__ = ["Discern", "parse_reply"]

add_sentences({
    "discern.perturbed": "the model says that it is perturbed",
    "discern.unperturbed": "the model says that it is not perturbed",
})  # fmt: skip


class Discern(Defense):
    """Ignore perturbed passages (Discern-and-Answer).

    If all passages are perturbed, the model answers from its own knowledge.

    Args:
        generator: Finds perturbed passages and answers, in one call.

    Like every defense, it also takes the common options (`ShellOptions`).
    """

    name = "discern"
    needs = ("generator",)
    summary = "has the model name the perturbed passages, and ignores them"
    calls = "1"
    source = "Hong et al., 2024"

    def __init__(self, generator: Generator | str | None = None, **shell: Unpack[ShellOptions]) -> None:
        super().__init__(generator=generator, **shell)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Discernment only; the model's answer is discarded."""
        return (yield from self._discern(query, passages))[0]

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Discernment and answer, in one call."""
        screening, reply = yield from self._discern(query, passages)
        return make_answer(replace(reply, text=parse_reply(reply.text).answer), screening, {"reply": reply.text})

    def _discern(self, query: Query, passages: tuple[Passage, ...]) -> Flow[tuple[Screening, Reply]]:
        texts = [passage.reading for passage in passages]
        (reply,) = yield from generate([fill_prompt("discern", query.reading, texts)], "discern and answer")
        perturbed = parse_reply(reply.text).perturbed
        scores = [0.0 if i + 1 in perturbed else 1.0 for i in range(len(passages))]
        kept = [i for i, score in enumerate(scores) if score]
        notes = () if kept or not passages else ("every passage was found perturbed: answered from own knowledge",)
        reasons = [Reason.of("discern.unperturbed" if score else "discern.perturbed") for score in scores]
        screening = Screening.decided(
            self.name, query, passages, kept=kept, scores=scores, reasons=reasons, evidence=Evidence(notes=notes)
        )
        return screening, reply


class Discerned(NamedTuple):
    """A parsed reply: the numbers of the perturbed passages, from 1, and the answer."""

    perturbed: frozenset[int]
    answer: str


_ANSWER = re.compile(r"answer:", re.IGNORECASE)
_NUMBERS = re.compile(r"\bpassages?\s+(\d+(?:\s*(?:,\s*(?:and\s+)?|and\s+)\d+)*)", re.IGNORECASE)


def parse_reply(reply: str) -> Discerned:
    """Parse "Passage 2, 4 are perturbed. ... answer: Paris"; any other reply is an answer as a whole."""
    marker = _ANSWER.search(reply)
    head = reply[: marker.start()] if marker else reply
    first = re.split(r"[.\n]", head.strip().removeprefix("perturbed:").strip(), maxsplit=1)[0]
    named = _NUMBERS.search(first) if marker or "perturbed" in first else None
    numbers = frozenset(int(number) for number in re.findall(r"\d{1,6}", named[1])) if named else frozenset[int]()
    return Discerned(numbers, reply[marker.end() :].strip() if marker else reply.strip())
