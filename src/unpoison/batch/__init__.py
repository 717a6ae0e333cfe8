"""Whole files of rows: one picklable function from rows to rows, on processes of this machine or on Ray."""

from unpoison.batch.runner import Progress, run
from unpoison.batch.screener import Screener

__all__ = ["Progress", "Screener", "run"]
