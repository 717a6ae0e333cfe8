"""Finds the documents behind a wrong answer of a running system by withholding them, and quarantines them."""

from __future__ import annotations

from unpoison.bench.incident.investigation import investigate

__all__ = ["investigate"]
