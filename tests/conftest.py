"""Fixtures that every test may use."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("unpoison", deadline=None, derandomize=True)  # no timed assertions, same cases every run
settings.load_profile("unpoison")

os.environ.setdefault("UNPOISON_FENCE_KEY", "tests")  # no test writes a key into its user's home
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # it reports every pipeline to its makers otherwise

ROOT = Path(__file__).resolve().parent.parent

LIBRARIES = {
    "agents/test_langchain_tools.py": "langgraph",
    "agents/test_typed_tools.py": "pydantic_ai",
    "bench/report/test_hostile_markdown.py": "pymdownx",
    "integrations/test_haystack_adapter.py": "haystack",
    "integrations/test_langchain_adapter.py": "langchain_classic",
    "integrations/test_llamaindex_adapter.py": "llama_index",
    "text/test_prompt_injection_golden.py": "sklearn",
}
"""Files of tests that import a library at their top: left out where it is not installed, and named."""

ABSENT = {file: library for file, library in LIBRARIES.items() if find_spec(library) is None}
collect_ignore = list(ABSENT)


def pytest_report_header() -> list[str]:
    """What is left out, loudly."""
    return [f"LEFT OUT: tests/{file}, for {library} is not installed" for file, library in ABSENT.items()]


def data_folder() -> Path:
    return Path(os.environ.get("UNPOISON_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = data_folder()
    if not (folder / "nq_poisoned.jsonl").is_file():
        pytest.skip(f"SHARED DATA ABSENT: {folder} holds no evaluation data; set UNPOISON_DATA to run this test")
    return folder
