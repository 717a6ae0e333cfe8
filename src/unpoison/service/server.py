"""The application under uvicorn, with its log as JSON lines on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

import uvicorn
from fastapi import FastAPI

from unpoison.rendering import plain
from unpoison.service.bounds import Bounds
from unpoison.service.connections import KEEP_ALIVE, bounded
from unpoison.service.work import warm_up

__all__ = ["serve"]

CONNECTIONS = 8192
"""Connections at most, where the system allows so many; each that rests costs about 10 KB."""

OTHER_FILES = 128
"""Files and sockets that the process may need for anything else."""


class JsonLines(logging.Formatter):
    """One JSON object per line. Messages of others are made plain; our own hold fields, no texts."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = getattr(record, "fields", {})
        line = {"time": time, "level": record.levelname.lower(), "event": plain(record.getMessage()), **fields}
        return json.dumps(line, ensure_ascii=False, default=str)


def serve(app: FastAPI, *, host: str, port: int, bounds: Bounds, log_level: str = "info") -> None:
    """Serve until a signal says stop; then no new request is taken, and those in work have time to end.

    Args:
        app: What `create_app` made.
        host: The address to listen on.
        port: 0 for a free one; the log says which.
        bounds: Those of the application: its timeout is the time to end in.
        log_level: "debug", "info", "warning" or "error".

    Raises:
        UnpoisonError: A model cannot be used.
    """
    warm_up(app.state.desk.choices.values())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("unpoison.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(log_level.upper())
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(bounds.timeout) + 1,
        timeout_keep_alive=KEEP_ALIVE,
        http=bounded(_most_connections()),
        ws="none",
    )


def _most_connections() -> int:
    """As many as the system lets this process have; its own limit is raised as far as it may be."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return CONNECTIONS if soft == resource.RLIM_INFINITY else max(OTHER_FILES, min(CONNECTIONS, soft - OTHER_FILES))
