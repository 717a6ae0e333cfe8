"""One wrong answer of a running system: the documents behind it are found by withholding, and taken out."""

from __future__ import annotations

from unpoison.bench.incident.investigation import investigate

__all__ = ["investigate"]
