"""The application under uvicorn, with its log as JSON lines on standard error."""

from __future__ import annotations

import gc
import logging
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from unpoison.errors import ModelError, StoreError
from unpoison.serve.balance import BalancedSocket
from unpoison.serve.bounds import Bounds
from unpoison.serve.connections import KEEP_ALIVE, connection_class
from unpoison.serve.logs import log_to_stderr
from unpoison.serve.sockets import BACKLOG, address
from unpoison.serve.work import warm_up

__all__ = ["Draining", "serve"]

CONNECTIONS = 8192
"""Connections at most, where the system allows so many; each that rests costs about 10 KB."""

OTHER_FILES = 128
"""Files and sockets that the process may need for anything else."""

AT_ONCE = 1
"""Connections that a process takes at once: of several on one socket, the first to wake would take all that wait."""

log = logging.getLogger("unpoison.service")


class Draining(uvicorn.Server):
    """A server that ends in three steps, so that a load balancer never sends a request to a closed door.

    SIGTERM: `/readyz` says no from then on and everything is still served, each reply closing its connection. After
    `drain` seconds nothing new is taken. Requests in work have `timeout_graceful_shutdown` seconds to end. SIGINT, and
    a second SIGTERM, leave the first step out.

    Args:
        config: As for `uvicorn.Server`.
        drain: Seconds of the first step.
        stopping: Called when it begins.
        clock: Seconds, rising.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        drain: float,
        stopping: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(config)
        self._drain, self._stopping, self._clock = drain, stopping, clock
        self._end: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping()
        if sig == signal.SIGTERM:  # uvicorn would raise it again in the end, but this end was asked for
            self._end = self._clock() + (self._drain if self._end is None else 0.0)
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if self._end is not None and self._clock() >= self._end:
            self.should_exit = True
        return await super().on_tick(counter)


def serve(
    app: FastAPI,
    *,
    listening: socket.socket,
    bounds: Bounds,
    drain: float = 0.0,
    grace: float | None = None,
    log_level: str = "info",
) -> None:
    """Serve until a signal says stop; see `Draining`.

    Args:
        app: What `create_app` made.
        listening: What `sockets.listen` opened; the log says where.
        bounds: Those of the application.
        drain: Seconds to serve on after SIGTERM, while `/readyz` says no.
        grace: Seconds for the requests in work to end then; by default the timeout of one.
        log_level: "debug", "info", "warning" or "error".

    Raises:
        UnpoisonError: A model cannot be used; in monitor mode one that is down now may be there later.
    """
    log_to_stderr(log_level, "unpoison.service", "uvicorn")
    try:
        warm_up(app.state.desk.choices.values())
    except (ModelError, StoreError) as error:
        if app.state.desk.on_poison != "monitor":
            raise
        fields = {"error": type(error).__name__}  # it passes everything on until then, and counts that
        log.warning(
            "a model cannot be used yet; in monitor mode the service starts all the same", extra={"fields": fields}
        )
    gc.collect()
    gc.freeze()  # what is loaded stays: each look through all of it would stop every request for about 50 ms
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=AT_ONCE,
        timeout_graceful_shutdown=int(bounds.timeout if grace is None else grace) + 1,
        timeout_keep_alive=KEEP_ALIVE,
        http=connection_class(_most_connections()),
        ws="none",
    )

    def begin_shutdown() -> None:
        app.state.desk.stopping = True

    server = _Announced(config, drain=drain, stopping=begin_shutdown)
    server.listening = listening
    server.run(sockets=[listening])


class _Announced(Draining):
    """Logs its address once it serves there, for uvicorn does not for a socket that it is given; and says its load."""

    listening: socket.socket

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.listening.listen(BACKLOG)  # asyncio takes one number for how many wait and how many are taken at once
        if self.started:
            log.info("running on %s", address(self.listening))

    async def on_tick(self, counter: int) -> bool:
        if isinstance(self.listening, BalancedSocket):
            self.listening.say()
        return await super().on_tick(counter)


def _most_connections() -> int:
    """As many as the system lets this process have; its own limit is raised as far as it may be."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return CONNECTIONS if soft == resource.RLIM_INFINITY else max(OTHER_FILES, min(CONNECTIONS, soft - OTHER_FILES))
