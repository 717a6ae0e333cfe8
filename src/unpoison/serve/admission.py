"""Who may come in: the name that is called, the key, what it allows and how often, and the form of the body."""

from __future__ import annotations

import re
from collections.abc import Collection
from math import ceil
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.types import Scope

from unpoison.errors import OptionError, clip
from unpoison.serve.failures import Refusal
from unpoison.serve.keys import Key, Keys
from unpoison.serve.rates import Rates

if TYPE_CHECKING:
    from unpoison.serve.gate import Record

__all__ = ["Admission", "normalize_root", "too_large"]

OPEN = ("/", "/healthz", "/readyz", "/health", "/openapi.json", "/assets/", "/sample/")
"""What needs no key: nothing of it tells anything about what the service was asked."""

SCOPE = {"/v1/answer": "answer"}
"""What a key must allow; for every other body it is `screen`."""

_ROOT = re.compile(r"(/[A-Za-z0-9._~-]+){1,8}")


class Admission:
    """What every request is asked first.

    Args:
        body: Bytes of one request.
        hosts: The names by which the service may be called, empty for any. For a service on this machine it shuts out
            web pages that point a name of their own at it.
        keys: Who may ask; None for everybody.
        rates: How often.
    """

    def __init__(self, *, body: int, hosts: Collection[str], keys: Keys | None, rates: Rates) -> None:
        self.body = body
        self.hosts = frozenset(hosts)
        self.keys = keys
        self.rates = rates

    async def admit(self, scope: Scope, headers: Headers, record: Record) -> None:
        """Let a request in; the record is told whose it is.

        Raises:
            Refusal: It may not come in, or not now.
        """
        host = headers.get("host", "")
        if self.hosts and re.sub(r":\d*$", "", host).lower() not in self.hosts:
            message = "the service is not called by this name; start it with --allow-host NAME"
            raise Refusal(421, "MisdirectedRequest", message)
        key = self._key(scope, headers)
        record.key = None if key is None else key.name
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and kind != "application/json":  # the one kind that no foreign page sends unasked
            message = "the body must be JSON and say so; send the header Content-Type: application/json"
            raise Refusal(415, "UnsupportedMediaType", message)
        size = headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,18}", size) or int(size) > self.body:
            raise too_large(self.body)
        if key is not None and scope["method"] == "POST" and (wait := await self.rates.wait(key)):
            message = f"key {key.name} may ask {key.rate:g} times a second; try again in {wait:.1f} s"
            raise Refusal(429, "TooManyRequests", message, {"Retry-After": str(max(1, ceil(wait)))})

    def _key(self, scope: Scope, headers: Headers) -> Key | None:
        if self.keys is None or _is_open(scope["path"]):
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        key = self.keys.holder(token.strip().encode("latin-1")) if scheme.lower() == "bearer" else None
        if key is None:
            message = "the key is missing or wrong; send the header Authorization: Bearer KEY"
            raise Refusal(401, "Unauthorized", message, {"WWW-Authenticate": "Bearer"})
        needed = SCOPE.get(scope["path"], "screen") if scope["method"] == "POST" else None
        if needed is not None and needed not in key.scopes:
            message = f"key {key.name} may not {needed}; ask for the scope {needed}, or use another key"
            raise Refusal(403, "Forbidden", message)
        return key


def too_large(most: int) -> Refusal:
    """The refusal of a body with more than so many bytes."""
    message = f"the body has more than the {most:,} bytes that are taken; send fewer or shorter passages"
    return Refusal(413, "TooLarge", message)


def normalize_root(path: str) -> str:
    """A root path as it is stripped: "/unpoison", or nothing.

    Raises:
        OptionError: It is no such path.
    """
    root = path.rstrip("/")
    if root and not _ROOT.fullmatch(root):
        raise OptionError(
            f"root_path must be like /unpoison, letters, digits and .-_~ between slashes, got {clip(path)}"
        )
    return root


def _is_open(path: str) -> bool:
    return any(path.startswith(name) if name.endswith("/") and name != "/" else path == name for name in OPEN)
