"""Checks documents or a running system: suspicious documents, sources, and which attacks succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.utils.lazy import lazy_names

if TYPE_CHECKING:
    from unpoison.bench.check.check import CheckResult, Outcome, check_documents
    from unpoison.bench.check.live import check_system

__all__ = ["CheckResult", "Outcome", "check_documents", "check_system"]

__getattr__ = lazy_names(
    __name__,
    {"CheckResult": "check", "Outcome": "check", "check_documents": "check", "check_system": "live"},
)
