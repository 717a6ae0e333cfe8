"""What users import, and what importing it costs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import unpoison
from unpoison import models
from unpoison.errors import MissingExtraError
from unpoison.utils import extras

ROOT = Path(__file__).resolve().parent.parent
HEAVY = (
    "torch",
    "transformers",
    "sentence_transformers",
    "sklearn",
    "openai",
    "anthropic",
    "onnxruntime",
    "scipy",
    "pyarrow",
    "langchain_core",
    "llama_index",
    "haystack",
)


def test_all_public_names_exist_and_are_listed_once() -> None:
    assert sorted(unpoison.__all__) == sorted(unpoison._HOMES)
    for name in unpoison.__all__:
        assert getattr(unpoison, name).__name__ == name
    for name in models.__all__:
        assert getattr(models, name) is not None


def test_unknown_names_are_attribute_errors() -> None:
    for module in (unpoison, models):
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            module.nonsense  # noqa: B018


def test_importing_stays_light() -> None:
    code = f"import unpoison, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_using_a_defense_without_a_model_loads_no_heavy_module() -> None:
    code = (
        "import sys; from unpoison import Grada, TrustRag; Grada().screen('q', ['a b', 'b c', 'c d']); TrustRag();"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_missing_extra_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=re.escape("run: pip install 'unpoison[data]'")):
        extras.require("datasets", "reading from a hub")


def test_every_extra_that_a_message_names_exists() -> None:
    declared = set(re.findall(r"^([\w-]+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE))
    assert set(extras.EXTRAS.values()) <= declared
