"""Poison at rest: in an index (scan, ingest, quarantine), in a log (audit), behind an answer (trace).

The names below are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unpoison.at_rest.documents import Document
    from unpoison.at_rest.findings import Finding, Scan
    from unpoison.at_rest.ingest import Decision, Ingest, Ingested
    from unpoison.at_rest.scanning import scan
    from unpoison.types import Span

_HOMES = {
    "Decision": "ingest",
    "Document": "documents",
    "Finding": "findings",
    "Ingest": "ingest",
    "Ingested": "ingest",
    "Scan": "findings",
    "Span": "findings",
    "scan": "scanning",
}

__all__ = ["Decision", "Document", "Finding", "Ingest", "Ingested", "Scan", "Span", "scan"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'unpoison.at_rest' has no attribute {name!r}")
    return getattr(import_module(f"unpoison.at_rest.{_HOMES[name]}"), name)
