"""The application: its parts, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Literal

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from unpoison import __version__
from unpoison.at_rest.audit_log import AuditLog
from unpoison.at_rest.ingest import Ingest
from unpoison.checks import among
from unpoison.defenses.base import Defense
from unpoison.defenses.guard import Guard
from unpoison.service import failures, inspector, rerank, routes
from unpoison.service.auditing import Auditor
from unpoison.service.bounds import Bounds
from unpoison.service.choices import Choices
from unpoison.service.desk import Desk
from unpoison.service.gate import Gate
from unpoison.service.metrics import Metrics
from unpoison.service.work import Work

__all__ = ["create_app"]


def create_app(
    defenses: Mapping[str, Defense] | None = None,
    *,
    bounds: Bounds | None = None,
    on_poison: Literal["drop", "demote", "monitor"] = "drop",
    key: str | None = None,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
    make: Callable[[str], Defense] | None = None,
    log_dropped: bool = False,
    audit: AuditLog | None = None,
    ingest: Ingest | None = None,
) -> FastAPI:
    """The service as an ASGI application.

    Args:
        defenses: Option string -> defense, such as {"guard": Guard()}, which is the default; the first is what
            requests get that name none.
        bounds: What a request may cost.
        on_poison: What the rerank dialects do with a dropped passage: leave it out, put it last with score 0, or
            `monitor`: reply as if nothing was found, and only count and log.
        key: What `Authorization: Bearer` must say, None for nothing.
        hosts: The names by which the service may be called, empty for any.
        origins: The web origins whose pages may call the service; none by default.
        make: Makes the defense of an option string. With it requests may set the options that a defense `tightens`,
            and only so that it gets stricter; without it they cannot set any.
        log_dropped: Whether the access log quotes questions and what was dropped.
        audit: Where every screening and answer is written down; nowhere by default. The caller closes it.
        ingest: Judges the documents of /v1/ingest/check; by default beside those alone that the request brings.

    Returns:
        The application. Its lifespan must run: it starts and stops the threads.

    Raises:
        OptionError: An option out of its range.
    """
    limits, metrics = bounds or Bounds(), Metrics()
    desk = Desk(
        choices=Choices({"guard": Guard()} if defenses is None else defenses, make),
        bounds=limits,
        metrics=metrics,
        on_poison=among("on_poison", on_poison, ("drop", "demote", "monitor")),
        log_dropped=log_dropped,
        audit=None if audit is None else Auditor(audit, metrics, on_poison),
        ingest=ingest or Ingest(),
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        desk.work = Work(limits.threads)
        try:
            yield
        finally:
            desk.stopping = True
            await desk.work.close()

    app = FastAPI(
        title="unpoison",
        summary="Keeps poisoned passages out of retrieval-augmented answers.",
        version=__version__,
        docs_url=None,  # its page would load scripts from elsewhere; /openapi.json stays
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.desk = desk
    failures.install(app)
    app.include_router(routes.router)
    app.include_router(rerank.router)
    app.include_router(inspector.router)
    watched = rerank.PATHS if on_poison == "monitor" else ()
    app.add_middleware(Gate, bounds=limits, metrics=metrics, key=key, hosts=hosts, watched=watched)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-Id"],
        )
    return app
