"""The recommended policy: sources of the present documents are known, all others are new."""

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

MAX_SHARE = 0.8
"""An origin with a larger share of the documents does not tell sources apart, where a finer rule does."""
MIN_GROUP = 2
"""Documents of an origin, on average, by a finer rule; with fewer it names pages instead of sources."""
MAX_KNOWN = 3000
"""Origins that are listed, the largest."""


def folder_names(folder: Path) -> tuple[str, ...]:
    """Names of a folder that loaders use: the path as typed, and the absolute path."""
    full, typed = folder.resolve().as_posix(), folder.as_posix()
    return (full,) if folder.is_absolute() or typed.startswith(".") else (typed, full)


def recommend_policy(passages: Sequence[Passage], roots: Sequence[str] = ()) -> dict[str, Any]:
    """The keys of a policy for these documents, as YAML has them.

    Args:
        passages: The documents that are believed.
        roots: Names of the folder that they lie in; () where they lie in none.
    """
    if roots:
        known = [f"{root}/**" for root in roots if is_exact(root)]
        return {"origin": "domain"} | ({"known": known} if known else {})
    for rule in ("domain", "path:1", "path:2"):  # the coarsest by which no origin has nearly all documents
        rows = count_origins(passages, {"origin": rule}).rows()
        grouped = rule == "domain" or len(rows) * MIN_GROUP <= len(passages)
        if not rows or not rows[0].origin or (rows[0].share < MAX_SHARE and grouped):
            break
    else:
        rule, rows = "domain", count_origins(passages, {"origin": "domain"}).rows()
    known = [row.origin for row in rows if is_exact(row.origin) and not is_shared(row.origin)][:MAX_KNOWN]
    return {"origin": rule} | ({"known": known} if known else {})


def count_origins(passages: Sequence[Passage], keys: Mapping[str, Any]) -> Tally:
    """Count the sources of the documents by a policy's rule."""
    tally = Tally()
    tally.add(None, Sources(keys).standings("", passages))
    return tally


def policy_text(keys: Mapping[str, Any], source: str, flagged: Collection[str]) -> str:
    """A policy as a YAML file, with what its reader should decide."""
    import yaml

    lines = [
        f"# Sources of {excerpt(source, 100)}, as `unpoison check` found them: everybody else is new.",
        "# Move what anybody may write to `open`, and the few whose word decides to `trusted`.",
    ]
    if flagged:
        lines.append(f"# The scan flagged {len(flagged):,}, look at these first: {excerpt(', '.join(flagged), 400)}")
    return "\n".join(lines) + "\n" + yaml.safe_dump(dict(keys), sort_keys=False, allow_unicode=True, width=1000)
