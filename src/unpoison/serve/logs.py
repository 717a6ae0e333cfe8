"""The log of the service: JSON lines on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from time import monotonic

from unpoison.report.rendering import plain

__all__ = ["JsonLines", "Sampler", "log_to_stderr"]

EVERY = 60.0
"""Seconds between two lines about one thing that goes wrong with every request."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


class JsonLines(logging.Formatter):
    """One JSON object per line. Messages of others are made plain; our own hold fields, no texts."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = getattr(record, "fields", {})
        line = {"time": time, "level": record.levelname.lower(), "event": plain(record.getMessage()), **fields}
        return _ENCODER.encode(line)


class Sampler:
    """Bounds the lines about one thing that goes wrong: the first at once, then one in `EVERY` seconds."""

    def __init__(self) -> None:
        self._next = 0.0
        self._count = 0

    def count_failure(self) -> int:
        """How often it went wrong since the last line, this time included; 0 where nothing is to be said now."""
        self._count += 1
        now = monotonic()
        if now < self._next:
            return 0
        self._next, count, self._count = now + EVERY, self._count, 0
        return count

    def count_recovery(self) -> int | None:
        """How often it went wrong since the last line, where it did go wrong before now; None otherwise."""
        if not self._next:
            return None
        count, self._next, self._count = self._count, 0.0, 0
        return count


def log_to_stderr(level: str, *names: str) -> None:
    """Send the loggers of these names to standard error, from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
