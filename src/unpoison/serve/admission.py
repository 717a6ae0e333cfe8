"""Admission of requests: host name, API key, content type and declared size.

Keys are stored as SHA-256 digests.

A key file has one line per key in the format of `sha256sum`: 64 hexadecimal digits and the name of the holder.

    $ printf %s "$KEY" | sha256sum | sed 's/-/search-team/' >> keys.txt

Keys are long random texts, so a plain SHA-256 is enough: there is nothing to guess.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Self

from starlette.datastructures import Headers
from starlette.types import Scope

from unpoison.errors import InputError, OptionError
from unpoison.serve.replies import Refusal
from unpoison.serve.telemetry import LogRecord
from unpoison.utils.files import read_small

__all__ = ["Admission", "Keys", "digest", "too_large"]

MAX_FILE_BYTES = 1024 * 1024
"""Maximum bytes of the key file."""

_LINE = re.compile(r"([0-9a-fA-F]{64})(?:[ \t]+\*?([A-Za-z0-9._-]{1,64}))?")


def digest(text: str | bytes) -> str:
    """The SHA-256 of a key's text, UTF-8, in lowercase hexadecimal digits."""
    return sha256(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text).hexdigest()


class Keys:
    """Keys by digest, so that the time of a lookup reveals nothing about a key.

    Args:
        names: Holder's name by digest; it appears in logs and metrics.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)

    @classmethod
    def of(cls, text: str, name: str = "default") -> Self:
        """The one key with this text.

        Raises:
            OptionError: The text is blank.
        """
        if not text.strip():
            raise OptionError("a key must not be blank; give a long random text")
        return cls({digest(text.strip()): name})

    @classmethod
    def read(cls, path: Path) -> Self:
        """The keys of a file; blank lines and lines that begin with # are skipped. Read once, at the start.

        Raises:
            InputError: The file cannot be read, is too large, holds no key, or has an invalid line (its number).
        """
        content = read_small(path, MAX_FILE_BYTES, "give a file with the SHA-256 of each key")
        names: dict[str, str] = {}
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            match = _LINE.fullmatch(line.strip())
            if match is None:
                raise InputError(
                    f"line {number} of the key file {path} must be the SHA-256 of a key and a name; "
                    "make one with: printf %s KEY | sha256sum"
                )
            names[match[1].lower()] = match[2] if match[2] not in (None, "-") else match[1][:8].lower()
        if not names:
            raise InputError(f"the key file {path} holds no key; make one with: printf %s KEY | sha256sum")
        return cls(names)

    def __or__(self, other: Keys) -> Keys:
        """The keys of both sets."""
        return Keys(self._names | other._names)

    def holder(self, text: str | bytes) -> str | None:
        """The holder of a key, None if it is unknown."""
        return self._names.get(digest(text))


OPEN, OPEN_BELOW = ("/", "/healthz", "/readyz", "/health", "/openapi.json"), ("/assets/", "/examples/")
"""Paths, and prefixes of paths, that need no key; none of them reveals the content of requests."""


class Admission:
    """Checks the host name, key, encoding and declared size of every request.

    Args:
        body: Bytes of one request.
        hosts: Allowed host names, empty for any. On a local service this prevents DNS rebinding.
        keys: Valid keys; None allows unauthenticated requests.
    """

    def __init__(self, *, body: int, hosts: Collection[str], keys: Keys | None) -> None:
        self.body, self.hosts, self.keys = body, frozenset(hosts), keys

    def admit(self, scope: Scope, headers: Headers, record: LogRecord) -> None:
        """Admit a request, and note its key in the record.

        Raises:
            Refusal: It is not admitted.
        """
        if len(headers.getlist("host")) > 1:
            raise Refusal(400, "InvalidRequest", "the request has two Host headers; send one")
        host = headers.get("host", "")
        if self.hosts and re.sub(r":\d*$", "", host).lower() not in self.hosts:
            message = "the service is not called by this name; start it with --allow-host NAME"
            raise Refusal(421, "MisdirectedRequest", message)
        record.key = self._key(scope, headers)
        if headers.get("content-encoding", "identity").lower() != "identity":
            message = "packed bodies are not read; send the JSON as it is, without Content-Encoding"
            raise Refusal(415, "UnsupportedMediaType", message)
        if headers.get("expect", "100-continue").lower() != "100-continue":
            raise Refusal(417, "ExpectationFailed", "only Expect: 100-continue is known; leave the header out")
        size = headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,18}", size) or int(size) > self.body:
            raise too_large(self.body)

    def _key(self, scope: Scope, headers: Headers) -> str | None:
        """The name of the request's key; None if no key is required."""
        if self.keys is None or scope["path"] in OPEN or scope["path"].startswith(OPEN_BELOW):
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        holder = self.keys.holder(token.strip().encode("latin-1")) if scheme.lower() == "bearer" else None
        if holder is None:
            message = "the key is missing or wrong; send the header Authorization: Bearer KEY"
            raise Refusal(401, "Unauthorized", message, {"WWW-Authenticate": "Bearer"})
        return holder


def too_large(most: int) -> Refusal:
    """The refusal of a body that exceeds the limit in bytes."""
    message = f"the body has more than the {most:,} bytes that are taken; send fewer or shorter passages"
    return Refusal(413, "TooLarge", message)
