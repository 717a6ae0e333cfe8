"""Beliefs in Redis, for services on several machines."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from unpoison.beliefs.store import check_key, fresh_version
from unpoison.core.answers import Belief
from unpoison.errors import InputError, StoreError
from unpoison.utils.copies import Remade
from unpoison.utils.extras import require

__all__ = ["RedisBeliefs"]

PREFIX = "unpoison:beliefs:"

TIMEOUT = 5.0
"""Seconds to wait for a connection or a reply."""

_PUT = """
local version, created = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (%S+) ')
if ARGV[1] ~= '*' and ARGV[1] ~= (version or '') then return 0 end
redis.call('SET', KEYS[1], ARGV[2] .. ' ' .. (created or ARGV[3]) .. ' ' .. ARGV[4])
return 1
"""
"""Compare and set, atomic as every script is. ARGV: expected version or `*`, version, created, the rest."""


class RedisBeliefs(Remade):
    """Beliefs as one string each, under `unpoison:beliefs:KEY`.

    A string holds the version, the time of creation and the rest as JSON, separated by spaces.

    Persistence depends on the server: switch `appendonly` on, and use no eviction policy that drops keys without
    expiry.

    Args:
        url: `redis://[[user]:password@]host[:port][/database]`, `rediss://` for TLS, or `unix://`.
        client: A ready `redis.Redis` instead of `url`.

    Raises:
        OptionError: An option out of its range.
        MissingExtraError: redis is not installed.
        StoreError: The server cannot be reached.
        InputError: The server holds other data under these keys.
    """

    def __init__(self, url: str = "redis://localhost:6379/0", *, client: Any = None) -> None:
        self._redis = require("redis", "keeping beliefs in Redis")
        with self._errors():
            self._client = client or self._redis.Redis.from_url(
                url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, decode_responses=False
            )
        self._put = self._client.register_script(_PUT)
        with self._errors():
            self._client.ping()

    def get(self, key: str) -> Belief | None:
        with self._errors():
            return self._belief(self._client.get(PREFIX + check_key(key)))

    def put(self, key: str, belief: Belief, *, expected: str | None = None) -> bool:
        now = time.time()
        rest = json.dumps(replace(belief, created=None, updated=now).to_dict(), ensure_ascii=False)
        arguments = ["*" if expected is None else expected, fresh_version(), repr(now), rest]
        with self._errors():
            return bool(self._put(keys=[PREFIX + check_key(key)], args=arguments))

    def close(self) -> None:
        self._client.close()

    def _belief(self, value: bytes | None) -> Belief | None:
        if value is None:
            return None
        try:
            version, created, rest = value.decode().split(" ", 2)
            return Belief.from_dict({**json.loads(rest), "created": float(created)}, version=version)
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"{self!r} holds what is no belief: {error}; use another database") from None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._redis.ResponseError as error:
            raise InputError(f"{self!r} refuses or holds something else ({error}); use another database") from error
        except (self._redis.RedisError, OSError) as error:
            raise StoreError(f"{self!r} cannot be reached ({error}); see whether the server runs") from error

    def __repr__(self) -> str:
        return "RedisBeliefs(...)"  # never the url: it may hold a password
