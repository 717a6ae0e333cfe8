"""Admission control: host names, keys, scopes, rates and the form of the body; and the slots that requests wait for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from math import ceil

from starlette.datastructures import Headers
from starlette.types import Scope

from unpoison.errors import OptionError, clip
from unpoison.serve.keys import Key, Keys, Rates
from unpoison.serve.logs import Record
from unpoison.serve.replies import Refusal

__all__ = ["Admission", "Slots", "normalize_root", "too_large"]

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


QUEUE = 16
"""Requests that may wait for each slot. A waiting request holds the beginning of its body and computes nothing."""


class Slots:
    """Slots for requests in work. Who finds none waits in line for a while, which costs nothing.

    A refusal at once would be cheap for nobody: clients come back as fast as they are refused, and what reads and
    answers them competes with what computes.

    Args:
        number: How many there are.
        wait: Seconds that a request waits for one.
    """

    def __init__(self, number: int, wait: float) -> None:
        self._free = asyncio.Semaphore(number)
        self._most_waiting = QUEUE * number
        self._waiting = 0
        self._wait = wait

    async def acquire(self) -> bool:
        """Take a slot, or say False when none came free in time. What is taken must be given back."""
        if not self._free.locked():
            return await self._free.acquire()  # at once
        if self._waiting >= self._most_waiting:
            return False
        self._waiting += 1
        try:
            async with asyncio.timeout(self._wait):
                await self._free.acquire()
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return True

    def release(self) -> None:
        self._free.release()
