"""Test a running system: ask it, plant poison into it, ask again, take everything back, and say what was found.

from unpoison.bench.redteam import Config, Hosts, Secrets, run_test

results = run_test(Config.load("redteam.yaml"), Path("journal.jsonl"), secrets=Secrets(os.environ), hosts=Hosts())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unpoison.utils.extras import require
from unpoison.utils.lazy import lazy_names

if TYPE_CHECKING:
    from unpoison.bench.redteam.cleanup import Cleaned, clean
    from unpoison.bench.redteam.config import Config
    from unpoison.bench.redteam.factory import build_target
    from unpoison.bench.redteam.http_hosts import Hosts
    from unpoison.bench.redteam.objects import target_of
    from unpoison.bench.redteam.results import Results, schema
    from unpoison.bench.redteam.secrets import Secrets
    from unpoison.bench.redteam.session import run_test
    from unpoison.bench.redteam.targets import Answered, Document, Target

__all__ = [
    "Answered",
    "Cleaned",
    "Config",
    "Document",
    "Hosts",
    "Results",
    "Secrets",
    "Target",
    "build_target",
    "clean",
    "run_test",
    "schema",
    "target_of",
]

_public = lazy_names(
    __name__,
    {
        "Answered": "targets",
        "Cleaned": "cleanup",
        "Config": "config",
        "Document": "targets",
        "Hosts": "http_hosts",
        "Results": "results",
        "Secrets": "secrets",
        "Target": "targets",
        "build_target": "factory",
        "clean": "cleanup",
        "run_test": "session",
        "schema": "results",
        "target_of": "objects",
    },
)


def __getattr__(name: str) -> Any:
    """The names are imported when they are first used."""
    if name in __all__:
        require("pydantic", "a red-team test")
    return _public(name)
