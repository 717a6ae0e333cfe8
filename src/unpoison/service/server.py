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
from unpoison.service.work import warm_up

__all__ = ["serve"]

IDLE_CONNECTIONS = 256
"""Connections beyond the requests at once, for clients that keep theirs open."""


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
        bounds: Those of the application: its timeout is the time to end in, and its number of requests bounds the
            connections.
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
        limit_concurrency=bounds.at_once + IDLE_CONNECTIONS,
        ws="none",
    )
