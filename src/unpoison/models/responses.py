"""What is read of a server's response: bounds of size and time, when to ask again, and a reply of bounded length."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from unpoison.core.answers import Reply
from unpoison.utils.plain_text import encodable

__all__ = ["MAX_REPLY_BYTES", "MAX_REPLY_CHARS", "TooLongError", "bound", "bound_async", "make_reply", "retry_after"]

MAX_REPLY_CHARS = 65_536
"""Maximum characters of a reply; the replies requested here are a hundred times shorter."""

MAX_REPLY_BYTES = 64 * 2**20
"""Bytes of a response, unpacked: vectors of 4,096 dimensions for 700 texts. What is longer is not read on."""

_MAX_WAIT = 3600.0
"""Maximum of a server's `Retry-After`, in seconds; the driver's own limit is lower."""


class TooLongError(Exception):
    """A response of too many bytes."""


def bound(response: Any) -> None:
    """Bound a synchronous response in size and in time, because the SDK's timeout bounds each read of it only."""
    unpack = response.iter_bytes

    def within_bound(*arguments: Any, **options: Any) -> Iterator[bytes]:
        count = _Count()
        for chunk in unpack(*arguments, **options):
            yield count.add(chunk)

    response.iter_bytes = within_bound
    read, seconds = response.iter_raw, response.request.extensions.get("timeout", {}).get("read")
    end = None if seconds is None else time.monotonic() + seconds

    def until_end(*arguments: Any, **options: Any) -> Iterator[bytes]:
        for chunk in read(*arguments, **options):
            if end is not None and time.monotonic() > end:
                raise TimeoutError
            yield chunk

    response.iter_raw = until_end


async def bound_async(response: Any) -> None:
    """Bound an asynchronous response in size."""
    unpack = response.aiter_bytes

    async def within_bound(*arguments: Any, **options: Any) -> AsyncIterator[bytes]:
        count = _Count()
        async for chunk in unpack(*arguments, **options):
            yield count.add(chunk)

    response.aiter_bytes = within_bound


class _Count:
    """The bytes of a response so far."""

    def __init__(self) -> None:
        self.bytes = 0

    def add(self, chunk: bytes) -> bytes:
        self.bytes += len(chunk)
        if self.bytes > MAX_REPLY_BYTES:
            raise TooLongError
        return chunk


def retry_after(header: str | None) -> float | None:
    """Seconds from `Retry-After`, which holds a number or a date; None without either."""
    try:
        seconds = float(header or "nan")
    except ValueError:
        try:
            moment = parsedate_to_datetime(str(header))
        except ValueError:
            return None
        seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - time.time()
    return min(max(seconds, 0.0), _MAX_WAIT) if math.isfinite(seconds) else None


def make_reply(text: str, finish: str, prompt_tokens: object = None, completion_tokens: object = None) -> Reply:
    """A reply of bounded length: longer text is truncated at `MAX_REPLY_CHARS`, with `finish="length"`."""
    if len(text) > MAX_REPLY_CHARS:
        text, finish = text[:MAX_REPLY_CHARS], "length"
    return Reply(encodable(text), _count(prompt_tokens), _count(completion_tokens), finish)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
