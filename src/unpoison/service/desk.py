"""What every route needs: the defenses, where they run, and who counts and logs what they did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fastapi import Depends, Request

from unpoison.defenses.base import Defense
from unpoison.rendering import excerpt, plain
from unpoison.service.bounds import Bounds
from unpoison.service.choices import Choices
from unpoison.service.gate import Record
from unpoison.service.metrics import Metrics
from unpoison.service.schemas import PassageIn, ScreenRequest
from unpoison.service.work import Work
from unpoison.types import Answer, Call, Passage, Query, Screening, as_passages

__all__ = ["Desk", "DeskOfRequest", "asked", "told"]


@dataclass(slots=True)
class Desk:
    """What the routes of one application share.

    Attributes:
        choices: The defenses.
        bounds: Sizes and numbers.
        metrics: Counters.
        on_poison: What the rerank dialects do with what was dropped.
        log_dropped: Whether the access log quotes it.
        work: Where defenses run, while the application runs.
    """

    choices: Choices
    bounds: Bounds
    metrics: Metrics
    on_poison: Literal["drop", "demote", "monitor"] = "drop"
    log_dropped: bool = False
    work: Work = field(init=False)

    async def screen(
        self, request: Request, defense: Defense, query: Query, passages: Iterable[str | PassageIn]
    ) -> Screening:
        """Read, bound, screen, count."""
        found = await self.work.screen(defense, query, self._read(query, passages))
        self._count(request, found.screening, found.calls)
        return found.screening

    async def answer(
        self, request: Request, defense: Defense, query: Query, passages: Iterable[str | PassageIn]
    ) -> Answer:
        """Read, bound, answer, count."""
        answer = await self.work.answer(defense, query, self._read(query, passages))
        self._count(request, answer.screening, answer.calls)
        return answer

    def _read(self, query: Query, passages: Iterable[str | PassageIn]) -> tuple[Passage, ...]:
        read = as_passages([p if isinstance(p, str) else p.model_dump(exclude_unset=True) for p in passages])
        self.bounds.check(query, read)
        return read

    def _count(self, request: Request, screening: Screening, calls: Sequence[Call]) -> None:
        self.metrics.screened(screening.defense, screening, calls)
        record: Record = request.state.record
        record.defense, record.k = screening.defense, len(screening.passages)
        record.dropped = len(screening.dropped_indices)
        record.calls = sum(call.kind == "generate" for call in calls) or None
        if self.log_dropped and record.dropped:
            record.texts = {
                "query": excerpt(screening.query, 200),
                "poison": [
                    {"index": i, "reason": plain(screening.verdicts[i].reason), "text": excerpt(passage.text, 200)}
                    for i, passage in zip(screening.dropped_indices, screening.dropped)
                ],
            }


def asked(body: ScreenRequest) -> Query:
    """The question of a request, with its embedding where it brings one."""
    embedding: Any = body.embedding
    return Query(body.query, embedding)


def told(screening: Screening) -> dict[str, Any]:
    """The screening as in the rows of `unpoison screen`, with threshold and probabilities where there are any."""
    evidence = screening.evidence
    return {
        **screening.summary(),
        **{name: evidence[name].tolist() for name in ("threshold", "probability") if name in evidence},
    }


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


DeskOfRequest = Annotated[Desk, Depends(_desk)]
