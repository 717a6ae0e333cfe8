"""Runs a defense: admission, injections, sources, limits, streaming, traces and learning.

A defense is a flow from a query and passages to a screening. Validating the input before that flow, and mapping its
result back to the caller's passages, is the same for every defense and lives in this package.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeAlias, Unpack, cast

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query, as_passages, as_query
from unpoison.core.screenings import Screening
from unpoison.errors import OptionError
from unpoison.injections.detector import detect_flow
from unpoison.models.protocols import Models
from unpoison.models.requests import Flow
from unpoison.runtime.driver import Limits, arun, as_flow, result_of, run
from unpoison.screener.admission import Admitted, admit
from unpoison.screener.classifier import classify_texts
from unpoison.screener.options import Shell, ShellOptions
from unpoison.sources.allow import Allowed
from unpoison.sources.history import Outcome
from unpoison.sources.sources import Sources
from unpoison.utils.threads import on_thread
from unpoison.utils.tracing import Mark, span

__all__ = ["Event", "Screener", "outcomes_of", "stream_events"]

Event: TypeAlias = Screening | str | Answer
"""An event of a stream: first a screening, then pieces of text, then one answer."""


@dataclass(frozen=True, slots=True)
class _QueueListener:
    """Puts events into a queue; the length of a reply bounds it."""

    events: asyncio.Queue[Event | None]
    finished: Callable[[Screening], Screening]

    def on_screening(self, screening: Screening) -> None:
        self.events.put_nowait(self.finished(screening))

    def on_text(self, text: str) -> None:
        self.events.put_nowait(text)


async def stream_events(
    flow: Flow[Answer], models: Models, limits: Limits, finished: Callable[[Screening], Screening]
) -> AsyncIterator[Event]:
    """Run the flow of an answer and yield its events as they become known.

    Args:
        flow: The one that `answer` runs.
        models: Those of the defense.
        limits: As for `arun`.
        finished: Maps a screening to the caller's own passages.

    Raises:
        UnpoisonError: As `arun`; text yielded before it is not an answer.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    task = asyncio.create_task(arun(flow, models, limits, _QueueListener(events, finished)))
    task.add_done_callback(lambda _: events.put_nowait(None))
    screened = spoken = False
    try:
        while (event := await events.get()) is not None:
            screened, spoken = screened or isinstance(event, Screening), spoken or isinstance(event, str)
            yield event
        answer, calls = await task
        if not screened:
            yield answer.screening
        if not spoken:
            yield answer.text
        yield replace(answer, calls=calls)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task


class Screenable(Protocol):
    """The interface of a defense: two flows, its models, and its common options."""

    models: Models
    certifies: bool
    _shell: Shell

    @property
    def name(self) -> str: ...

    @property
    def verbatim(self) -> bool: ...

    def with_shell(self, **options: Unpack[ShellOptions]) -> Self: ...

    def screening(self, query: Query, passages: tuple[Passage, ...], /) -> Flow[Screening]: ...

    def answering(self, query: Query, passages: tuple[Passage, ...], /) -> Flow[Answer]: ...


