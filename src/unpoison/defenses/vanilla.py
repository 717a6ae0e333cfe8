"""The two baselines of every table: retrieval without a defense, and no retrieval."""

from __future__ import annotations

from typing import Unpack

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense, ScreeningOptions, make_answer
from unpoison.models.prompts import answer_alone_prompt
from unpoison.models.requests import Flow, generate
from unpoison.utils.checks import at_least

__all__ = ["NoRag", "Vanilla"]


class Vanilla(Defense):
    """Trust everything: the best `keep` passages in retrieval order (None for all).

    Args:
        keep: The number of passages to keep; the "None" row of GRADA's tables is `keep=5` of ten.

    Like every defense, it also takes the common options (`ScreeningOptions`).
    """

    name = "vanilla"
    summary = "no defense: the best passages in retrieval order"
    calls = "1"
    source = "every paper's baseline"

    def __init__(self, keep: int | None = None, **shell: Unpack[ScreeningOptions]) -> None:
        super().__init__(**shell)
        self.keep = None if keep is None else at_least("keep", keep, 1)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        yield from ()  # a flow without requests
        places, found = range(len(passages)), Evidence(notes=("no defense was applied",))
        kept, scores = places[: self.keep], [-float(i) for i in places]
        why = [Reason.of("nothing.retrieved", rank=i + 1) for i in kept]
        why += [Reason.of("nothing.past", rank=i + 1, keep=self.keep) for i in places[len(kept) :]]
        return Screening.decided(self.name, query, passages, kept=kept, scores=scores, reasons=why, evidence=found)


class NoRag(Defense):
    """Trust nothing: the model answers from memory.

    Like every defense, it also takes the common options (`ScreeningOptions`).
    """

    name = "no-rag"
    summary = "no retrieval: the model answers from memory"
    calls = "1"
    source = "every paper's baseline"

    def __init__(self, **shell: Unpack[ScreeningOptions]) -> None:
        super().__init__(**shell)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        yield from ()  # a flow without requests
        k, found = len(passages), Evidence(notes=("no passage is shown to the model",))
        why = [Reason.of("nothing.read")] * k
        return Screening.decided(self.name, query, passages, kept=(), scores=[0.0] * k, reasons=why, evidence=found)

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        screening = yield from self.screening(query, passages)
        (reply,) = yield from generate([answer_alone_prompt(query.reading)], final=screening)
        return make_answer(reply, screening)
