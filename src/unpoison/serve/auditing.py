"""Screenings and answers of the service into the audit log; what goes wrong with the log breaks no request."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from fastapi import Request

from unpoison.scan.audit_log import AuditLog
from unpoison.serve.logs import Sampler
from unpoison.serve.metrics import Metrics
from unpoison.types import Answer, Screening

__all__ = ["Auditor"]

log = logging.getLogger("unpoison.service")


@dataclass(frozen=True, slots=True)
class Auditor:
    """Writes the audit log where there is one.

    Attributes:
        log: None for none.
        metrics: Where failures are counted.
        sampler: How often failures are logged.
    """

    log: AuditLog | None
    metrics: Metrics
    sampler: Sampler = field(default_factory=Sampler)

    async def record(self, request: Request, result: Screening | Answer) -> None:
        """Append a line, beside the loop of the server, before the request is replied to."""
        if self.log is None:
            return
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
