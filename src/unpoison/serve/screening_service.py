"""The service behind the routes: its defenses, screening, answers, counts and the audit log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast

from fastapi import Depends, Request

from unpoison.core import registry
from unpoison.core.answers import Answer, Call
from unpoison.core.passages import Passage, Query, as_passages
from unpoison.core.screenings import Screening
from unpoison.defenses.base import Defense
from unpoison.defenses.vanilla import Vanilla
from unpoison.errors import UnknownNameError
from unpoison.models.protocols import Generator
from unpoison.scan.audit_log import AuditLog
from unpoison.screener.screener import Event
from unpoison.serve.bounds import Bounds, beginnings, screening_of_all
from unpoison.serve.replies import Refusal
from unpoison.serve.schemas import PassageIn, ScreenRequest
from unpoison.serve.telemetry import LogRecord, Metrics
from unpoison.serve.work import Work

__all__ = ["OnPoison", "Preview", "ScreeningService", "ServiceOfRequest", "generator_of", "query_of"]


log = logging.getLogger("unpoison.service")


OnPoison = Literal["drop", "demote", "monitor"]
T = TypeVar("T")
Sent = Iterable[str | PassageIn]


class Preview(NamedTuple):
    """Results for the playground: a screening and, if requested, the answers with and without the defense."""

    screening: Screening
    answer: Answer | None = None
    undefended: Answer | None = None


@dataclass(slots=True)
class ScreeningService:
    """State and operations shared by the routes of one application.

    A full disk does not stop the service: missing entries of the audit log are counted and logged.

    Attributes:
        choices: The configured defenses by their option strings; the first is the default.
        bounds: Limits.
        metrics: Counters.
        on_poison: The rerank dialects' action on dropped documents; None chooses by request.
        audit: The audit log.
        work: Runs the defenses while the application is up.
    """

    choices: Mapping[str, Defense]
    bounds: Bounds
    metrics: Metrics
    on_poison: OnPoison | None = None
    audit: AuditLog | None = None
    work: Work = field(init=False)

    @property
    def default(self) -> str:
        """The option string of the default defense."""
        return next(iter(self.choices))

    def find(self, name: str | None) -> str | None:
        """The string of the defense that a request names; `guard` finds `guard:damage=0.01` too. None for no such."""
        return next((spec for spec in self.choices if name in (spec, registry.parse(spec)[0])), None)

    def pick(self, name: str | None) -> Defense:
        """The defense that a request names, the default for None.

        Raises:
            UnknownNameError: It is not configured.
        """
        spec = self.default if name is None else self.find(name)
        if spec is None:
            raise UnknownNameError("defense", str(name), self.choices)
        return self.choices[spec]

    async def aside(self, request: Request, work: Callable[[], T]) -> T:
        """Run a computation on a request, on a thread if its body is long."""
        return await self.work.aside(request.state.size, work)

    async def screen(self, request: Request, defense: Defense, query: Query, passages: Sent) -> Screening:
        """Validate, screen, count, and log. Of a passage longer than the limit, the beginning is judged."""
        screening, calls = await self._run_defense(request, defense, query, passages)
        self._count(request, screening, calls)
        await self._audit(request, screening)
        return screening

    async def _run_defense(
        self, request: Request, defense: Defense, query: Query, passages: Sent
    ) -> tuple[Screening, tuple[Call, ...]]:
        read, shown = await self._read(request, query, passages)
        found, calls = await self.work.screen(defense, query, shown)
        screening = await self.aside(request, partial(self._of_all, found, read))
        await defense.shell.aremember(screening)
        return screening, calls

    async def rerank(self, request: Request, defense: Defense, query: Query, documents: Sent) -> Screening | None:
        """`screen`; in monitor mode every failure of the service returns None, so that no traffic breaks.

        The audit log records the action taken on dropped documents.
        """
        request.state.on_poison = self.on_poison or "drop"
        if self.on_poison != "monitor":
            return await self.screen(request, defense, query, documents)
        record: LogRecord = request.state.record
        if record.unscreened is None:
            try:
                async with asyncio.timeout(self.bounds.timeout):
                    return await self.screen(request, defense, query, documents)
            except Exception as error:  # of any kind
                record.unscreened = type(error).__name__
        self.metrics.unscreened.labels(record.unscreened).inc()
        return None

    async def answer(self, request: Request, defense: Defense, query: Query, passages: Sent) -> Answer:
        """Validate, answer, and count, as `screen`."""
        read, shown = await self._read(request, query, passages)
        return await self._record_answer(request, await defense.aanswer(query, shown), read)

    async def preview(
        self, request: Request, defense: Defense, query: Query, passages: Sent, *, answers: bool
    ) -> Preview:
        """Screen, or answer with and without the defense, for the playground.

        Limits apply and model calls are counted. Nothing is audited or counted as a screening, because a poison typed
        here is not an attack.
        """
        if answers:
            read, shown = await self._read(request, query, passages)
            found = await defense.aanswer(query, shown)
            answer = await self.aside(request, partial(self._answer_of_all, found, read))
            bare = await Vanilla(generator=generator_of(defense), limits=defense.limits).aanswer(query, shown)
            preview, calls = Preview(answer.screening, answer, bare), (*answer.calls, *bare.calls)
        else:
            screening, calls = await self._run_defense(request, defense, query, passages)
            preview = Preview(screening)
        self.metrics.count_calls(calls)
        self._log(request, preview.screening, calls)
        return preview

    async def stream(self, request: Request, defense: Defense, query: Query, passages: Sent) -> AsyncIterator[Event]:
        """`answer` as a stream of events."""
        read, shown = await self._read(request, query, passages)
        async with aclosing(cast(Any, defense.aanswer_stream(query, shown))) as stream:
            async for event in stream:
                if isinstance(event, Answer):
                    yield await self._record_answer(request, event, read)
                elif isinstance(event, Screening):
                    yield await self.aside(request, partial(self._of_all, event, read))
                else:
                    yield event

    async def _record_answer(self, request: Request, answer: Answer, read: tuple[Passage, ...]) -> Answer:
        """Count and audit an answer, mapped back to the whole passages."""
        self._count(request, answer.screening, answer.calls)
        answer = await self.aside(request, partial(self._answer_of_all, answer, read))
        await self._audit(request, answer)
        return answer

    def _answer_of_all(self, answer: Answer, read: tuple[Passage, ...]) -> Answer:
        return replace(answer, screening=self._of_all(answer.screening, read))

    def _of_all(self, screening: Screening, read: tuple[Passage, ...]) -> Screening:
        return screening_of_all(screening, read, self.bounds.characters)

    async def _audit(self, request: Request, result: Screening | Answer) -> None:
        """Append a line to the audit log on a thread, before the reply is sent."""
        if self.audit is None:
            return
        record: LogRecord = request.state.record
        names = {"id": record.id, "route": request.url.path, "client": record.client}
        action = getattr(request.state, "on_poison", "drop")
        try:
            await asyncio.to_thread(self.audit.record, result, action=action, request=names)
        except Exception as error:  # of any kind
            self.metrics.unaudited.labels(type(error).__name__).inc()
            fields = {"id": record.id, "error": type(error).__name__}
            log.error("audit log not written", extra={"fields": fields})

    async def _read(
        self, request: Request, query: Query, passages: Sent
    ) -> tuple[tuple[Passage, ...], tuple[Passage, ...]]:
        """The passages of a request, whole and cut to the limit for screening."""

        def read() -> tuple[tuple[Passage, ...], tuple[Passage, ...]]:
            whole = as_passages([one if isinstance(one, str) else one.fields() for one in passages])
            self.bounds.check(query, whole)
            return whole, beginnings(whole, self.bounds.characters)

        return await self.aside(request, read)

    def _count(self, request: Request, screening: Screening, calls: Sequence[Call]) -> None:
        self.metrics.count_screening(screening.defense, screening, calls)
        self._log(request, screening, calls)

    def _log(self, request: Request, screening: Screening, calls: Sequence[Call]) -> None:
        record: LogRecord = request.state.record
        record.defense, record.k = screening.defense, len(screening.passages)
        record.dropped = len(screening.dropped_indices)
        record.calls = sum(call.kind == "generate" for call in calls) or None


def generator_of(defense: Defense) -> Generator:
    """The generator of a defense.

    Raises:
        Refusal: It has none.
    """
    if defense.models.generator is None:
        raise Refusal(501, "NoGenerator", "there is no language model to answer; start the service with --generator")
    return defense.models.generator


def query_of(body: ScreenRequest) -> Query:
    """The question of a request, with its embedding if it has one."""
    embedding: Any = body.embedding
    return Query(body.query, embedding)


async def _service(request: Request) -> ScreeningService:
    """Asynchronous, because FastAPI runs other dependencies on a thread."""
    return cast(ScreeningService, request.app.state.service)


ServiceOfRequest = Annotated[ScreeningService, Depends(_service)]
