"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("unpoison", deadline=None, derandomize=True)  # no timed assertions, same cases every run
settings.load_profile("unpoison")

os.environ.setdefault("UNPOISON_FENCE_KEY", "tests")  # no test writes a key into its user's home
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # it reports every pipeline to its makers otherwise

ROOT = Path(__file__).resolve().parent.parent


def data_folder() -> Path:
    return Path(os.environ.get("UNPOISON_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = data_folder()
    if not (folder / "nq_poisoned.jsonl").is_file():
        pytest.skip(f"SHARED DATA ABSENT: {folder} holds no evaluation data; set UNPOISON_DATA to run this test")
    return folder
