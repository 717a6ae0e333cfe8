"""The application under uvicorn, in one process or several, with connections bounded in number and in time.

Idle connections cannot block the service. Uvicorn closes connections that rest between two requests; `ServerConnection`
closes those that never begin a request and those that do not finish a request's head. At the limit, the connection that
has been idle for longest is closed for a new one, so `/healthz` is always answered. h11 bounds the size of a head.
Unread replies take a bounded amount of memory. Of long bodies, and of requests that clients send ahead of a reply
(pipelining), one piece is read in each turn of the loop, of all connections together. When the service stops, each open
connection gets one more reply, which says `Connection: close`, so that no request is lost.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from threading import Event, Thread
from types import FrameType
from typing import Any, ClassVar

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.flow_control import CLOSE_HEADER, FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from unpoison.errors import InputError, ModelError, StoreError, UnpoisonError
from unpoison.serve.bounds import Bounds
from unpoison.serve.telemetry import log_to_stderr
from unpoison.serve.work import warm_up

__all__ = ["HEAD", "KEEP_ALIVE", "ServerConnection", "address", "listen", "serve"]

KEEP_ALIVE = 75
"""Keep-alive timeout in seconds: longer than the usual 60 s of proxies, so that the proxy closes the connection."""

HEAD = 10.0
"""Seconds from a connection's opening, or from a request's first byte, to the end of its head."""

CONNECTIONS = 8192
"""Maximum number of connections, if the system allows it; an idle one takes about 10 KB."""

OTHER_FILES = 128
"""File descriptors reserved for other purposes."""

UNREAD, UNREAD_TIME = 64 * 2**20, 60.0
"""Maximum bytes of unread replies of all connections, and seconds in which a client must read one."""

MIN_CHUNKS, CHUNK_BYTES = 1024, 256
"""Maximum chunks of a body, plus one for this many bytes: a chunk takes as long to process as a kilobyte."""

DRAIN = 2.0
"""Seconds that an idle connection may take to send one more request when the service stops."""


class _Parser(h11.Connection):
    """Also refuses requests that proxies may parse differently, and bodies in tiny chunks."""

    _chunks = _bytes = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
            if {b"transfer-encoding", b"content-length"} <= {name for name, _ in event.headers}:
                raise h11.RemoteProtocolError("the request says twice how long its body is")
            if event.http_version not in (b"1.0", b"1.1"):
                raise h11.RemoteProtocolError("the version of HTTP is unknown")
        elif isinstance(event, h11.Data):
            self._chunks, self._bytes = self._chunks + event.chunk_start, self._bytes + len(event.data)
            if self._chunks > MIN_CHUNKS + self._bytes // CHUNK_BYTES:
                raise h11.RemoteProtocolError("the body comes in too many chunks")
        return event


class ServerConnection(H11Protocol):
    """One connection.

    Attributes:
        most: Maximum number in this process.
        waiting: Connections without a complete request, oldest first.
        unread: Bytes of replies that are not read yet, oldest first.
        turns: Connections with more to read: the rest of a long body, or a request that arrived before the last reply
            was sent; longest waiting first.
        draining: Whether the process stops.
    """

    most: ClassVar[int] = CONNECTIONS
    waiting: ClassVar[OrderedDict[ServerConnection, None]] = OrderedDict()
    unread: ClassVar[OrderedDict[ServerConnection, int]] = OrderedDict()
    turns: ClassVar[OrderedDict[ServerConnection, None]] = OrderedDict()
    draining: ClassVar[bool] = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn = _Parser(h11.SERVER)
        self._timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow.resume_reading = self._wait_for_turn  # type: ignore[method-assign]
        transport.set_write_buffer_limits(0)  # `pause_writing` is called for every byte that is not read
        if len(self.connections) > self.most and self.waiting:
            self.waiting.popitem(last=False)[0].transport.abort()
        self._wait_for_head()
        if self.draining:
            self.shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_unread()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if (self.conn.their_state, self.conn.our_state) == (h11.SEND_BODY, h11.DONE):
            self.flow.pause_reading()  # of a body that nobody reads
            self.flow.resume_reading()
        if self.conn.their_state is h11.IDLE and self._timer is None and not self.transport.is_closing():
            self._wait_for_head()

    def handle_events(self) -> None:
        if self in self.turns:
            self.flow.pause_reading()
            return
        super().handle_events()
        self._say_last()
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()

    def _wait_for_turn(self) -> None:
        if self.flow.read_paused and self not in self.turns:
            self.turns[self] = None
            if len(self.turns) == 1:
                self.loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Let the connection that has waited longest read on."""
        connection, _ = self.turns.popitem(last=False)
        if self.turns:
            self.loop.call_soon(self._take_turn)
        if not connection.transport.is_closing():
            FlowControl.resume_reading(connection.flow)
            connection.handle_events()

    def on_response_complete(self) -> None:
        if self.conn.trailing_data[0]:
            self.flow.pause_reading()  # and so waits for its turn
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.waiting[self] = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread[self] = self.transport.get_write_buffer_size()
        if self._read_timer is None:
            self._read_timer = self.loop.call_later(UNREAD_TIME, self.transport.abort)
        while sum(self.unread.values()) > UNREAD:
            self.unread.popitem(last=False)[0].transport.abort()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_unread()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # the reply has begun
            self.transport.abort()

    def shutdown(self) -> None:
        type(self).draining = True
        self.loop.call_later(DRAIN, self._end_if_idle)
        self._say_last()

    def _say_last(self) -> None:
        """When the process stops, let the reply to the current request say that it is the connection's last."""
        if not self.draining or self.cycle is None or self.cycle.response_complete:
            return
        if self.cycle.response_started:
            self.cycle.keep_alive = False
        elif CLOSE_HEADER not in self.cycle.scope["headers"]:
            self.headers.append(CLOSE_HEADER)  # of the request; uvicorn copies it into the reply

    def _end_if_idle(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def _stop_unread(self) -> None:
        self.unread.pop(self, None)
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _wait_for_head(self) -> None:
        self.waiting[self] = None
        self._timer = self.loop.call_later(HEAD, self.transport.abort)

    def _stop_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def max_connections() -> int:
    """The maximum number of connections; raises the process's limit of open files as far as the system allows."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = CONNECTIONS + OTHER_FILES if hard == resource.RLIM_INFINITY else min(hard, CONNECTIONS + OTHER_FILES)
    if 0 <= soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return max(OTHER_FILES, min(CONNECTIONS, hard - OTHER_FILES))


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
        listening = socket.create_server(endpoint[:2], family=family, backlog=BACKLOG)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or the body waits for the head's receipt
        return listening
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot listen on {host}:{port}: {reason}; choose another address, or port 0") from None


def address(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    name = listening.getsockname()
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"http://{host}:{name[1]}"


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the application in the process that serves it, with its models loaded."""

    make: Callable[[], FastAPI]

    def __call__(self) -> FastAPI:
        ServerConnection.most = max_connections()
        sys.setswitchinterval(0.0005)  # the loop waits for a thread that computes at each read of a socket
        app = self.make()
        try:
            warm_up(app.state.service.choices.values())
        except (ModelError, StoreError) as error:
            if app.state.service.on_poison != "monitor":
                raise
            fields = {"error": type(error).__name__}  # until then requests pass unscreened, and are counted
            log.warning("a model cannot be used yet; in monitor mode the service starts", extra={"fields": fields})
        gc.collect()
        gc.freeze()  # each collection of the loaded modules would pause all requests for about 50 ms
        return app


class _Server(uvicorn.Server):
    """Uvicorn's server, which ends after SIGTERM with exit status 0."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGTERM:  # uvicorn would raise it again at the end
            self.should_exit = True
        else:
            super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)  # asyncio has one number for the queue length and for accepts at a time
            log.info("running on %s", address(listening))


def _work(config: uvicorn.Config, listening: socket.socket) -> None:
    """The main function of one of several processes."""
    log_to_stderr("info", "unpoison.service", "uvicorn")
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        _Server(config).run([listening])
    except KeyboardInterrupt:
        return
    except UnpoisonError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(STARTUP_FAILURE)


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def _supervise(config: uvicorn.Config, listening: socket.socket, workers: int) -> int:
    """Start the workers, restart those that die, and stop them; the exit status."""
    from prometheus_client.multiprocess import mark_process_dead

    def start() -> BaseProcess:
        process = get_context("spawn").Process(target=_work, args=(config, listening))
        process.start()
        return process

    stop, status = Event(), 0
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    processes = [start() for _ in range(workers)]
    while not stop.wait(0.2):
        for i, process in enumerate(processes):
            if process.exitcode == STARTUP_FAILURE:
                status = 2
                stop.set()
            elif process.exitcode is not None:
                log.error("a worker died; another is started", extra={"fields": {"pid": process.pid}})
                mark_process_dead(process.pid)  # type: ignore[no-untyped-call]  # its gauges; its counters stay
                processes[i] = start()
    listening.close()  # if only this process held it, connections would be queued that no worker accepts
    for process in processes:
        process.terminate()
    for process in processes:
        process.join((config.timeout_graceful_shutdown or 0) + PATIENCE)
        process.kill()
    return status


PATIENCE = 5.0
"""Seconds beyond the limit `grace` after which a worker is killed."""

COUNTS = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the folder in which prometheus_client shares counts between processes."""


def serve(make: Callable[[], FastAPI], listening: socket.socket, *, bounds: Bounds, workers: int = 1) -> int:
    """Serve until a stop signal; running requests then have `bounds.grace` seconds. The socket is closed.

    Args:
        make: Creates the application. Each process calls it, so it must be picklable.
        listening: The socket from `listen`; its address is logged.
        bounds: Those of the application.
        workers: Processes.

    Returns:
        The exit status: 0 after a signal, 2 if a worker could not start.

    Raises:
        UnpoisonError: A model cannot be used; not in monitor mode, in which it may become available later.
    """
    log_to_stderr("info", "unpoison.service", "uvicorn")
    config = uvicorn.Config(
        _Maker(make),
        factory=True,
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=64 if workers == 1 else 1,  # accepted in one turn: of several the first to wake would take them all
        timeout_graceful_shutdown=int(bounds.grace) + 1,
        timeout_keep_alive=KEEP_ALIVE,
        http=ServerConnection,
        ws="none",
        loop="asyncio",  # uvloop accepts all pending connections
    )
    try:
        if workers == 1:
            _Server(config).run([listening])
            return 0
        with tempfile.TemporaryDirectory(prefix="unpoison-counts-") as counts:
            os.environ[COUNTS] = counts
            return _supervise(config, listening, workers)
    finally:
        listening.close()
