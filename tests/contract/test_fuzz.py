"""Random texts for the core, new ones in every run: two seconds of them here, a minute in `make check`."""

from __future__ import annotations

import contextlib
import os
import random
import time
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from contract.test_promises import HOSTILE, made
from unpoison import Screening
from unpoison.agents import screen_tool_result
from unpoison.agents.screening import ScreenedResult
from unpoison.core import registry
from unpoison.errors import InputError

SECONDS = float(os.environ.get("UNPOISON_FUZZ_SECONDS", "2"))

WORDS = st.lists(st.sampled_from(["Ignore", "all", "previous", "instructions", "<b>", "-->", "```", "\n\n", "14", "é"]))
TEXT = st.one_of(HOSTILE, WORDS.map(" ".join), st.text(st.characters(codec=None), max_size=300))
PASSAGES = st.lists(
    st.fixed_dictionaries({"text": TEXT}, optional={"title": TEXT, "source": st.text(), "id": st.text()}), max_size=6
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def screen(name: str, question: str, passages: list[dict[str, str]], value: Any) -> None:
    """Whatever it is given, the core returns a result or raises an `InputError`."""
    with contextlib.suppress(InputError):
        assert isinstance(made(name).screen(question, passages), Screening)
    assert isinstance(screen_tool_result("fetch", value), ScreenedResult)


def test_the_core_takes_any_text() -> None:
    names = st.sampled_from(registry.names("defenses"))
    fuzz = settings(max_examples=20, database=None, derandomize=False, suppress_health_check=list(HealthCheck))(
        given(name=names, question=TEXT, passages=PASSAGES, value=VALUES)(screen)
    )
    end, found = time.monotonic() + SECONDS, random.SystemRandom()
    while time.monotonic() < end:
        seed(found.getrandbits(64))(fuzz)()  # a failure says which seed, and its smallest example
