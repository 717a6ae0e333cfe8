"""A first configuration: from an OpenAPI document, or from the addresses of asking, adding and removing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from unpoison.bench.redteam.http_calls import Requests
from unpoison.bench.redteam.http_client import HttpClient
from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.http_template import Filled
from unpoison.bench.redteam.openapi import MAX_BYTES, OpenApi
from unpoison.bench.redteam.presets import preset_of
from unpoison.bench.redteam.secrets import Secrets
from unpoison.errors import InputError, OptionError, UnpoisonError, clip

__all__ = [
    "ask_of",
    "describe_target",
    "origin",
    "plant_of",
    "read_openapi",
    "remove_of",
    "target_of_openapi",
    "write_config",
]

SECONDS = 10.0
"""For the document."""

HEADER = """\
# Written by 'unpoison redteam init'. See what it understands:  unpoison redteam check {name}
# Add find, a search for {{canary}}, where the system has one: docs/redteam.md says how.
"""


def ask_of(url: str, model: str | None = None, document: OpenApi | None = None) -> dict[str, Any]:
    """How a question is asked at an address.

    Args:
        url: The address; one of a known chat endpoint is a preset.
        model: For a preset; `${RAG_MODEL}` by default.
        document: What the system says of itself, where it does.

    Raises:
        OptionError: It is no address.
    """
    _check_url(url)
    preset = preset_of(url)
    if preset is not None:
        return {"preset": preset, "url": url, "model": model or "${RAG_MODEL}"}
    described = document and document.ask(_path_of(url))
    return described or {"url": url, "body": {"question": "{question}"}, "answer": "$.answer"}


def plant_of(url: str, document: OpenApi | None = None) -> dict[str, Any]:
    """How a document is added at an address.

    Raises:
        OptionError: It is no address.
    """
    _check_url(url)
    described = document and document.plant(_path_of(url))
    return described or {"url": url, "body": {"text": "{text}", "metadata": {"canary": "{canary}"}}, "id": "$.id"}


def remove_of(url: str, document: OpenApi | None = None) -> dict[str, Any]:
    """How one is removed at an address, which has `{id}` where the id goes.

    Raises:
        OptionError: It is no address, or has no place for the id and is not described either.
    """
    _check_url(url)
    if "{id}" in url:
        return {"method": "DELETE", "url": url}
    described = document and document.remove(_path_of(url))
    return described or {"url": url, "body": {"id": "{id}"}}


def target_of_openapi(document: OpenApi) -> dict[str, Any]:
    """What of a target an OpenAPI document describes: any of `login`, `headers`, `ask`, `plant`, `remove`."""
    calls = {"ask": document.ask(), "plant": document.plant(), "remove": document.remove()}
    return document.authorization() | {name: call for name, call in calls.items() if call}


def read_openapi(where: str, hosts: Hosts) -> OpenApi:
    """Read an OpenAPI document.

    Args:
        where: A file, or an address on a machine that may be tested.
        hosts: Where requests may go.

    Raises:
        InputError: It is none, or cannot be read.
        OptionError: The host may not be spoken to.
        TargetError: No reply.
    """
    if not where.startswith(("http://", "https://")):
        try:
            with Path(where).open("rb") as file:
                return OpenApi.of(file.read(MAX_BYTES + 1), None)
        except OSError as error:
            raise InputError(f"{clip(where)} cannot be read: {error.strerror}; give a file or an address") from None
    _check_url(where)
    client = HttpClient(Secrets({}), hosts, SECONDS, encrypted=where.startswith("https:"))
    reply = client.send("the OpenAPI document", Filled("GET", where, {"Accept": "application/json"}))
    return OpenApi.of(reply.content, origin(where))


def describe_target(target: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(what, its request and what is read from the reply) of each call."""
    lines = []
    for kind in ("ask", "plant", "remove"):
        call = target[kind]
        paths = ", ".join(str(call[name]) for name in ("answer", "passages", "id") if name in call)
        what = f"preset {call['preset']}" if "preset" in call else f"{call.get('method', 'POST')} {call['url']}"
        lines.append((kind, f"{what}{' -> ' if paths else ''}{paths}"))
    return lines


def write_config(target: Mapping[str, Any], questions: str, name: str) -> str:
    """The configuration as YAML.

    Args:
        target: All of it.
        questions: The file of questions.
        name: Of the file, for its first line.

    Raises:
        OptionError: What is known makes no target.
    """
    try:
        Requests.read(target, "target")
    except UnpoisonError as error:
        raise OptionError(
            f"what is known makes no target: {error}; write it by hand, docs/redteam.md says how"
        ) from None
    values = {"target": dict(target), "questions": questions, "attacks": ["poisonedrag"], "poisons": [1]}
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110)
    return HEADER.format(name=name) + text


def origin(url: str) -> str:
    """Scheme and host of an address.

    Raises:
        OptionError: It is no address.
    """
    _check_url(url)
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc:
        raise OptionError(f"{clip(url.rpartition('@')[2])} is no address; write one such as http://127.0.0.1:8000/ask")


def _path_of(url: str) -> str:
    return urlsplit(url).path
