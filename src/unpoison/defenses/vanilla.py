"""The two baselines that every table needs: retrieval without a defense, and no retrieval at all."""

from __future__ import annotations

from typing import Unpack

from unpoison.core.reasons import Reason
from unpoison.defenses.base import Defense, make_answer
from unpoison.defenses.options import CommonOptions
from unpoison.models.prompts import answer_alone_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate
from unpoison.types import Answer, Evidence, Passage, Query, Screening
from unpoison.utils.checks import at_least

__all__ = ["NoRag", "Vanilla"]


class Vanilla(Defense):
    """Trust everything: the best `keep` passages in retrieval order (all of them when None).

    Args:
        keep: How many to keep; the "None" row of GRADA's tables is `keep=5` of ten.
        generator: For `answer`.

    As every defense it also takes `prompt_injection`, `injection_model`, `sources` and `limits` (`CommonOptions`).
    """

    name = "vanilla"
    summary = "no defense: the best passages in retrieval order"
    calls = "1"
    source = "every paper's baseline"
    tightens = {"keep": "lower"}  # noqa: RUF012  nobody writes to it

    def __init__(
        self, keep: int | None = None, *, generator: Generator | str | None = None, **common: Unpack[CommonOptions]
    ) -> None:
        super().__init__(generator=generator, **common)
        self.keep = None if keep is None else at_least("keep", keep, 1)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        yield from ()  # a flow without requests
        kept = range(len(passages))[: self.keep]
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=kept,
            scores=[-float(i) for i in range(len(passages))],
            reasons=[
                Reason.of("nothing.retrieved", rank=i + 1)
                if i in kept
                else Reason.of("nothing.past", rank=i + 1, keep=self.keep)
                for i in range(len(passages))
            ],
            evidence=Evidence(notes=("no defense was applied",)),
        )


class NoRag(Defense):
    """Trust nothing: the model answers from memory.

    Args:
        generator: For `answer`.

    As every defense it also takes `prompt_injection`, `injection_model`, `sources` and `limits` (`CommonOptions`).
    """

    name = "no-rag"
    summary = "no retrieval: the model answers from memory"
    calls = "1"
    source = "every paper's baseline"

    def __init__(self, *, generator: Generator | str | None = None, **common: Unpack[CommonOptions]) -> None:
        super().__init__(generator=generator, **common)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        yield from ()  # a flow without requests
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=(),
            scores=[0.0] * len(passages),
            reasons=[Reason.of("nothing.read")] * len(passages),
            evidence=Evidence(notes=("no passage is shown to the model",)),
        )

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        screening = yield from self.screening(query, passages)
        (reply,) = yield from generate([answer_alone_prompt(query.reading)], final=screening)
        return make_answer(reply, screening)
