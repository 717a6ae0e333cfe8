"""How often a key may ask: a token bucket for each, in this process or, for several, in Redis.

A bucket holds up to `burst` tokens and gains `rate` a second; every request takes one, and waits for none.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from unpoison.serve.keys import Key
from unpoison.utils.extras import require

__all__ = ["LocalRates", "Rates", "RedisRates"]

PREFIX = "unpoison:rate:"

TIMEOUT = 0.25
"""Seconds for Redis to answer: as long as a request may wait for its limit."""

PAUSE = 5.0
"""Seconds for which Redis is not asked again after it failed."""

log = logging.getLogger("unpoison.service")

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
