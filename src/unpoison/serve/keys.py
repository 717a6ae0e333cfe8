"""API keys: names, scopes and rate limits, from a file that may change while the service runs.

    [[key]]
    name = "search-team"
    sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    scopes = ["screen", "answer"]
    rate = 50      # requests a second
    burst = 100    # as many at once after a pause

The file holds digests, so who reads it has no key; `unpoison keys` makes both. Keys are long random texts, so a plain
SHA-256 is enough: there is nothing to guess.

A rate is a token bucket for each key, in this process or, for several processes, in Redis. A bucket holds up to `burst`
tokens and gains `rate` a second; every request takes one, and is refused where there is none.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
import tomllib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from unpoison.errors import InputError, OptionError, UnpoisonError, clip
from unpoison.utils.extras import require

__all__ = ["SCOPES", "Key", "KeyFile", "Keys", "LocalRates", "Rates", "RedisRates", "digest", "read_keys"]

SCOPES = frozenset({"screen", "answer"})
"""What a key may allow. What only describes the service, `/metrics` included, any key may read."""

LOOK = 1.0
"""Seconds between two looks at the file."""

MAX_FILE_BYTES = 1024 * 1024
"""Bytes of the file."""

log = logging.getLogger("unpoison.service")

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")

_DIGEST = re.compile(r"[0-9a-f]{64}")

_FIELDS = frozenset({"name", "sha256", "scopes", "rate", "burst"})


@dataclass(frozen=True, slots=True)
class Key:
    """One key, without its text.

    Attributes:
        name: Whose it is; stands in logs and metrics.
        digest: Its SHA-256 in small hexadecimal letters.
        scopes: Of `SCOPES`.
        rate: Requests a second that it allows, None for any number.
        burst: Requests at once after a pause; by default a second's worth.

    Raises:
        OptionError: A field out of its range.
    """

    name: str
    digest: str
    scopes: frozenset[str] = SCOPES
    rate: float | None = None
    burst: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise OptionError(f"a key's name must be 1 to 64 letters, digits, '.', '_' and '-', got {clip(self.name)}")
        if not isinstance(self.digest, str) or not _DIGEST.fullmatch(self.digest):
            raise OptionError(f"sha256 of key {self.name} must be 64 hexadecimal digits; make one by unpoison keys")
        if not self.scopes <= SCOPES:
            unknown = sorted(map(str, self.scopes - SCOPES))
            raise OptionError(
                f"key {self.name} has the scope {clip(unknown[0])}; there are: {', '.join(sorted(SCOPES))}"
            )
        for field, least in (("rate", 0.001), ("burst", 1.0)):
            value: Any = getattr(self, field)
            if value is None:
                continue
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not least <= value <= 1e9:
                raise OptionError(f"{field} of key {self.name} must be from {least:g} to 1e9, got {clip(value)}")
        if self.burst is not None and self.rate is None:
            raise OptionError(f"key {self.name} has a burst and no rate; give both, or neither")

    @property
    def most(self) -> float:
        """Requests at once after a pause."""
        return self.burst if self.burst is not None else float(math.ceil(self.rate or 1.0))

    @classmethod
    def of(cls, text: str, name: str = "default") -> Key:
        """The key with this text, which may do everything."""
        return cls(name, digest(text))


def digest(text: str | bytes) -> str:
    """The SHA-256 of a key's text, UTF-8, in hexadecimal letters."""
    return sha256(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text).hexdigest()


class Keys:
    """Keys by what is presented. Looked up by digest, so the time says nothing of a key's text."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = {key.digest: key for key in keys}

    def holder(self, text: str | bytes) -> Key | None:
        """Whose key a text is, None for nobody's."""
        return self._keys.get(digest(text))


