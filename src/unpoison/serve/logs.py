"""The logs of the service: JSON lines on standard error, the record of each request, and how often a line repeats."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from unpoison.report.rendering import plain

__all__ = ["JsonLines", "Record", "RefusalSampler", "Sampler", "log_bug", "log_to_stderr"]

EVERY = 60.0
"""Seconds between two lines about one thing that goes wrong with every request."""

LINES = 10
"""Lines of the log for each kind of refusal and second."""

log = logging.getLogger("unpoison.service")

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


class RefusalSampler:
    """Which refusals are worth a line of the log: the first few of each kind and second.

    Args:
        clock: Seconds, rising.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._second = 0
        self._counts: dict[str, int] = {}
        self._unlogged = 0

    def worth(self, refused: str | None) -> dict[str, int] | None:
        """None for no line; else what to add to it: how many were left out since the last, where any were."""
        if refused is not None:
            second = int(self._clock())
            if second != self._second:
                self._second, self._counts = second, {}
            self._counts[refused] = count = self._counts.get(refused, 0) + 1
            if count > LINES:
                self._unlogged += 1
                return None
        left, self._unlogged = self._unlogged, 0
        return {"unlogged": left} if left else {}


@dataclass(slots=True)
class Record:
    """One line of the access log, without texts.

    Attributes:
        id: The request's, from its X-Request-Id header where that is a plain word.
        route: The route's pattern.
        key: The name of the key that was shown.
        trace: The trace's, where traces are recorded.
        defense, k, dropped: What was screened, None where nothing was.
        calls: Calls of language models.
        error: The kind of the failure, None for none.
        refused: Why it was refused, None where it did.
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
    refused: str | None = None
    ms: float = 0.0
    client: str | None = None

    def fields(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in LOGGED}
        return {name: value for name, value in values.items() if value is not None}


LOGGED = tuple(one.name for one in fields(Record) if one.name != "refused")
"""What a line holds; the error says as much as why it was refused."""


def log_to_stderr(level: str, *names: str) -> None:
    """Send the loggers of these names to standard error, from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())


def log_bug(error: Exception, record: Record) -> None:
    """Where it happened, without the error's own words: they may quote a passage."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    where = [f"{plain(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
    fields = {"id": record.id, "error": type(error).__name__, "where": where}
    log.error("internal error", extra={"fields": fields})
