"""First looks at an address: whether anybody is there, which models a chat lists, and what says that it is no API."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from unpoison.bench.redteam.http_client import HttpClient
from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.http_template import Filled
from unpoison.bench.redteam.secrets import Secrets
from unpoison.bench.redteam.starter import origin
from unpoison.errors import InputError, OptionError, TargetError, UnpoisonError, clip

__all__ = ["MODELS", "TOKEN", "check_listens", "has_token", "is_page", "list_models", "look", "refuse_reply"]

TOKEN = "RAG_TOKEN"  # noqa: S105  the name of a variable
MODELS = {"ollama": ("/api/tags", "models", "name"), "openai": ("/v1/models", "data", "id")}
"""Where a chat endpoint lists its models."""

NO_KEY, NOT_THERE = (401, 403), (404, 405, 410)


def check_listens(where: str, hosts: Hosts) -> None:
    """See that somebody is there.

    Raises:
        InputError: Nobody is.
        OptionError: It is no address, or one that may not be tested.
    """
    host, parts = origin(where).partition("://")[2], urlsplit(where)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise OptionError(f"{clip(where)} has a port that is none; write 1 to 65535") from None
    why = "it has no address"
    for address in hosts.addresses(parts.hostname or ""):
        try:
            socket.create_connection((address, port), timeout=10).close()
        except OSError as error:
            why = error.strerror or type(error).__name__
        else:
            return
    raise InputError(f"nothing listens on {clip(host)} (port {port}): {why}; start your system, or mend host and port")


def list_models(preset: str, where: str, hosts: Hosts, secrets: Secrets) -> list[str]:
    """The models that a server lists as a preset's servers do; none where it does not."""
    path, members, name = MODELS[preset]
    found = look(origin(where) + path, hosts, secrets)
    held = found.get(members) if isinstance(found, Mapping) else None
    rows = held[:100] if isinstance(held, list) else []
    return [row[name] for row in rows if isinstance(row, Mapping) and isinstance(row.get(name), str) and row[name]]


def has_token(secrets: Secrets) -> bool:
    """Whether a key is set."""
    try:
        return bool(secrets.value(TOKEN))
    except OptionError:
        return False


def look(url: str, hosts: Hosts, secrets: Secrets) -> Any:
    """The JSON at an address, or its text where it is none; None where there is nothing."""
    client = HttpClient(secrets, hosts, 10.0, encrypted=url.startswith("https:"))
    headers = {"Authorization": f"Bearer {secrets.value(TOKEN)}"} if has_token(secrets) else {}
    try:
        response = client.send("a look", Filled("GET", url, headers))
    except UnpoisonError:
        return None
    try:
        return client.parse_json("a look", response)
    except TargetError:
        return response.content[:1000].decode("utf-8", "replace")


def is_page(reply: Any) -> bool:
    """Whether a reply is an HTML page."""
    return isinstance(reply, str) and reply.lstrip()[:200].lower().startswith(("<!doctype html", "<html"))


def refuse_reply(where: str, status: int, reply: Any, hosts: Hosts, secrets: Secrets) -> None:
    """Say why a reply to a question is of no use.

    Raises:
        InputError: The system wants a key, or answers with a page.
        TargetError: It answers with an error.
    """
    if status in NO_KEY:
        raise InputError(
            f"{clip(where)} wants a key (status {status}): export {TOKEN}=... and it is sent as 'Authorization: Bearer'"
            "; for another header or a login write a target file: unpoison redteam init"
        )
    if is_page(reply) or (status in NOT_THERE and where.startswith("http") and is_page(look(where, hosts, secrets))):
        better = f"such as {clip(origin(where))}/ask, or a target file" if where.startswith("http") else "in ask.url"
        raise InputError(
            f"{clip(where)} answers with an HTML page in place of JSON; give the address of the API behind it, {better}"
        )
    if status >= 300:
        raise TargetError(
            f"{clip(where)} answered a question with status {status}: {clip(str(reply), 200)}; give the address that "
            "answers, or a target file: unpoison redteam init"
        )
