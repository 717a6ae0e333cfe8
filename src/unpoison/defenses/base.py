"""What every defense is: a flow that screens, and by default a flow that answers from what it kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from unpoison.core.reasons import Reason
from unpoison.defenses.admission import Admitted, admit
from unpoison.defenses.injections import BUILT_IN, CLASSIFIER, POLICIES, InjectionPolicy
from unpoison.defenses.options import state_common_options
from unpoison.defenses.streaming import Event, stream_events
from unpoison.defenses.voices import outcomes_of
from unpoison.errors import OptionError, clip
from unpoison.models.functions import GeneratorFunction
from unpoison.models.loading import (
    as_generator,
    load_cross_encoder,
    load_encoder,
    load_generator,
    load_injection_model,
    load_nli,
)
from unpoison.models.prompts import Style, answer_alone_prompt, answer_prompt, informative
from unpoison.models.protocols import (
    CrossEncoder,
    Encoder,
    Generator,
    InjectionClassifier,
    LogProbabilities,
    Models,
    NLIModel,
    Retriever,
)
from unpoison.models.requests import Flow, generate
from unpoison.runtime.driver import Limits, arun, run
from unpoison.runtime.flows import as_flow, result_of
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.types import Answer, Evidence, Passage, Query, Reply, Screening, as_passages, as_query
from unpoison.utils.checks import among, flag
from unpoison.utils.tracing import Mark, span

__all__ = [
    "EQUAL",
    "AnsweringDefense",
    "Defense",
    "SourcesOption",
    "abstention",
    "add_notes",
    "make_answer",
    "note_unfinished",
]


EQUAL = Reason.of("copies.all_equal")


class Defense(ABC):
    """A defense answers "which passages do I trust" and, given a generator, "what is the answer in spite of them".

    A subclass names itself, validates its options in `__init__`, and writes `screening`, a flow; `answer_flow` may
    stay as it is: answer from the kept passages with the plain RAG prompt.

    Attributes:
        name: What users type.
        needs: The models without which `screen` cannot run, such as ("generator",).
        summary: What it does, in one line.
        calls: How often an answer asks the generator, as a function of the k passages.
        source: The paper.
        certifies: Whether its answers come with a guarantee.
        tightens: The options that a stranger may set without weakening the defense or making it dearer, and to which
            side: "lower" or "higher" than they are. A service lets requests set these and no others.
        learn: Whether what it screens and answers is written into the history of its `sources`.
    """

    name: ClassVar[str]
    needs: tuple[str, ...] = ()
    summary: ClassVar[str] = ""
    calls: ClassVar[str] = ""
    source: ClassVar[str] = ""
    certifies: bool = False
    tightens: ClassVar[Mapping[str, Literal["lower", "higher"]]] = {}
    learn: bool = False

    def __init__(
        self,
        *,
        encoder: Encoder | str | None = None,
        generator: Generator | GeneratorFunction | str | None = None,
        nli: NLIModel | str | None = None,
        cross_encoder: CrossEncoder | str | None = None,
        language_model: LogProbabilities | str | None = None,
        retriever: Retriever | None = None,
        trust_embeddings: bool = True,
        prompt_injection: InjectionPolicy = "keep",
        injection_model: InjectionClassifier | str | None = None,
        sources: SourcesOption = None,
        limits: Limits | None = None,
    ) -> None:
        self.sources = Sources.of(sources)
        self.models = Models(
            encoder=load_encoder(encoder) if isinstance(encoder, str) else encoder,
            generator=as_generator(generator),
            nli=load_nli(nli) if isinstance(nli, str) else nli,
            cross_encoder=load_cross_encoder(cross_encoder) if isinstance(cross_encoder, str) else cross_encoder,
            language_model=_language_model(language_model) if isinstance(language_model, str) else language_model,
            retriever=retriever,
            injection=(load_injection_model(injection_model) if isinstance(injection_model, str) else injection_model),
        )
        self.limits = limits or Limits()
        self.trust_embeddings = flag("trust_embeddings", trust_embeddings)
        self.prompt_injection: InjectionPolicy = among("prompt_injection", prompt_injection, POLICIES)

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "__init__" in vars(cls):
            state_common_options(cls, Defense.__init__)

    def admit(self, query: object, passages: Any) -> Flow[Admitted]:
        """What this defense reads of what the caller passes (`defenses.admission`)."""
        verbatim = getattr(self, "mode", None) == "reference"
        return admit(
            query,
            passages,
            self.models.encoder,
            verbatim=verbatim,
            trust_embeddings=self.trust_embeddings,
            prompt_injection=self.prompt_injection,
            detector=BUILT_IN if self.models.injection is None else CLASSIFIER,
            sources=self.sources,
        )

    def screen_flow(self, query: str | Query, passages: Iterable[Any]) -> Flow[Screening]:
        """The flow of `screen`: `screening` of what is admitted."""
        entry = yield from self.admit(query, passages)
        screening = yield from as_flow(self.screening(entry.query, entry.passages), self, "screening")
        return entry.screening(result_of(screening, Screening, self, "screening"))

    def _answer_flow(self, query: str | Query, passages: Iterable[Any]) -> Flow[Answer]:
        """The flow of `answer`; where nothing is let in it abstains, as where a screening kept none."""
        return (yield from self._answer_admitted((yield from self.admit(query, passages))))

    def _answer_admitted(self, entry: Admitted) -> Flow[Answer]:
        if entry.refused:
            screening = yield from as_flow(self.screening(entry.query, entry.passages), self, "screening")
            answer = abstention(result_of(screening, Screening, self, "screening"))
            if self.certifies:
                answer = replace(answer, guarantee=0, proof="no passage was let in: nothing was read")
            return entry.answer(answer)
        answer = yield from as_flow(self.answering(entry.query, entry.passages), self, "answering")
        return entry.answer(result_of(answer, Answer, self, "answering"))

    @property
    def answers_itself(self) -> bool:
        """Whether it has a way of its own to answer, beside the plain answer from what it kept."""
        return type(self).answering is not Defense.answering or self.certifies

    def with_style(self, style: Style | str) -> Self:
        """The same defense, asking its generator in another style (`safe`, `plain`, `plain:abstain=false`, ...).

        Raises:
            OptionError: No such style.
        """
        styled = copy(self)
        styled.models = replace(self.models, style=Style.of(style))
        return styled

    def with_sources(self, sources: SourcesOption) -> Self:
        """The same defense with other sources, about which it learns nothing."""
        other = copy(self)
        other.sources, other.learn = Sources.of(sources), False
        return other

    @abstractmethod
    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """The flow that decides which passages to trust. It reads their `reading`, never their `text`."""

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """The flow that answers; by default from the kept passages, and abstaining when a screening kept none."""
        screening = yield from as_flow(self.screening(query, passages), self, "screening")
        return (yield from self.answer_from(query, result_of(screening, Screening, self, "screening")))

    def answer_from(self, query: Query, screening: Screening) -> Flow[Answer]:
        """The plain answer from what a screening kept."""
        if screening.passages and not screening.kept:
            return abstention(screening)
        texts = screening.texts
        prompt = answer_prompt(query.reading, texts) if texts else answer_alone_prompt(query.reading)
        (reply,) = yield from generate([prompt], "answer", screening)
        return make_answer(reply, screening)

    def all_kept(
        self, query: Query, passages: tuple[Passage, ...], reasons: str | Sequence[str], *notes: str
    ) -> Screening:
        """A screening that drops nothing, for one reason or for one of each passage."""
        k = len(passages)
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=range(k),
            scores=[0.0] * k,
            reasons=[reasons] * k if isinstance(reasons, str) else reasons,
            evidence=Evidence(notes=notes),
        )

    def best_kept(self, query: Query, passages: tuple[Passage, ...]) -> Screening:
        """A screening of copies that keeps the best ranked one."""
        k = len(passages)
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=[0],
            scores=[0.0] * k,
            reasons=[Reason.of("copies.first"), *[Reason.of("copies.copy", passage=0)] * (k - 1)],
            evidence=Evidence(notes=(f"{k} passages have the same embedding: the best ranked one is kept",)),
        )

    def screen(self, query: str | Query, passages: Iterable[Any]) -> Screening:
        """Say which passages to trust.

        Args:
            query: The user's question.
            passages: Strings, dicts, framework documents or `Passage`, in retrieval order.

        Returns:
            One verdict per passage; kept plus dropped is exactly the input.

        Raises:
            InputError: An unusable query or passage.
            ModelError: A model failed; nothing is ever returned unscreened.
        """
        with span("screen", defense=self.name) as mark:
            screening, _ = run(self.screen_flow(query, passages), self.models, self.limits)
            _trace_counts(screening, mark)
        self.remember(screening)
        return screening

    async def ascreen(self, query: str | Query, passages: Iterable[Any]) -> Screening:
        """`screen` for asyncio."""
        with span("screen", defense=self.name) as mark:
            screening, _ = await arun(self.screen_flow(query, passages), self.models, self.limits)
            _trace_counts(screening, mark)
        self.remember(screening)
        return screening

    def screen_many(self, rows: Iterable[tuple[str | Query, Iterable[Any]]]) -> list[Screening]:
        """`screen` for each (query, passages), with the same results."""
        return [self.screen(query, passages) for query, passages in rows]

    def answer(self, query: str | Query, passages: Iterable[Any]) -> Answer:
        """Answer in spite of poisoned passages.

        Returns:
            The answer, the screening behind it and the account of every model call.

        Raises:
            InputError: An unusable query or passage.
            OptionError: No generator was given.
            ModelError: A model failed for good.
            DeadlineError: The deadline passed.
        """
        self._require_generator()
        with span("answer", defense=self.name) as mark:
            answer, calls = run(self._answer_flow(query, passages), self.models, self.limits)
            _trace_counts(answer.screening, mark)
        self.remember(answer)
        return replace(answer, calls=calls)

    async def aanswer(self, query: str | Query, passages: Iterable[Any]) -> Answer:
        """`answer` for asyncio."""
        self._require_generator()
        with span("answer", defense=self.name) as mark:
            answer, calls = await arun(self._answer_flow(query, passages), self.models, self.limits)
            _trace_counts(answer.screening, mark)
        self.remember(answer)
        return replace(answer, calls=calls)

    def aanswer_stream(self, query: str | Query, passages: Iterable[Any]) -> AsyncIterator[Event]:
        """`aanswer` as it comes: one `Screening`, then pieces of text, then the `Answer`.

        The answer counts: where a vote over the passages decides otherwise, its text is not that of the pieces. A
        generator that cannot stream gives its text as one piece.

        Raises:
            UnpoisonError: As `answer`, at any event.
        """
        self._require_generator()
        asked, given = as_query(query), as_passages(passages)  # what is no input is said at once
        entries = list[Admitted]()

        def answer_flow() -> Flow[Answer]:
            entries.append((yield from self.admit(asked, given)))
            return (yield from self._answer_admitted(entries[0]))

        def restore_passages(screening: Screening) -> Screening:
            return entries[0].screening(screening)

        return stream_events(answer_flow(), self.models, self.limits, restore_passages)

    def remember(self, result: Screening | Answer) -> None:
        """Write what came of each source into the history, where that is wanted (`learn`)."""
        if self.learn and self.sources is not None:
            screening = result.screening if isinstance(result, Answer) else result
            self.sources.record(screening.query, outcomes_of(result, self.sources))

    @property
    def source_notes(self) -> tuple[str, ...]:
        """What went on without the policy or the history of `sources`."""
        return self.sources.notes if self.sources is not None else ()

    def _require_generator(self) -> None:
        if self.models.generator is None:
            raise OptionError(
                f"{type(self).__name__} was given no generator, so it can screen but not answer; "
                "pass generator=OpenAIGenerator('gpt-4o-mini') or generator='extractive'"
            )


class AnsweringDefense(Defense):
    """A defense that drops no passage: it answers from all of them, in a way of its own.

    Attributes:
        keeps_for: The code of the reason that its screening gives for every passage.
    """

    keeps_for: ClassVar[str]

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        yield from ()  # a flow without requests
        return self.all_kept(query, passages, Reason.of(self.keeps_for))


def _trace_counts(screening: Screening, mark: Mark) -> None:
    """Tell the trace what became of the passages."""
    mark("passages", len(screening.passages))
    mark("dropped", len(screening.dropped_indices))


def make_answer(reply: Reply, screening: Screening, details: Mapping[str, Any] | None = None) -> Answer:
    """The answer that a final reply makes. A refusal or an empty reply abstains; a reply that was cut says so."""
    all_details = dict(details or {})
    if reply.finish != "stop":
        all_details["finish"] = reply.finish
    return Answer(
        reply.text,
        screening,
        abstained=reply.finish == "refusal" or not informative(reply.text),
        details=all_details,
    )


def abstention(screening: Screening, details: Mapping[str, Any] | None = None) -> Answer:
    """The answer when there is nothing trustworthy to answer from; no model is asked."""
    return Answer("I don't know.", screening, abstained=True, details=dict(details or {}))


def add_notes(answer: Answer, *notes: str) -> Answer:
    """The same answer with more notes in the evidence."""
    evidence = replace(answer.screening.evidence, notes=(*answer.screening.evidence.notes, *notes))
    return replace(answer, screening=replace(answer.screening, evidence=evidence))


def note_unfinished(answer: Answer, steps: Mapping[str, Reply]) -> Answer:
    """The same answer, saying which of the replies that it rests on were refused or cut, by the name of the step."""
    ended_early = {step: reply.finish for step, reply in steps.items() if reply.finish != "stop"}
    if not ended_early:
        return answer
    in_words = {"refusal": "was refused by the model", "length": "was cut at its length limit"}
    notes = [f"the {step} {in_words.get(finish, f'ended early ({finish})')}" for step, finish in ended_early.items()]
    return replace(add_notes(answer, *notes), details={**answer.details, "unfinished": ended_early})


def _language_model(spec: str) -> LogProbabilities:
    model = load_generator(spec)
    if not isinstance(model, LogProbabilities):
        raise OptionError(f"language_model {clip(spec)} gives no log-probabilities; use hf:NAME_OR_PATH")
    return model