class KeyFile(Keys):
    """The keys of a file. A change counts within a second; of a file that cannot be used the keys before it stay.

    Args:
        path: The file.
        more: Keys beside it, such as the one of the environment.
        clock: Seconds, rising.

    Raises:
        InputError: The file cannot be used when the service starts.
    """

    def __init__(self, path: Path, more: Iterable[Key] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._more, self._clock = path, tuple(more), clock
        self._last_stamp, self._next = self._stamp(), clock() + LOOK
        super().__init__((*self._more, *read_keys(path)))

    def holder(self, text: str | bytes) -> Key | None:
        """Whose key a text is now."""
        now = self._clock()
        if now >= self._next:
            self._next = now + LOOK
            self._reload()
        return super().holder(text)

    def _reload(self) -> None:
        stamp = self._stamp()
        if stamp == self._last_stamp:
            return
        self._last_stamp = stamp
        try:
            keys = read_keys(self._path)
        except UnpoisonError as error:
            fields = {"error": str(error)}
            log.error("the key file cannot be used; the keys before it still count", extra={"fields": fields})
            return
        self._keys = {key.digest: key for key in (*self._more, *keys)}
        log.info("keys were read again", extra={"fields": {"keys": len(self._keys)}})

    def _stamp(self) -> tuple[int, int, int] | None:
        """What changes when the file does: rotated secrets are often another file under the same name."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size


def read_keys(path: Path) -> list[Key]:
    """The keys of a file.

    Raises:
        InputError: It cannot be read, is no TOML, or has a key that cannot be; the message says which, and no key.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        table = tomllib.loads(content.decode()) if len(content) <= MAX_FILE_BYTES else None
    except OSError as error:
        raise InputError(f"the key file {path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        raise InputError(f"the key file {path} is no TOML; see unpoison keys --help") from None
    rows = table.get("key") if table is not None and set(table) == {"key"} else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"the key file {path} must hold tables [[key]] and nothing else, at least one")
    try:
        keys = [_key(row) for row in rows]
    except OptionError as error:
        raise InputError(f"the key file {path}: {error}") from None
    for what in ("name", "digest"):
        values = [getattr(key, what) for key in keys]
        if len(set(values)) < len(values):
            again = next(key.name for key in keys if values.count(getattr(key, what)) > 1)
            raise InputError(f"the key file {path} has two keys with the {what} of {again}; remove one")
    return keys


def _key(row: dict[str, Any]) -> Key:
    if unknown := sorted(set(row) - _FIELDS):
        raise OptionError(f"a key has no field {clip(unknown[0])}; there are: {', '.join(sorted(_FIELDS))}")
    scopes = row.get("scopes", list(SCOPES))
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise OptionError(f"scopes must be a list of texts, got {clip(scopes)}")
    return Key(row.get("name", ""), row.get("sha256", ""), frozenset(scopes), row.get("rate"), row.get("burst"))


PREFIX = "unpoison:rate:"

TIMEOUT = 0.25
"""Seconds for Redis to answer: as long as a request may wait for its limit."""

PAUSE = 5.0
"""Seconds for which Redis is not asked again after it failed."""

_TAKE = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = math.min(burst, tonumber(bucket[1] or burst) + math.max(0, now - tonumber(bucket[2] or now)) * rate)
local wait = 0
if tokens >= 1 then tokens = tokens - 1 else wait = (1 - tokens) / rate end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.9f', tokens), 'at', string.format('%.6f', now))
redis.call('EXPIRE', KEYS[1], math.ceil(burst / rate) + 1)
return string.format('%.6f', wait)
"""
"""Take a token, or say how many seconds there is none. Atomic, by the server's clock."""


class Rates(Protocol):
    """Where tokens are taken."""

    async def wait(self, key: Key) -> float:
        """Seconds until the key may ask again: 0 where it may now, and a token of it is taken."""

    async def close(self) -> None: ...


class LocalRates:
    """Buckets in this process, one for each name of a key.

    Args:
        share: This process's share of each rate, where several serve together.
        clock: Seconds, rising.
    """

    def __init__(self, share: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._share, self._clock = share, clock
        self._buckets: dict[str, tuple[float, float]] = {}

    async def wait(self, key: Key) -> float:
        return self.take(key)

    def take(self, key: Key) -> float:
        """`wait`, at once."""
        if key.rate is None:
            return 0.0
        now, rate, most = self._clock(), key.rate * self._share, max(1.0, key.most * self._share)
        tokens, at = self._buckets.get(key.name, (most, now))
        tokens = min(most, tokens + (now - at) * rate)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / rate
        self._buckets[key.name] = (tokens if wait else tokens - 1), now
        return wait

    async def close(self) -> None:
        """Nothing is open."""


class RedisRates:
    """Buckets in Redis, for several processes and machines.

    Where Redis does not answer in `TIMEOUT`, this process counts its share by itself: a limit that is not exact for a
    while is better than no service, and better than no limit.

    Args:
        url: As for `RedisBeliefs`.
        share: This process's share of each rate while Redis fails.
        client: A ready `redis.asyncio.Redis` instead of `url`.
    """

    def __init__(self, url: str, share: float = 1.0, *, client: Any = None) -> None:
        self._client = client
        if client is None:
            asynchronous = require("redis.asyncio", "counting requests in Redis")
            self._client = asynchronous.Redis.from_url(
                url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, max_connections=64
            )
        self._take: Callable[..., Awaitable[bytes | str]] = self._client.register_script(_TAKE)
        self._local = LocalRates(share)
        self._again = 0.0

    async def wait(self, key: Key) -> float:
        if key.rate is None:
            return 0.0
        if time.monotonic() >= self._again:
            try:
                async with asyncio.timeout(TIMEOUT):  # the client's own retries included
                    return float(await self._take(keys=[PREFIX + key.name], args=[key.rate, key.most]))
            except Exception as error:  # whatever the client raises; its words may hold the address with a password
                self._again = time.monotonic() + PAUSE
                fields = {"error": type(error).__name__}
                log.warning("Redis does not count requests now; this process does", extra={"fields": fields})
        return self._local.take(key)

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()
