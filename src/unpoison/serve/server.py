"""The application under uvicorn, in one process or several, and its shutdown."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import wait
from types import FrameType
from typing import cast

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from unpoison.errors import InputError, ModelError, StoreError, UnpoisonError
from unpoison.serve.bounds import Bounds
from unpoison.serve.connections import KEEP_ALIVE, ServerConnection, max_connections
from unpoison.serve.logs import log_to_stderr
from unpoison.serve.work import warm_up

__all__ = ["Draining", "address", "listen", "serve"]

LAST_REQUESTS = 0.2
"""Seconds in which open connections may still send a request after the socket stops accepting."""

BACKLOG = 2048
"""Pending connections that the system queues."""

log = logging.getLogger("unpoison.service")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Args:
        host: An address or a name of this machine.
        port: 0 for a free one.

    Raises:
        InputError: The address cannot be used.
    """
    try:
        family, _, _, _, endpoint = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(endpoint[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"cannot listen on {host}:{port}: {reason}; choose another address or port, 0 for a free one"
        ) from None


def address(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    name = listening.getsockname()
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"http://{host}:{name[1]}"


class Draining(uvicorn.Server):
    """A server that shuts down in three steps, so that a load balancer never sends a request to a closed socket.

    On SIGTERM `/readyz` returns 503, requests are still served, and each reply closes its connection. After `drain`
    seconds no connection is accepted. Requests in flight have `timeout_graceful_shutdown` seconds to finish. SIGINT,
    and a second SIGTERM, skip the first step.

    Args:
        config: As for `uvicorn.Server`; its `app` is a `_Maker`.
        drain: Seconds of the first step.
        stopping: Called when it begins.
        clock: Monotonic seconds.
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)  # asyncio takes one number for how many wait and how many are taken at once
        if self.started and sockets:
            log.info("running on %s", address(sockets[0]))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept pending connections, stop listening in the same turn of the loop, and serve their requests."""
        waiting = [taken for listening in sockets or () for taken in _accept_all(listening)]
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for taken in waiting:
            await loop.connect_accepted_socket(self._connection, taken)
        await asyncio.sleep(LAST_REQUESTS)
        await super().shutdown(sockets)

    def _connection(self) -> ServerConnection:
        return ServerConnection(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def _accept_all(listening: socket.socket) -> Iterator[socket.socket]:
    """Accept the pending connections, which the system would reset when the last listener closes."""
    with suppress(OSError):  # none are left, or another process closed the socket
        while True:
            taken, _ = listening.accept()
            taken.setblocking(False)
            yield taken


class _Maker:
    """Makes the application in the process that serves it."""

    def __init__(self, make: Callable[[], FastAPI]) -> None:
        self.make = make
        self.app: FastAPI | None = None

    def __call__(self) -> FastAPI:
        """The application, its models loaded."""
        ServerConnection.most = max_connections()
        self.app = app = self.make()
        try:
            warm_up(app.state.service.choices.values())
        except (ModelError, StoreError) as error:
            if app.state.service.on_poison != "monitor":
                raise
            fields = {"error": type(error).__name__}  # it passes everything on until then, and counts that
            log.warning("a model cannot be used yet; in monitor mode the service starts", extra={"fields": fields})
        gc.collect()
        gc.freeze()  # each collection of the loaded modules would pause all requests for about 50 ms
        return app

    def stop(self) -> None:
        """Let `/readyz` return 503 from now on."""
        if self.app is not None:
            self.app.state.service.stopping = True


class _Worker(Process):
    """One of several processes."""

    drain = 0.0

    @property
    def server(self) -> uvicorn.Server:
        if self._server is None:
            self._server = Draining(self.config, drain=self.drain, stopping=cast(_Maker, self.config.app).stop)
        return self._server

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """The main function of the process."""
        log_to_stderr("info", "unpoison.service", "uvicorn")
        threading.Thread(target=_end_with_parent, daemon=True).start()
        try:
            super().target(sockets)
        except UnpoisonError as error:
            sys.stderr.write(f"error: {error}\n")
            sys.exit(STARTUP_FAILURE)


def _end_with_parent() -> None:
    """Stop this worker when its parent process ends."""
    if (parent := parent_process()) is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


class _Supervisor(Multiprocess):
    """Starts the workers, restarts those that die, and stops them."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], bounds: Bounds) -> None:
        super().__init__(config, sockets)
        self.bounds = bounds
        self.failed = False

    def init_processes(self) -> None:
        for _ in range(self.processes_num):
            self.processes.append(self._start())

    def terminate_all(self) -> None:
        # If only this process held the socket, it would queue connections that no worker accepts, and reset them.
        for listening in self.sockets:
            listening.close()
        self.failed = any(worker.exitcode == STARTUP_FAILURE for worker in self.processes)
        for worker in self.processes:
            with suppress(ProcessLookupError):
                worker.terminate()

    def join_all(self) -> None:
        end = time.monotonic() + self.bounds.drain + self.bounds.grace + PATIENCE
        while alive := [worker for worker in self.processes if worker.process.is_alive()]:
            if self.signal_queue:  # a second signal skips the drain
                self.signal_queue.clear()
                for worker in alive:
                    os.kill(cast(int, worker.pid), signal.SIGTERM)
            if time.monotonic() > end:
                for worker in alive:
                    worker.process.kill()
            time.sleep(0.1)

    def keep_subprocess_alive(self) -> None:
        from prometheus_client.multiprocess import mark_process_dead

        for i, worker in enumerate(self.processes):
            if worker.process.is_alive() or self.should_exit.is_set():
                continue
            mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]  # its gauges; its counters stay
            if worker.exitcode == STARTUP_FAILURE:
                self.should_exit.set()
                return
            log.error("a worker died; another is started", extra={"fields": {"pid": worker.pid}})
            self.processes[i] = self._start()

    def _start(self) -> _Worker:
        worker = _Worker(self.config, self.sockets)
        worker.drain = self.bounds.drain
        worker.start()
        return worker


PATIENCE = 5.0
"""Seconds beyond drain and grace after which a worker is killed."""

COUNTS = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the folder in which prometheus_client shares counts between processes."""


def serve(make: Callable[[], FastAPI], listening: socket.socket, *, bounds: Bounds, workers: int = 1) -> int:
    """Serve until a signal says stop; see `Draining`. The socket is closed then.

    Args:
        make: Makes the application; of several processes each calls it, so that it must be picklable.
        listening: What `listen` opened; the log says where.
        bounds: Those of the application.
        workers: Processes.

    Returns:
        The exit status: 0 after a signal, 2 where a worker could not start.

    Raises:
        UnpoisonError: A model cannot be used; in monitor mode one that is down now may be there later.
    """
    log_to_stderr("info", "unpoison.service", "uvicorn")
    maker = _Maker(make)
    config = uvicorn.Config(
        maker,
        factory=True,
        workers=workers,
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=1,  # connections accepted per wake-up: the first process to wake would take them all
        timeout_graceful_shutdown=int(bounds.grace) + 1,
        timeout_keep_alive=KEEP_ALIVE,
        http=ServerConnection,
        ws="none",
        loop="asyncio",  # uvloop accepts all pending connections
    )
    try:
        if workers == 1:
            Draining(config, drain=bounds.drain, stopping=maker.stop).run([listening])
            return 0
        with tempfile.TemporaryDirectory(prefix="unpoison-counts-") as counts:
            os.environ[COUNTS] = counts
            supervisor = _Supervisor(config, [listening], bounds)
            supervisor.run()
            return 2 if supervisor.failed else 0
    finally:
        listening.close()
