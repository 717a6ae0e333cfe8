"""Metrics for Prometheus, and logs as JSON lines on standard error: counts, times and names, no texts."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from platform import python_version
from typing import Any

import prometheus_client as prometheus
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from unpoison import __version__
from unpoison.core.answers import Call
from unpoison.core.screenings import Screening
from unpoison.utils.plain_text import plain

__all__ = ["CONTENT_TYPE_LATEST", "LogRecord", "Metrics", "log_bug", "log_to_stderr"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
"""Buckets of the histogram, from a screening with given embeddings to an answer with many model calls."""


class Metrics:
    """Counters of one application, in a separate registry."""

    def __init__(self) -> None:
        self.registry = registry = prometheus.CollectorRegistry()

        def counter(name: str, help: str, *labels: str) -> prometheus.Counter:
            return prometheus.Counter(f"unpoison_{name}", help, labels, registry=registry)

        build = prometheus.Gauge(
            "unpoison_build_info", "1; the labels say what runs.", ("version", "python"), registry=registry,
            multiprocess_mode="max",
        )  # fmt: skip
        build.labels(__version__, python_version()).set(1)
        self.seconds = prometheus.Histogram(
            "unpoison_request_seconds", "Time to reply.", ("route",), buckets=SECONDS, registry=registry
        )
        self.in_flight = prometheus.Gauge(
            "unpoison_in_flight", "Requests that are worked on.", registry=registry, multiprocess_mode="livesum"
        )
        self.requests = counter("requests", "Requests.", "route", "status")
        self.rejected = counter("rejected", "Requests that were refused.", "reason")
        self.unscreened = counter("unscreened", "Requests passed through unscreened, in monitor mode.", "reason")
        self.unaudited = counter("unaudited", "Requests that are missing in the audit log.", "reason")
        self.passages = counter("passages", "Passages.", "defense", "verdict")
        self.attacked = counter("screenings", "Screenings, by whether they dropped anything.", "defense", "dropped")
        self.calls = counter("model_calls", "Calls of models.", "kind", "model")
        self.tokens = counter("model_tokens", "Tokens of models.", "model", "direction")
        self.keyed = counter("key_requests", "Requests by key.", "key", "status")
        self.several = "PROMETHEUS_MULTIPROC_DIR" in os.environ
        if not self.several:
            prometheus.ProcessCollector(registry=registry)

    def count_reply(self, route: str, status: int, seconds: float, key: str | None = None) -> None:
        if key is not None:
            self.keyed.labels(key, str(status)).inc()
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def count_screening(self, defense: str, screening: Screening, calls: Iterable[Call]) -> None:
        dropped = len(screening.dropped_indices)
        self.passages.labels(defense, "kept").inc(len(screening.passages) - dropped)
        self.passages.labels(defense, "dropped").inc(dropped)
        self.attacked.labels(defense, "yes" if dropped else "no").inc()
        self.count_calls(calls)

    def count_calls(self, calls: Iterable[Call]) -> None:
        for call in calls:
            self.calls.labels(call.kind, call.model).inc()
            self.tokens.labels(call.model, "prompt").inc(call.prompt_tokens or 0)
            self.tokens.labels(call.model, "completion").inc(call.completion_tokens or 0)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus, summed over the worker processes."""
        if not self.several:
            return prometheus.generate_latest(self.registry)
        registry = prometheus.CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return prometheus.generate_latest(registry)


log = logging.getLogger("unpoison.service")


class JsonLines(logging.Formatter):
    """One JSON object per line. Messages are reduced to plain text; our own have fields without texts."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = getattr(record, "fields", {})
        line = {"time": time, "level": record.levelname.lower(), "event": plain(record.getMessage()), **fields}
        return json.dumps(line, ensure_ascii=False, default=str)


@dataclass(slots=True)
class LogRecord:
    """One line of the access log, without texts.

    Attributes:
        id: The request's id, from its X-Request-Id header if that is a plain word.
        route: The route's pattern.
        key: The name of the request's API key.
        trace: The trace's id, if traces are recorded.
        defense, k, dropped: Of the screening; None without one.
        calls: Calls of language models.
        error: The kind of the failure, None for none.
        unscreened: Why documents were passed through unscreened in monitor mode; None if they were not.
        ms: Milliseconds until the reply.
        client: The address of the client, or of the proxy in front.
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
        return {name: value for name, value in asdict(self).items() if value is not None}


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
