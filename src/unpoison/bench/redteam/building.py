"""From the `target` of a configuration to something that can be asked: over HTTP, in Python, or made of a corpus."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unpoison.bench.redteam.addresses import Hosts
from unpoison.bench.redteam.corpus import CORPUS, corpus_target
from unpoison.bench.redteam.http_client import HttpClient
from unpoison.bench.redteam.http_target import HttpTarget
from unpoison.bench.redteam.objects import load_object, target_of
from unpoison.bench.redteam.secrets import Secrets
from unpoison.bench.redteam.targets import Target
from unpoison.errors import OptionError, UnknownNameError, clip

__all__ = ["build_target", "kind_of", "secrets_of_environment"]

PYTHON = ("python", "store", "inputs")


def secrets_of_environment() -> Secrets:
    """What `${NAME}` stands for."""
    return Secrets(os.environ)


def kind_of(values: Mapping[str, Any]) -> str:
    """`http`, `python` or `corpus`.

    Raises:
        UnknownNameError: Fields of several kinds, or of none.
    """
    for kind, allowed in (("python", PYTHON), ("corpus", CORPUS)):
        if kind in values:
            for name in values:
                if name not in allowed:
                    raise UnknownNameError(f"field of a target with {kind}", str(name), allowed)
            return kind
    return "http"


def build_target(
    values: Mapping[str, Any], *, secrets: Secrets, hosts: Hosts, folder: Path = Path(), timeout: float = 30.0
) -> Target:
    """The target that a configuration describes.

    Args:
        values: Its section `target`.
        secrets: What `${NAME}` stands for.
        hosts: Where requests may go.
        folder: Where relative paths begin, and where Python modules are looked for too.
        timeout: Seconds for one request.

    Raises:
        UnknownNameError, OptionError, InputError: It describes none.
        MissingExtraError: A library that it needs is not installed.
    """
    kind = kind_of(values)
    if kind == "http":
        return HttpTarget(values, secrets, hosts, timeout=timeout)
    if kind == "python":
        store = None if values.get("store") is None else load_object(_text(values, "store"), folder)
        loaded = load_object(_text(values, "python"), folder)
        return target_of(loaded, store, inputs=values.get("inputs"), name=values["python"])
    client = HttpClient(secrets, hosts, timeout) if "service" in values else None
    return corpus_target(values, client, folder)


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not value:
        raise OptionError(f"target.{name} must be a text, got {clip(value)}")
    return value
