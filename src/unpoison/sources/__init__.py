"""Sources: the party behind a passage, its level in a policy, and its history.

The names below are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.utils.extras import lazy_names

if TYPE_CHECKING:
    from unpoison.sources.history import History, Past
    from unpoison.sources.origins import origin_of
    from unpoison.sources.policy import Policy
    from unpoison.sources.sources import Sources, Standing
    from unpoison.sources.trust import Reliability

_HOMES = {
    "history": "History Past",
    "origins": "origin_of",
    "policy": "Policy",
    "sources": "Sources Standing",
    "trust": "Reliability",
}

__all__ = ["History", "Past", "Policy", "Reliability", "Sources", "Standing", "origin_of"]


__getattr__ = lazy_names(__name__, _HOMES)
