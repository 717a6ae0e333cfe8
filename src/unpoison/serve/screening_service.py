"""The service behind the routes: the defenses to choose from, screening, answers, counts and the audit log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple, cast

from fastapi import Depends, Request

from unpoison.core import registry
from unpoison.defenses.base import Defense
from unpoison.defenses.vanilla import Vanilla
from unpoison.errors import OptionError, UnknownNameError
from unpoison.models.protocols import Generator
from unpoison.scan.audit_log import AuditLog
from unpoison.screener.streaming import Event
from unpoison.serve.bounds import Bounds, cut, merge_screenings, rounds
from unpoison.serve.logs import Record, Sampler
from unpoison.serve.metrics import Metrics
from unpoison.serve.replies import Refusal
from unpoison.serve.schemas import PassageIn, ScreenRequest
from unpoison.serve.work import Work
from unpoison.types import Answer, Call, Passage, Query, Screening, as_passages

__all__ = [
    "Auditor",
    "Choices",
    "OnPoison",
    "Preview",
    "ScreeningService",
    "ServiceOfRequest",
    "generator_of",
    "query_of",
]


class Choices(Mapping[str, Defense]):
    """Defenses by the strings that they were configured with; the first is the default.

    `guard` also finds `guard:damage=0.01`, if no other `guard` was configured before.

    Args:
        defenses: At least one.

    Raises:
        OptionError: No defense at all.
    """

    def __init__(self, defenses: Mapping[str, Defense]) -> None:
        if not defenses:
            raise OptionError("the service needs at least one defense; configure guard")
        self._defenses = dict(defenses)
        self._aliases: dict[str, str] = {}
        for spec in defenses:
            self._aliases.setdefault(registry.parse(spec)[0], spec)

    def __getitem__(self, name: str) -> Defense:
        return self._defenses[name if name in self._defenses else self._aliases[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._defenses)

    def __len__(self) -> int:
        return len(self._defenses)

    @property
    def default(self) -> str:
        """The name of the first."""
        return next(iter(self._defenses))

    def pick(self, name: str | None) -> Defense:
        """The defense that a request names, the default for None.

        Raises:
            UnknownNameError: It is not configured.
        """
        if name is None:
            return self[self.default]
        if name not in self:
            raise UnknownNameError("defense", name, self)
        return self[name]

    def model_name(self, name: str | None) -> str | None:
        """The name of a configured defense, None for the names of rerank models that gateways send."""
        return name if name is not None and name in self else None


log = logging.getLogger("unpoison.service")


@dataclass(frozen=True, slots=True)
class Auditor:
    """Writes the audit log.

    Attributes:
        log: Where to.
        metrics: Where failures are counted.
        sampler: How often failures are logged.
    """

    log: AuditLog
    metrics: Metrics
    sampler: Sampler = field(default_factory=Sampler)

    async def record(self, request: Request, result: Screening | Answer) -> None:
        """Append a line, beside the loop of the server, before the request is replied to."""
        names = {
            "id": request.state.record.id,
            "route": request.url.path,
            "client": None if request.client is None else request.client.host,
        }
        action = getattr(request.state, "on_poison", "drop")
        try:
            await asyncio.to_thread(self.log.record, result, action=action, request=names)
        except Exception as error:  # a full disk must not take the service down; the operator is told
            self.metrics.unaudited.labels(type(error).__name__).inc()
            if count := self.sampler.count_failure():
                fields = {"id": names["id"], "error": type(error).__name__, "missing": count}
                log.error("audit log not written", extra={"fields": fields})
            return
        if (missing := self.sampler.count_recovery()) is not None:
            log.info("audit log written again", extra={"fields": {"missing": missing}})


OnPoison = Literal["drop", "demote", "monitor"]


class Preview(NamedTuple):
    """What a page shows: a screening, and where it was answered the answer with the defense and without one."""

    screening: Screening
    answer: Answer | None = None
    undefended: Answer | None = None


@dataclass(slots=True)
class ScreeningService:
    """What the routes of one application share.

    Attributes:
        choices: The defenses.
        bounds: Sizes and numbers.
        metrics: Counters.
        on_poison: What the rerank dialects do with what was dropped; None for what suits each.
        audit: Writes the audit log.
        stopping: Whether the service is about to end.
        work: Where defenses run, while the application runs.
    """

    choices: Choices
    bounds: Bounds
    metrics: Metrics
    on_poison: OnPoison | None = None
    audit: Auditor | None = None
    stopping: bool = False
    work: Work = field(init=False)

    async def screen(
        self, request: Request, defense: Defense, query: Query, passages: Iterable[str | PassageIn]
    ) -> Screening:
        """Read, bound, screen, count, and log. Passages longer than the bound are judged in windows."""
        screening, calls = await self._run_defense(defense, query, passages)
        self._count(request, screening, calls)
        await self._audit(request, screening)
        return screening

    async def screen_uncounted(self, defense: Defense, query: Query, passages: Iterable[str | PassageIn]) -> Screening:
        """`screen` for what has no request of its own: counted, neither logged nor audited."""
        screening, calls = await self._run_defense(defense, query, passages)
        self.metrics.count_screening(screening.defense, screening, calls)
        return screening

    async def _run_defense(
        self, defense: Defense, query: Query, passages: Iterable[str | PassageIn]
    ) -> tuple[Screening, list[Call]]:
        read, most = self._read(query, passages), self.bounds.characters
        results = [await self.work.screen(defense, query, part) for part in rounds(read, most)]
        screening = merge_screenings(query, read, [one.screening for one in results], most)
        await _remember(defense, screening)
        return screening, [call for one in results for call in one.calls]

    async def rerank(
        self,
        request: Request,
        defense: Defense,
        query: Query,
        documents: Sequence[str | PassageIn],
    ) -> Screening | None:
        """`screen`, but where the service only watches, None for whatever goes wrong with us: it breaks no traffic.

        The audit log says what becomes of the dropped.
        """
        request.state.on_poison = self.on_poison or "drop"
        if self.on_poison != "monitor":
            return await self.screen(request, defense, query, documents)
        record: Record = request.state.record
        if record.unscreened is None:
            try:
                async with asyncio.timeout(self.bounds.timeout):
                    return await self.screen(request, defense, query, documents)
            except Exception as error:  # whatever it is; the access log would have its kind too
                record.unscreened = type(error).__name__
        self.metrics.unscreened.labels(record.unscreened).inc()
        return None

    async def answer(
        self, request: Request, defense: Defense, query: Query, passages: Iterable[str | PassageIn]
    ) -> Answer:
        """Read, bound, answer, count. Long passages are read to the bound, by the defense and by the model alike."""
        read = self._read(query, passages)
        shown = cut(read, self.bounds.characters)
        return await self._record_answer(request, await self.work.answer(defense, query, shown), read, shown)

    async def preview(
        self, request: Request, defense: Defense, query: Query, passages: Iterable[str | PassageIn], *, answers: bool
    ) -> Preview:
        """Screen, or answer with and without the defense, for a page on which somebody tries things out.

        Bounded as ever, and its model calls are counted, for they cost; but nothing is audited, and it is no screening
        in the metrics: who types a poison here is no attack.
        """
        if answers:
            read = self._read(query, passages)
            shown = cut(read, self.bounds.characters)
            answer = _note_cuts(await self.work.answer(defense, query, shown), read, shown)
            bare = Vanilla(generator=generator_of(defense), limits=defense.limits)
            preview = Preview(answer.screening, answer, await self.work.answer(bare, query, shown))
            calls = [*answer.calls, *(preview.undefended.calls if preview.undefended else ())]
        else:
            screening, calls = await self._run_defense(defense, query, passages)
            preview = Preview(screening)
        self.metrics.count_calls(calls)
        self._log(request, preview.screening, calls)
        return preview

    async def stream(
        self, request: Request, defense: Defense, query: Query, passages: Iterable[str | PassageIn]
    ) -> AsyncIterator[Event]:
        """`answer` as it comes."""
        read = self._read(query, passages)
        shown = cut(read, self.bounds.characters)
        async with aclosing(cast(Any, self.work.stream(defense, query, shown))) as stream:
            async for event in stream:
                if isinstance(event, Answer):
                    await _remember(defense, event)
                yield (await self._record_answer(request, event, read, shown)) if isinstance(event, Answer) else event

    async def _record_answer(
        self, request: Request, answer: Answer, read: tuple[Passage, ...], shown: tuple[Passage, ...]
    ) -> Answer:
        """Count and audit an answer, and say in it which passages were read in part."""
        self._count(request, answer.screening, answer.calls)
        answer = _note_cuts(answer, read, shown)
        await self._audit(request, answer)
        return answer

    async def _audit(self, request: Request, result: Screening | Answer) -> None:
        if self.audit is not None:
            await self.audit.record(request, result)

    def _read(self, query: Query, passages: Iterable[str | PassageIn]) -> tuple[Passage, ...]:
        read = as_passages(list(map(_fields, passages)))
        self.bounds.check(query, read)
        return read

    def _count(self, request: Request, screening: Screening, calls: Sequence[Call]) -> None:
        self.metrics.count_screening(screening.defense, screening, calls)
        self._log(request, screening, calls)

    def _log(self, request: Request, screening: Screening, calls: Sequence[Call]) -> None:
        record: Record = request.state.record
        record.defense, record.k = screening.defense, len(screening.passages)
        record.dropped = len(screening.dropped_indices)
        record.calls = sum(call.kind == "generate" for call in calls) or None


def _note_cuts(answer: Answer, read: tuple[Passage, ...], shown: tuple[Passage, ...]) -> Answer:
    """Say in an answer which passages were read in part."""
    notes = [
        f"passages[{i}] was read to its character {len(part.text):,} of {len(whole.text):,}"
        for i, (part, whole) in enumerate(zip(shown, read))
        if part is not whole
    ]
    evidence = replace(answer.screening.evidence, notes=(*answer.screening.evidence.notes, *notes))
    return replace(answer, screening=replace(answer.screening, evidence=evidence))


async def _remember(defense: Defense, result: Screening | Answer) -> None:
    """Write the history of sources beside the server's loop: another process may hold its file."""
    if defense.learn:
        await asyncio.to_thread(defense.remember, result)


def _fields(one: str | PassageIn) -> object:
    return one if isinstance(one, str) else one.model_dump(exclude_unset=True)


def generator_of(defense: Defense) -> Generator:
    """What a defense answers with.

    Raises:
        Refusal: Nothing.
    """
    if defense.models.generator is None:
        raise Refusal(501, "NoGenerator", "there is no language model to answer; start the service with --generator")
    return defense.models.generator


def query_of(body: ScreenRequest) -> Query:
    """The question of a request, with its embedding where it brings one."""
    embedding: Any = body.embedding
    return Query(body.query, embedding)


async def _service(
    request: Request,
) -> ScreeningService:  # what is not asynchronous would be called on a thread, which takes longer
    service: ScreeningService = request.app.state.service
    return service


ServiceOfRequest = Annotated[ScreeningService, Depends(_service)]
