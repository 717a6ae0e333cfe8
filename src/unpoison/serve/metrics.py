"""Prometheus metrics of `/metrics`: counts and times, no texts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from platform import python_version

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from unpoison import __version__
from unpoison.types import Call, Screening

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
"""Buckets of the histogram: from a screening with given embeddings to an answer of many model calls."""


class Metrics:
    """Counters of one application, in a separate registry."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        build = Gauge(
            "unpoison_build_info", "1; the labels say what runs.", ("version", "python"), registry=registry,
            multiprocess_mode="max",
        )  # fmt: skip
        build.labels(__version__, python_version()).set(1)
        self.requests = Counter("unpoison_requests", "Requests.", ("route", "status"), registry=registry)
        self.seconds = Histogram(
            "unpoison_request_seconds", "Time to reply.", ("route",), buckets=SECONDS, registry=registry
        )
        self.in_flight = Gauge(
            "unpoison_in_flight", "Requests that are worked on.", registry=registry, multiprocess_mode="livesum"
        )
        self.rejected = Counter("unpoison_rejected", "Requests that were refused.", ("reason",), registry=registry)
        self.unscreened = Counter(
            "unpoison_unscreened", "Requests passed through unscreened, in monitor mode.", ("reason",),
            registry=registry,
        )  # fmt: skip
        self.unaudited = Counter(
            "unpoison_unaudited", "Requests that are missing in the audit log.", ("reason",), registry=registry
        )
        self.passages = Counter("unpoison_passages", "Passages.", ("defense", "verdict"), registry=registry)
        self.attacked = Counter(
            "unpoison_screenings", "Screenings, by whether they dropped anything.", ("defense", "dropped"),
            registry=registry,
        )  # fmt: skip
        self.calls = Counter("unpoison_model_calls", "Calls of models.", ("kind", "model"), registry=registry)
        self.tokens = Counter("unpoison_model_tokens", "Tokens of models.", ("model", "direction"), registry=registry)
        self.keyed = Counter("unpoison_key_requests", "Requests by key.", ("key", "status"), registry=registry)
        self.several = "PROMETHEUS_MULTIPROC_DIR" in os.environ
        if not self.several:
            ProcessCollector(registry=registry)

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
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