class Screener:
    """Runs a defense with its common options and the history of sources; `Defense` forwards to it.

        Screener(Grada(keep=3), sources="policy.yaml", prompt_injection="redact").screen(query, passages)

    Args:
        defense: Two flows and their models.
        shell: Common options (`ShellOptions`) that replace those of the defense.

    Attributes:
        defense: The defense, with these options.
        options: The common options.

    Raises:
        OptionError: An unknown option, or one out of its range.
    """

    def __init__(self, defense: Screenable, **shell: Unpack[ShellOptions]) -> None:
        self.defense = defense.with_shell(**shell) if shell else defense
        self.options = self.defense._shell

    def admit(self, query: str | Query, passages: Iterable[Any]) -> Flow[Admitted]:
        """Validate the caller's input and select the passages that the defense reads."""
        models, options = self.defense.models, self.options
        lists = getattr(self.defense, "allow", None), getattr(options.sources, "allowed", None)
        return admit(
            query,
            passages,
            models.encoder,
            verbatim=self.defense.verbatim,
            trust_embeddings=options.trust_embeddings,
            prompt_injection=options.prompt_injection,
            threshold=options.prompt_injection_threshold,
            detect=detect_flow if models.injection is None else classify_texts,
            sources=options.sources,
            allowed=[one for one in lists if isinstance(one, Allowed)],
        )

    def screen_flow(self, query: str | Query, passages: Iterable[Any]) -> Flow[Screening]:
        """Screen the admitted passages; the result covers every passage of the caller."""
        entry = yield from self.admit(query, passages)
        return entry.restore((yield from self._screening(entry)))

    def answer_flow(self, query: str | Query, passages: Iterable[Any]) -> Flow[Answer]:
        """Answer from the admitted passages; abstain if there are none."""
        return (yield from self._answer_admitted((yield from self.admit(query, passages))))

    def _screening(self, entry: Admitted) -> Flow[Screening]:
        screening = yield from as_flow(self.defense.screening(entry.query, entry.passages), self.defense, "screening")
        return result_of(screening, Screening, self.defense, "screening")

    def _answer_admitted(self, entry: Admitted) -> Flow[Answer]:
        if entry.refused:
            answer = Answer.abstention((yield from self._screening(entry)))
            if self.defense.certifies:
                answer = replace(answer, guarantee=0, proof="no passage was let in: nothing was read")
            return entry.restore_answer(answer)
        answer = yield from as_flow(self.defense.answering(entry.query, entry.passages), self.defense, "answering")
        return entry.restore_answer(result_of(answer, Answer, self.defense, "answering"))

    def screen(self, query: str | Query, passages: Iterable[Any]) -> Screening:
        with span("screen", defense=self.defense.name) as mark:
            screening, _ = run(self.screen_flow(query, passages), self.defense.models, self.options.limits)
            _trace_counts(screening, mark)
        self.remember(screening)
        return screening

    async def ascreen(self, query: str | Query, passages: Iterable[Any]) -> Screening:
        with span("screen", defense=self.defense.name) as mark:
            screening, _ = await arun(self.screen_flow(query, passages), self.defense.models, self.options.limits)
            _trace_counts(screening, mark)
        await self.aremember(screening)
        return screening

    def answer(self, query: str | Query, passages: Iterable[Any]) -> Answer:
        self.require_generator()
        with span("answer", defense=self.defense.name) as mark:
            answer, calls = run(self.answer_flow(query, passages), self.defense.models, self.options.limits)
            _trace_counts(answer.screening, mark)
        self.remember(answer)
        return replace(answer, calls=calls)

    async def aanswer(self, query: str | Query, passages: Iterable[Any]) -> Answer:
        self.require_generator()
        with span("answer", defense=self.defense.name) as mark:
            answer, calls = await arun(self.answer_flow(query, passages), self.defense.models, self.options.limits)
            _trace_counts(answer.screening, mark)
        await self.aremember(answer)
        return replace(answer, calls=calls)

    def stream(self, query: str | Query, passages: Iterable[Any]) -> AsyncIterator[Event]:
        self.require_generator()
        asked, given = as_query(query), as_passages(passages)  # invalid input raises here, not at the first event
        entries = list[Admitted]()

        def answer_flow() -> Flow[Answer]:
            entries.append((yield from self.admit(asked, given)))
            return (yield from self._answer_admitted(entries[0]))

        def of_all(screening: Screening) -> Screening:
            return entries[0].restore(screening)

        return self._remembered(stream_events(answer_flow(), self.defense.models, self.options.limits, of_all))

    async def _remembered(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """The same events; the answer is recorded before it is yielded, because the caller may stop then."""
        async with aclosing(cast(Any, events)) as stream:
            async for event in stream:
                if isinstance(event, Answer):
                    await self.aremember(event)
                yield event

    def remember(self, result: Screening | Answer) -> None:
        """Record each source's outcome in the history, if the option `learn` is on."""
        sources = self.options.sources
        if self.options.learn and sources is not None:
            screening = result.screening if isinstance(result, Answer) else result
            sources.record(screening.query, outcomes_of(result, sources))

    async def aremember(self, result: Screening | Answer) -> None:
        """`remember` on a thread: another process may lock the file of the history."""
        if self.options.learn:
            await on_thread(lambda: self.remember(result))

    def require_generator(self) -> None:
        """Refuse to answer without a generator.

        Raises:
            OptionError: The defense has no generator.
        """
        if self.defense.models.generator is None:
            raise OptionError(
                f"{type(self.defense).__name__} was given no generator, so it can screen but not answer; "
                "pass generator='openai:gpt-4o-mini' or generator='extractive'"
            )


def _trace_counts(screening: Screening, mark: Mark) -> None:
    """Add the numbers of passages and of drops to the trace."""
    mark("passages", len(screening.passages))
    mark("dropped", len(screening.dropped_indices))


def outcomes_of(result: Screening | Answer, sources: Sources) -> Mapping[str, Outcome]:
    """The outcome of each origin's passages.

    If two or more sources agreed on an undisputed answer, its sources `agreed` and the sources of other claims
    `contested` it. A source whose passages were all dropped is `dropped`. All others are `seen`: a disputed answer
    is no evidence.
    """
    screening = result.screening if isinstance(result, Answer) else result
    origins = [sources.origin(passage) for passage in screening.passages]
    kept = {origins[i] for i in screening.kept_indices}
    outcomes: dict[str, Outcome] = {origin: "seen" if origin in kept else "dropped" for origin in origins if origin}
    if isinstance(result, Answer) and result.status == "agreed":
        lead, *others = result.claims
        said_otherwise = {origin for claim in others for origin in claim.origins if claim.weight}
        for origin in outcomes.keys() & said_otherwise:
            outcomes[origin] = "contested"
        for origin in outcomes.keys() & set(lead.origins):
            outcomes[origin] = "agreed"
    return outcomes
