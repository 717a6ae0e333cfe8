"""The log of the service: JSON lines on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from unpoison.rendering import plain

__all__ = ["JsonLines", "logged"]


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


class JsonLines(logging.Formatter):
    """One JSON object per line. Messages of others are made plain; our own hold fields, no texts."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = getattr(record, "fields", {})
        line = {"time": time, "level": record.levelname.lower(), "event": plain(record.getMessage()), **fields}
        return _ENCODER.encode(line)


def logged(level: str, *names: str) -> None:
    """Send the loggers of these names to standard error, from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
