"""When a server may be asked again, and replies of bounded length."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace

import pytest

from unpoison.models import responses


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        ("Sun, 06 Nov 1994 08:49:40 GMT", 3),
        ("Sun, 06 Nov 1994 08:49:30 GMT", 0),
        ("Mon, 07 Nov 2094 08:49:37 GMT", 3600),
    ],
)
def test_retry_after_may_be_a_date(moment: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses.time, "time", lambda: 784111777.0)
    assert responses.retry_after(moment) == seconds


def test_a_reply_is_of_bounded_length() -> None:
    longest = responses.MAX_REPLY_CHARS
    assert responses.make_reply("a" * longest, "stop", 3, 4).finish == "stop"
    cut = responses.make_reply("a" * (longest + 1), "stop", True, -1)
    assert (len(cut.text), cut.finish, cut.prompt_tokens, cut.completion_tokens) == (longest, "length", None, None)


class Response:
    """One of the SDK's, in chunks."""

    def __init__(self, *chunks: bytes, read: float | None = None) -> None:
        self.chunks = chunks
        self.request = SimpleNamespace(extensions={"timeout": {"read": read}})

    def iter_bytes(self) -> Iterator[bytes]:
        yield from self.chunks

    iter_raw = iter_bytes

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            yield chunk


@pytest.mark.parametrize(("size", "fits"), [(10, True), (11, False)])
def test_a_response_is_read_up_to_its_bound(size: int, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "MAX_REPLY_BYTES", 10)
    plain, waited = Response(b"x" * 6, b"x" * (size - 6)), Response(b"x" * 6, b"x" * (size - 6))

    async def wait() -> int:
        await responses.bound_async(waited)
        return sum([len(chunk) async for chunk in waited.aiter_bytes()])

    responses.bound(plain)
    if fits:
        assert sum(map(len, plain.iter_bytes())) == asyncio.run(wait()) == size
        return
    with pytest.raises(responses.TooLongError):
        list(plain.iter_bytes())
    with pytest.raises(responses.TooLongError):
        asyncio.run(wait())


def test_a_response_is_read_until_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(responses.time, "monotonic", lambda: now[0])
    response, endless = Response(b"a", b"b", read=5.0), Response(b"a", b"b")
    responses.bound(response)
    responses.bound(endless)
    chunks = response.iter_raw()
    assert next(chunks) == b"a"
    now[0] = 5.0
    assert next(chunks) == b"b"
    now[0] = 5.1
    with pytest.raises(TimeoutError):
        next(response.iter_raw())
    assert list(endless.iter_raw()) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7), ("-3", 0), ("9e9", 3600), ("nan", None), (None, None), ("soon", None)]
)
def test_retry_after_is_a_number_within_bounds(header: str | None, seconds: float | None) -> None:
    assert responses.retry_after(header) == seconds
