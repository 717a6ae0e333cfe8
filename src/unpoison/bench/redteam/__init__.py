"""Test a running RAG system: ask, plant poison, ask again, remove everything, and report the results.

from unpoison.bench.redteam import Config, Hosts, run_test

results = run_test(Config.load("redteam.yaml"), Path("journal.jsonl"), hosts=Hosts())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unpoison.utils.extras import require
from unpoison.utils.lazy import lazy_names

if TYPE_CHECKING:
    from unpoison.bench.redteam.campaign import run_test
    from unpoison.bench.redteam.cleanup import Cleaned, clean
    from unpoison.bench.redteam.config import Config, build_target
    from unpoison.bench.redteam.http_client import Hosts
    from unpoison.bench.redteam.results import Results
    from unpoison.bench.redteam.targets import RedteamTarget, TargetDocument, TargetReply

__all__ = [
    "Cleaned",
    "Config",
    "Hosts",
    "RedteamTarget",
    "Results",
    "TargetDocument",
    "TargetReply",
    "build_target",
    "clean",
    "run_test",
]

_public = lazy_names(
    __name__,
    {
        "TargetReply": "targets",
        "Cleaned": "cleanup",
        "Config": "config",
        "TargetDocument": "targets",
        "Hosts": "http_client",
        "Results": "results",
        "RedteamTarget": "targets",
        "build_target": "config",
        "clean": "cleanup",
        "run_test": "campaign",
    },
)


def __getattr__(name: str) -> Any:
    """The names are imported when they are first used."""
    if name in __all__:
        require("pydantic", "a red-team test")
    return _public(name)
