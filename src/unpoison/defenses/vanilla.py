"""The two baselines that every table needs: retrieval without a defense, and no retrieval at all."""

from __future__ import annotations

from unpoison.core.reasons import Reason
from unpoison.defenses.base import Defense, SourcesOption, make_answer
from unpoison.defenses.injections import InjectionPolicy
from unpoison.models.prompts import answer_alone_prompt
from unpoison.models.protocols import Generator, InjectionClassifier
from unpoison.models.requests import Flow, generate
from unpoison.runtime.driver import Limits
from unpoison.types import Answer, Evidence, Passage, Query, Screening
from unpoison.utils.checks import at_least

__all__ = ["NoRag", "Vanilla"]


class Vanilla(Defense):
    """Trust everything: the best `keep` passages in retrieval order (all of them when None).

    Args:
        keep: How many to keep; the "None" row of GRADA's tables is `keep=5` of ten.
        generator: For `answer`.
        prompt_injection: What becomes of passages that hold a prompt injection, before anything reads them: `redact`
            cuts its sentences and drops what has no harmless rest, `drop`, `flag` only says so, `keep` does not look,
            as a baseline must.
        injection_model: A classifier that finds injections in place of the built-in detector, or the string of one:
            `hf:NAME_OR_PATH` or `onnx:FOLDER` (`models.load_injection_model`).
        sources: Who says what: `Sources`, or a policy as a file or a mapping. What is of a blocked source is dropped
            unread, and what a source repeats is read once.
        limits: Bounds on the model calls.
    """

    name = "vanilla"
    summary = "no defense: the best passages in retrieval order"
    calls = "1"
    source = "every paper's baseline"
    tightens = {"keep": "lower"}  # noqa: RUF012  nobody writes to it

    def __init__(
        self,
        keep: int | None = None,
        *,
        generator: Generator | str | None = None,
        prompt_injection: InjectionPolicy = "keep",
        injection_model: InjectionClassifier | str | None = None,
        sources: SourcesOption = None,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(
            generator=generator,
            prompt_injection=prompt_injection,
            injection_model=injection_model,
            sources=sources,
            limits=limits,
        )
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
        prompt_injection: What becomes of passages that hold a prompt injection, before anything reads them: `redact`
            cuts its sentences and drops what has no harmless rest, `drop`, `flag` only says so, `keep` does not look,
            as a baseline must.
        injection_model: A classifier that finds injections in place of the built-in detector, or the string of one:
            `hf:NAME_OR_PATH` or `onnx:FOLDER` (`models.load_injection_model`).
        sources: Who says what: `Sources`, or a policy as a file or a mapping. What is of a blocked source is dropped
            unread, and what a source repeats is read once.
        limits: Bounds on the model calls.
    """

    name = "no-rag"
    summary = "no retrieval: the model answers from memory"
    calls = "1"
    source = "every paper's baseline"

    def __init__(
        self,
        *,
        generator: Generator | str | None = None,
        prompt_injection: InjectionPolicy = "keep",
        injection_model: InjectionClassifier | str | None = None,
        sources: SourcesOption = None,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(
            generator=generator,
            prompt_injection=prompt_injection,
            injection_model=injection_model,
            sources=sources,
            limits=limits,
        )

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
