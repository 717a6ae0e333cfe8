"""Poison at rest: in an index (scan, quarantine), in a log (audit), behind an answer (incident).

The names below are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.utils.extras import lazy_names

if TYPE_CHECKING:
    from unpoison.core.verdicts import Span
    from unpoison.scan.documents import Document
    from unpoison.scan.findings import Finding, Scan
    from unpoison.scan.scanner import scan

_HOMES = {"documents": "Document", "findings": "Finding Scan Span", "scanner": "scan"}

__all__ = ["Document", "Finding", "Scan", "Span", "scan"]


__getattr__ = lazy_names(__name__, _HOMES)
