"""Test a running system: ask it, plant poison into it, ask again, take everything back, and say what was found.

from unpoison.bench.redteam import Config, Hosts, Secrets, run_test

results = run_test(Config.load("redteam.yaml"), Path("journal.jsonl"), secrets=Secrets(os.environ), hosts=Hosts())
"""

# ruff: noqa: E402  what is missing is said before it is imported
from __future__ import annotations

from unpoison.utils.extras import require

require("pydantic", "a red-team test")

from unpoison.bench.redteam.cleanup import Cleaned, clean
from unpoison.bench.redteam.config import Config
from unpoison.bench.redteam.factory import build_target
from unpoison.bench.redteam.http_client import Hosts
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
