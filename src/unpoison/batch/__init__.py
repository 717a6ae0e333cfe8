"""Whole files, in processes of this machine or on Ray."""

from unpoison.batch.runner import Progress, run
from unpoison.batch.screener import BatchScreener

__all__ = ["BatchScreener", "Progress", "run"]
