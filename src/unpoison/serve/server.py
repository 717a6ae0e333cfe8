"""The application under uvicorn, in one process or several, and connections that are bounded in number and in time.

Idle connections cannot block the service. The server closes connections that rest between two requests; the
class here closes those that never begin one, and those that begin one and do not come to the end of its head. When
there are as many connections as may be, the one that has been without a request for longest makes room: silence can
only displace silence, and `/healthz` is always answered.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import stat
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, cast

import httptools
import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from unpoison.errors import InputError, ModelError, StoreError, UnpoisonError
from unpoison.serve.bounds import Bounds
from unpoison.serve.logs import log_to_stderr
from unpoison.serve.replies import failure_reply
from unpoison.serve.work import warm_up

__all__ = ["KEEP_ALIVE", "Draining", "ServerConnection", "address", "listen", "serve"]

KEEP_ALIVE = 75
"""Seconds between two requests of a connection: longer than the 60 s that proxies keep theirs, so that they end it."""

HEAD = 10.0
"""Seconds from a connection's opening, or from a request's first byte, to the end of its head."""

HEAD_BYTES = 64 * 1024
"""Bytes of one head."""

MAX_HELD = 64 * 1024
"""Bytes of a reply that wait for more of it: beyond that the transport has to say whether the client keeps up."""

CONNECTIONS = 8192
"""Connections at most, where the system allows so many; each that rests costs about 10 KB."""

PER_ADDRESS = 1024
"""Connections of one address; those of a unix socket have none."""

OTHER_FILES = 128
"""Files and sockets that the process may need for anything else."""

LAST_REQUESTS = 0.2
"""Seconds after the socket stops accepting in which open connections may still send their request."""

BACKLOG = 2048
"""Connections that the system holds until they are accepted."""

UNIX = "unix:"
"""Prefix of a host that is the path of a unix socket."""

log = logging.getLogger("unpoison.service")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Args:
        host: An address or a name of this machine; or `unix:PATH`, for its owner and group alone (mode 660), where a
            socket that nobody listens on any more is replaced.
        port: 0 for a free one.

    Raises:
        InputError: It cannot be listened on; the message says why.
    """
    try:
        if host.startswith(UNIX):
            return _listen_unix(Path(host.removeprefix(UNIX)))
        family, _, _, _, endpoint = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(endpoint[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        other = "another path" if host.startswith(UNIX) else "another address or port, 0 for a free one"
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}; choose {other}") from None


def _listen_unix(path: Path) -> socket.socket:
    if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                raise OSError("something listens there already")
        path.unlink()
    before = os.umask(0o117)
    try:
        return socket.create_server(str(path), family=socket.AF_UNIX, backlog=BACKLOG)
    finally:
        os.umask(before)


def address(listening: socket.socket) -> str:
    """How to speak to it."""
    name = listening.getsockname()
    if isinstance(name, str):
        return f"{UNIX}{name}"
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"http://{host}:{name[1]}"


class Corked:
    """A transport that sends what is written to it in one turn of the loop as one: the head of a reply and its body.

    Each send gives way to the threads that compute, and each packet wakes the client.

    Args:
        transport: Sends it. For everything but writing and closing it speaks for itself.
        loop: Its loop.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held = bytearray()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send it with what else is written in this turn."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held += data
        if len(self._held) > MAX_HELD:
            self._flush()

    def close(self) -> None:
        """Close the transport behind what was written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, bytearray()
        if held and not self._transport.is_closing():
            self._transport.write(held)


class ServerConnection(HttpToolsProtocol):
    """One connection.

    Attributes:
        most: How many there may be in this process.
        waiting: Those whose request has not arrived whole, longest first.
        addresses: How many each address has.
    """

    most: ClassVar[int] = CONNECTIONS
    waiting: ClassVar[dict[ServerConnection, None]] = {}
    addresses: ClassVar[Counter[str]] = Counter()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timer: asyncio.TimerHandle | None = None
        self._in_head, self._head_size = False, 0
        self._peer = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, Corked(transport, self.loop)))
        self._peer = self.client[0] if self.client else ""
        self.addresses[self._peer] += 1
        if self._peer and self.addresses[self._peer] > PER_ADDRESS:
            transport.abort()
            return
        if len(self.connections) > self.most and self.waiting:
            longest = next(iter(self.waiting))
            del self.waiting[longest]
            longest.transport.abort()
        self.waiting[self] = None
        self._timer = self.loop.call_later(HEAD, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.waiting.pop(self, None)
        self.addresses[self._peer] -= 1
        if self.addresses[self._peer] <= 0:
            del self.addresses[self._peer]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.cycle is not before or (before is not None and not before.response_complete):
            self._stop_timer()  # a head has come to its end, or more of a body
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD, self.transport.abort)
        if self._in_head:
            self._head_size += len(data)
            if self._head_size > HEAD_BYTES:
                self.send_400_response("")

    def on_message_begin(self) -> None:
        self._in_head, self._head_size = True, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if not self.url.startswith((b"/", b"*")):  # an absolute form takes precedence over Host (RFC 9112, 3.2.2)
            target = httptools.parse_url(self.url)
            if target.host is not None:
                port = b"" if target.port is None else b":%d" % target.port
                self.headers[:] = [pair for pair in self.headers if pair[0] != b"host"]
                self.headers.append((b"host", target.host + port))
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            self.waiting[self] = None

    def send_400_response(self, msg: str) -> None:
        """Reply to invalid HTTP with an error in the service's usual format."""
        if self._head_size > HEAD_BYTES:
            msg = f"the request's head has more than {HEAD_BYTES:,} bytes; send fewer headers"
        content = failure_reply(400, "InvalidRequest", msg).body
        head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + content)
        self.transport.close()

    def _count_head(self, size: int) -> None:
        """Count a part of a head that came whole in one piece.

        Raises:
            ValueError: The head is too large; the parser then gives up, and the server replies with 400.
        """
        self._head_size += size
        if self._head_size > HEAD_BYTES:
            raise ValueError("the head is too large")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Draining(uvicorn.Server):
    """A server that shuts down in three steps, so that a load balancer never sends a request to a closed socket.

    SIGTERM: `/readyz` says no from then on and everything is still served, each reply closing its connection. After
    `drain` seconds nothing new is taken. Requests in work have `timeout_graceful_shutdown` seconds to end. SIGINT, and
    a second SIGTERM, leave the first step out.

    Args:
        config: As for `uvicorn.Server`; its `app` is a `_Maker`.
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
    """Those who have connected and wait to be accepted: with the last process that listens they would be reset."""
    with suppress(OSError):  # there are no more, or another process has closed it
        while True:
            taken, _ = listening.accept()
            taken.setblocking(False)
            yield taken


class _Maker:
    """Makes the application where it runs: in this process, or in each of several."""

    def __init__(self, make: Callable[[], FastAPI]) -> None:
        self.make = make
        self.app: FastAPI | None = None

    def __call__(self) -> FastAPI:
        """The application, its models loaded."""
        ServerConnection.most = _most_connections()
        self.app = app = self.make()
        try:
            warm_up(app.state.service.choices.values())
        except (ModelError, StoreError) as error:
            if app.state.service.on_poison != "monitor":
                raise
            fields = {"error": type(error).__name__}  # it passes everything on until then, and counts that
            log.warning("a model cannot be used yet; in monitor mode the service starts", extra={"fields": fields})
        gc.collect()
        gc.freeze()  # what is loaded stays: each look through all of it would stop every request for about 50 ms
        return app

    def stop(self) -> None:
        """`/readyz` says no from now on."""
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
        """What the process does."""
        log_to_stderr("info", "unpoison.service", "uvicorn")
        threading.Thread(target=_end_with_parent, daemon=True).start()
        try:
            super().target(sockets)
        except UnpoisonError as error:
            sys.stderr.write(f"error: {error}\n")
            sys.exit(STARTUP_FAILURE)


def _end_with_parent() -> None:
    """Stop this worker when its parent is gone, however that ended."""
    if (parent := parent_process()) is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


class _Supervisor(Multiprocess):
    """Starts the workers, starts those again that die, and stops them."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], bounds: Bounds) -> None:
        super().__init__(config, sockets)
        self.bounds = bounds
        self.failed = False

    def init_processes(self) -> None:
        for _ in range(self.processes_num):
            self.processes.append(self._start())

    def terminate_all(self) -> None:
        # A socket that only this process holds would take connections that nobody accepts, and reset them in the end.
        for listening in self.sockets:
            listening.close()
        self.failed = any(worker.exitcode == STARTUP_FAILURE for worker in self.processes)
        for worker in self.processes:
            with suppress(ProcessLookupError):
                worker.terminate()

    def join_all(self) -> None:
        end = time.monotonic() + self.bounds.drain + self.bounds.grace + PATIENCE
        while alive := [worker for worker in self.processes if worker.process.is_alive()]:
            if self.signal_queue:  # a second signal: nobody waits for the drain
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
            mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]  # its gauges; what it counted stays counted
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
"""Where prometheus_client keeps the counts of several processes."""


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
        backlog=1,  # connections that a process takes at once: the first to wake would take all that wait
        timeout_graceful_shutdown=int(bounds.grace) + 1,
        timeout_keep_alive=KEEP_ALIVE,
        http=ServerConnection,
        ws="none",
        loop="asyncio",  # uvloop takes all that wait
    )
    path = listening.getsockname()
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
        if isinstance(path, str) and path:
            Path(path).unlink(missing_ok=True)


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
