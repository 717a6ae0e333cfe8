"""What users import, and what importing it costs."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
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
    assert sorted(unpoison.__all__) == sorted(" ".join(unpoison._HOMES.values()).split())
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
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtraError, match=re.escape(f"needs redis; run: {extras.install_command('redis')}")):
        extras.require("redis", "a store of beliefs")


def test_a_package_of_no_extra_is_named_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"needs onnx; run: pip install onnx$"):
        extras.require("onnx", "exporting a model")


@pytest.mark.needs("hatchling")
@pytest.mark.parametrize("place", ["clone", "repository"])
def test_the_command_that_installs_an_extra_can_be_pasted(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed: pip resolves what the command names, without dependencies."""
    if place == "repository":
        monkeypatch.setattr(extras, "REPOSITORY", f"git+{ROOT.as_uri()}")
        monkeypatch.setattr(extras, "__file__", "/somewhere/lib/site-packages/unpoison/utils/extras.py")
    command = extras.install_command("serve")
    assert ("git+" in command) == (place == "repository")
    dry = command.replace(" -e ", " ").replace(
        "pip install", f"{sys.executable} -m pip install --dry-run --no-deps --no-build-isolation", 1
    )
    done = subprocess.run(dry, shell=True, capture_output=True, text=True)  # noqa: S602  as a shell reads it
    assert done.returncode == 0, done.stderr
    assert "Would install unpoison" in done.stdout


def test_every_extra_that_a_message_names_exists() -> None:
    declared = set(re.findall(r"^([\w-]+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE))
    assert set(extras.EXTRAS.values()) <= declared


DOORS = {
    "unpoison": "Claim",
    "unpoison.agents": "Remembered ScreenedResult",
    "unpoison.beliefs": "BeliefUpdate PostgresBeliefs RedisBeliefs Weights",
    "unpoison.models": "AnswerNLI CrossEncoderNLI LexicalNLI SentenceTransformerEncoder load_cross_encoder",
    "unpoison.scan": "Span",
    "unpoison.serve": "serve",
    "unpoison.sources": "Past Policy Reliability Standing origin_of",
}
"""Names of the rooms' doors that only users import: a result, what it is made of, a store, a model."""


@pytest.mark.parametrize("door", DOORS)
def test_what_only_users_import_is_there(door: str) -> None:
    room = import_module(door)
    for name in DOORS[door].split():
        assert name in room.__all__ and getattr(room, name).__name__ == name
