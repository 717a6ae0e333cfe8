"""The policy that a check recommends: who is in the documents already is known, everybody else is new."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from unpoison.report.rendering import excerpt
from unpoison.sources.origins import is_shared
from unpoison.sources.policy import is_exact
from unpoison.sources.sources import Sources, Tally
from unpoison.types import Passage

__all__ = ["count_origins", "folder_names", "policy_text", "recommend_policy"]

ONE_SHARE = 0.8
"""An origin with a larger share of the documents tells nobody apart, where a finer rule does."""

GROUP = 2
"""Documents of an origin, on average, by a finer rule; else it names pages and no parties."""

MAX_KNOWN = 3000
"""Origins that are listed, the largest."""

MAX_NAMED = 10
"""Flagged documents that the file names."""


def folder_names(folder: Path) -> tuple[str, ...]:
    """How who loads a folder names the files in it: behind the path as it was typed, or behind the whole path."""
    full, typed = folder.resolve().as_posix(), folder.as_posix()
    return (full,) if folder.is_absolute() or typed.startswith(".") else (typed, full)


def recommend_policy(passages: Sequence[Passage], roots: Sequence[str] = ()) -> dict[str, Any]:
    """The keys of a policy for these documents, as YAML has them.

    Args:
        passages: The documents that are believed.
        roots: Names of the folder that they lie in; () where they lie in none.
    """
    keys: dict[str, Any] = {"origin": "domain" if roots else _choose_rule(passages)}
    if roots:
        known = [f"{root}/**" for root in roots if is_exact(root)]
    else:
        rows = count_origins(passages, keys).rows()
        known = [row.origin for row in rows if is_exact(row.origin) and not is_shared(row.origin)][:MAX_KNOWN]
    return keys | {"known": known} if known else keys


def count_origins(passages: Sequence[Passage], keys: Mapping[str, Any]) -> Tally:
    """Who is in the documents, by a policy's rule."""
    tally = Tally()
    tally.add(None, Sources(keys).standings("", passages))
    return tally


def _choose_rule(passages: Sequence[Passage]) -> str:
    """The coarsest rule by which no origin has nearly all documents; `domain` where none tells groups of them apart."""
    for rule in ("domain", "path:1", "path:2"):
        rows = count_origins(passages, {"origin": rule}).rows()
        grouped = rule == "domain" or len(rows) * GROUP <= len(passages)
        if not rows or not rows[0].origin or (rows[0].share < ONE_SHARE and grouped):
            return rule
    return "domain"


def policy_text(keys: Mapping[str, Any], source: str, flagged: Collection[str]) -> str:
    """A policy as a YAML file, with what its reader should decide."""
    import yaml

    lines = [
        f"# Sources of {excerpt(source, 100)}, as `unpoison check` found them: everybody else is new.",
        "# Move what anybody may write to `open`, and the few whose word decides to `trusted`.",
    ]
    if flagged:
        named = ", ".join(sorted(flagged)[:MAX_NAMED])
        lines.append(f"# The scan flagged {len(flagged):,}, look at these first: {excerpt(named, 400)}")
    return "\n".join(lines) + "\n" + yaml.safe_dump(dict(keys), sort_keys=False, allow_unicode=True, width=1000)
