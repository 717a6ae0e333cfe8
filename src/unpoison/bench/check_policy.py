"""The policy that a check recommends: who is in the documents already is known, everybody else is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unpoison.sources.sources import Sources, Tally
from unpoison.types import Passage

__all__ = ["recommend_policy"]

ONE_SHARE = 0.8
"""An origin with a larger share of the documents tells nobody apart, where a finer rule does."""

MAX_KNOWN = 200
"""Origins that are listed, the largest."""

MIN_DOCUMENTS = 2
"""An origin with fewer is not yet known."""


def recommend_policy(passages: Sequence[Passage], roots: Sequence[str] = ()) -> tuple[Sources, dict[str, Any]]:
    """A policy for these documents.

    Args:
        passages: The documents.
        roots: Names of the folder that they lie in; () where they lie in none.

    Returns:
        The sources under that policy, and its keys as YAML has them.
    """
    rule, tally = "domain", Tally()
    for rule in ("domain", "path:1", "path:2"):
        tally = _count(passages, rule)
        if roots or tally.rows()[0].share < ONE_SHARE or not tally.rows()[0].origin:
            break
    else:
        rule, tally = "domain", _count(passages, "domain")
    keys: dict[str, Any] = {"origin": rule}
    if roots:
        known = [f"{root}/**" for root in roots]
    else:
        rows = [row for row in tally.rows() if row.origin and row.passages >= MIN_DOCUMENTS and "open" not in row.levels]
        known = [row.origin for row in rows[:MAX_KNOWN]]
    if known:
        keys["known"] = known
    return Sources(keys), keys


def _count(passages: Sequence[Passage], rule: str) -> Tally:
    tally = Tally()
    tally.add(None, Sources({"origin": rule}).standings("", passages))
    return tally
