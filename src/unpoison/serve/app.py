"""Builds the application from its parts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI

from unpoison import __version__
from unpoison.defenses.base import Defense
from unpoison.defenses.guard import Guard
from unpoison.errors import OptionError, clip
from unpoison.scan.audit_log import AuditLog
from unpoison.serve import replies, rerank, routes
from unpoison.serve.admission import Admission, Keys
from unpoison.serve.bounds import Bounds
from unpoison.serve.middleware import RequestMiddleware
from unpoison.serve.playground import router as page_router
from unpoison.serve.screening_service import OnPoison, ScreeningService
from unpoison.serve.telemetry import Metrics
from unpoison.serve.work import Work
from unpoison.utils.checks import among

__all__ = ["create_app"]

_ROOT = re.compile(r"(/[A-Za-z0-9._~-]+){1,8}")


def create_app(
    defenses: Mapping[str, Defense] | None = None,
    *,
    bounds: Bounds | None = None,
    on_poison: OnPoison | None = None,
    keys: Keys | str | None = None,
    root_path: str = "",
    hosts: Collection[str] = (),
    audit: AuditLog | None = None,
) -> FastAPI:
    """The service as an ASGI application.

    Args:
        defenses: Defenses by option string, such as {"guard": Guard()}, the default. The first one is used by requests
            that name no defense.
        bounds: Limits of a request and of the service.
        on_poison: The action of the rerank dialects on a dropped passage: leave it out, put it last with score 0, or
            `monitor`: reply as if nothing was found, and only count and log. By default it is left out if fewer
            documents are requested than were sent; else it is put last, as such clients pair scores with positions.
        keys: Valid values of `Authorization: Bearer`: one key, or the `Keys` of a file; None for no authentication.
        root_path: The path under which a proxy serves the application, such as "/unpoison"; it may strip it or not.
        hosts: Allowed host names, empty for any.
        audit: The audit log of all screenings and answers; None for none. The caller closes it.

    Returns:
        The application. Its lifespan must run: it starts and stops the threads.

    Raises:
        OptionError: An option out of its range.
    """
    choices = {"guard": Guard()} if defenses is None else defenses
    if not isinstance(choices, Mapping) or not choices:
        raise OptionError(f"defenses must map names to defenses, such as {{'guard': Guard()}}, got {clip(choices)}")
    limits, metrics = bounds or Bounds(), Metrics()
    admission = Admission(body=limits.body, hosts=hosts, keys=Keys.of(keys) if isinstance(keys, str) else keys)
    if on_poison is not None:
        among("on_poison", on_poison, ("drop", "demote", "monitor"))
    service = ScreeningService(dict(choices), limits, metrics, on_poison, audit)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.work = Work(limits.threads)
        try:
            yield
        finally:
            service.work.close()

    app = FastAPI(
        title="unpoison",
        summary="Keeps poisoned passages out of retrieval-augmented answers.",
        version=__version__,
        docs_url=None,  # its page would load scripts from elsewhere; /openapi.json stays
        redoc_url=None,
        redirect_slashes=not root_path,  # it would redirect past the proxy's path
        responses={status: {"description": 'An error: {"error": {"type", "message"}}.'} for status in ("4XX", "5XX")},
        servers=[{"url": _normalize_root(root_path)}] if root_path else None,
        lifespan=lifespan,
    )
    app.state.service = service
    replies.install(app)
    app.include_router(rerank.router)  # first: routes are matched in this order
    app.include_router(routes.router)
    app.include_router(page_router)
    watched = rerank.PATHS if on_poison == "monitor" else ()
    root = _normalize_root(root_path)
    app.add_middleware(
        RequestMiddleware, bounds=limits, metrics=metrics, admission=admission, root=root, watched=watched
    )
    return app


def _normalize_root(path: str) -> str:
    """A root path without a trailing slash, such as "/unpoison", or an empty string.

    Raises:
        OptionError: An invalid path.
    """
    root = path.rstrip("/")
    if root and not _ROOT.fullmatch(root):
        raise OptionError(f"root_path must be like /unpoison: letters, digits, .-_~ between slashes, got {clip(path)}")
    return root
