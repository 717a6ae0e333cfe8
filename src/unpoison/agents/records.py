"""What the proxy writes down: an audit log, one line for each result, and counts for Prometheus. No texts.

Sources are written as the party behind them, for an address may carry a key; results as keyed hashes.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from unpoison import __version__
from unpoison.agents.screening import ScreenedResult
from unpoison.errors import InputError
from unpoison.scan.audit_log import VERSION, AuditLog
from unpoison.sources.origins import origin_of
from unpoison.utils.extras import require
from unpoison.utils.fences import digest_text

__all__ = ["FileRecords", "Records"]

EVERY = 5.0
"""Seconds between two writings of the counts."""

_log = logging.getLogger("unpoison.agents")


class Records:
    """Writes nothing down."""

    def add_result(self, method: str, name: str, original: Any, screened: ScreenedResult, seconds: float) -> None:
        """A result, resource or prompt, and what became of it."""

    def add_tools(self, outcome: str, found: Iterable[tuple[str, str]]) -> None:
        """Tools that are withheld, or pointed out, by name and code."""

    def count(self, event: str) -> None:
        """Something that the proxy did beside: `refused_call`, `timed_out`, `dropped`, `server_failed` and so on."""

    def flush(self) -> None:
        """Write the counts, where it is time."""

    def close(self) -> None:
        """Write what is left."""


class FileRecords(Records):
    """Writes to files.

    Args:
        server: Its name in both.
        audit: The audit log, for `unpoison audit`.
        metrics: A file in the text format of Prometheus, replaced in one step every few seconds, for the textfile
            collector of its node exporter.

    Raises:
        InputError: A file cannot be written.
    """

    def __init__(self, server: str, audit: Path | None = None, metrics: Path | None = None) -> None:
        self.server = server
        self._unwritten = 0
        self._due = 0.0
        self._flushing = Lock()
        try:
            self._audit = None if audit is None else AuditLog(audit)
            self._metrics = None if metrics is None else _Counters(server, metrics)
            self.flush()
        except OSError as error:
            raise InputError(f"{error.filename or metrics} cannot be written: {error.strerror or error}") from None

    def add_result(self, method: str, name: str, original: Any, screened: ScreenedResult, seconds: float) -> None:
        if self._metrics is not None:
            self._metrics.results.labels(self.server, screened.outcome).inc()
            self._metrics.seconds.labels(self.server).observe(seconds)
        if self._audit is not None:
            self._append(self._entry(method, name, screened.outcome, [_result_fields(original, screened)]))

    def add_tools(self, outcome: str, found: Iterable[tuple[str, str]]) -> None:
        rows = [{"id": name, "kept": outcome != "withheld", "code": code, "probability": 1.0} for name, code in found]
        if self._metrics is not None:
            for row in rows:
                self._metrics.tools.labels(self.server, outcome, str(row["code"])).inc()
        if self._audit is not None and rows:
            self._append(self._entry("tools/list", "tools/list", outcome, rows))

    def count(self, event: str) -> None:
        if self._metrics is not None:
            self._metrics.events.labels(self.server, event).inc()

    def flush(self) -> None:
        with self._flushing:
            if self._metrics is None or time.monotonic() < self._due:
                return
            self._due = time.monotonic() + EVERY
            self._metrics.write()

    def close(self) -> None:
        self._due = 0.0
        try:
            self.flush()
        except OSError as error:
            _log.warning("metrics not written: %s", type(error).__name__)
        if self._audit is not None:
            self._audit.close()

    def _entry(self, method: str, name: str, outcome: str, passages: list[dict[str, Any]]) -> dict[str, Any]:
        """A line that `unpoison audit` reads: the tool asked is the question, what it returned the passage."""
        return {
            "audit": VERSION,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "version": __version__,
            "defense": "mcp-proxy",
            "action": outcome,
            "request": {"server": self.server, "method": method, "tool": name},
            "query_hash": digest_text("query", f"{self.server} {name}"),
            "passages": passages,
        }

    def _append(self, fields: dict[str, Any]) -> None:
        assert self._audit is not None  # noqa: S101  whoever calls has looked
        try:
            self._audit.append(fields)
        except OSError as error:  # a full disk must not take the tools away; the operator is told
            self._unwritten += 1
            self.count("unaudited")
            if self._unwritten in (1, 100, 10_000):
                _log.warning("audit log not written, %s so far: %s", self._unwritten, type(error).__name__)


def _result_fields(original: Any, screened: ScreenedResult) -> dict[str, Any]:
    injected = [cut.probability for cut in screened.cuts if cut.reason.code != "tool.hidden"]
    worst = max(injected, default=float(screened.blocked))
    written = json.dumps(original, sort_keys=True, default=lambda _: None)
    fields = {
        "source": origin_of(screened.source) or None,
        "hash": digest_text("passage", written),
        "kept": not screened.changed,
        "score": round(worst, 6),
        "probability": round(worst, 6),
        "order": True if injected and screened.changed else None,
        "code": screened.reason.code,
        "cuts": len(screened.cuts) or None,
        "level": screened.level,
    }
    return {name: value for name, value in fields.items() if value is not None}


class _Counters:
    """Counts of one proxy, in a registry of their own."""

    def __init__(self, server: str, path: Path) -> None:
        prometheus = require("prometheus_client", "metrics", "mcp")
        self.path, self._write = path, prometheus.write_to_textfile
        self.registry = registry = prometheus.CollectorRegistry()
        self.results = prometheus.Counter(
            "unpoison_mcp_results", "Results, resources and prompts, by what became of them.", ("server", "outcome"),
            registry=registry,
        )  # fmt: skip
        self.seconds = prometheus.Histogram(
            "unpoison_mcp_screening_seconds", "Time to screen one.", ("server",), registry=registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
        )  # fmt: skip
        self.tools = prometheus.Counter(
            "unpoison_mcp_tools", "Tools with a finding, each time they are listed.", ("server", "outcome", "code"),
            registry=registry,
        )  # fmt: skip
        self.events = prometheus.Counter(
            "unpoison_mcp_events", "Calls refused, requests timed out, messages dropped.", ("server", "event"),
            registry=registry,
        )  # fmt: skip

    def write(self) -> None:
        self._write(str(self.path), self.registry)
