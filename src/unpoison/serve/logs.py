"""The logs of the service: JSON lines on standard error and the record of each request."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from unpoison.report.rendering import plain

__all__ = ["JsonLines", "LogRecord", "log_bug", "log_to_stderr"]

log = logging.getLogger("unpoison.service")

_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


class JsonLines(logging.Formatter):
    """One JSON object per line. Messages of others are made plain; our own hold fields, no texts."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = getattr(record, "fields", {})
        line = {"time": time, "level": record.levelname.lower(), "event": plain(record.getMessage()), **fields}
        return _ENCODER.encode(line)


@dataclass(slots=True)
class LogRecord:
    """One line of the access log, without texts.

    Attributes:
        id: The request's, from its X-Request-Id header where that is a plain word.
        route: The route's pattern.
        key: The name of the key that was shown.
        trace: The trace's, where traces are recorded.
        defense, k, dropped: Of the screening, None if there was none.
        calls: Calls of language models.
        error: The kind of the failure, None for none.
        unscreened: Why documents were passed through unscreened in monitor mode, None where they were not.
        ms: Milliseconds to reply.
        client: The address that the request came from: the proxy's where there is one in front.
    """

    id: str
    method: str
    route: str = "other"
    key: str | None = None
    trace: str | None = None
    status: int = 500
    defense: str | None = None
    k: int | None = None
    dropped: int | None = None
    calls: int | None = None
    error: str | None = None
    unscreened: str | None = None
    ms: float = 0.0
    client: str | None = None

    def fields(self) -> dict[str, Any]:
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def log_to_stderr(level: str, *names: str) -> None:
    """Send the loggers of these names to standard error, from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())


def log_bug(error: Exception, record: LogRecord) -> None:
    """Log the place of an error without its message, which may quote a passage."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    where = [f"{plain(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
    fields = {"id": record.id, "error": type(error).__name__, "where": where}
    log.error("internal error", extra={"fields": fields})
