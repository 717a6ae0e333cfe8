"""Test a running RAG system: ask, plant poison, ask again, remove everything, and report the results.

results = run_test(Config.load("redteam.yaml"), Path("journal.jsonl"), hosts=Hosts())
"""

from __future__ import annotations

from unpoison.utils.extras import require

require("pydantic", "a red-team test")
