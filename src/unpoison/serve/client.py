"""A running service as if it were a defense of this process: the same questions, passages, screenings and answers.

    from unpoison.serve.client import Client

    with Client("http://127.0.0.1:8000", key="...") as service:
        screening = service.screen(query, passages)
        screening.kept

What fails raises what the library would raise: `InputError` for what cannot be used, `OptionError` for a key or an
option, `ModelError` (with `retryable`) for a service or a model that cannot reply now. Nothing comes back unscreened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Self

from unpoison.errors import OptionError, UnpoisonError, clip
from unpoison.serve.wire import (
    Events,
    Exchange,
    Ranked,
    RefusedError,
    content,
    failure,
    read_ranking,
    rerank_body,
    unreachable,
)
from unpoison.types import Answer, Query, Screening
from unpoison.utils.extras import require

__all__ = ["AsyncClient", "Client", "Ranked"]

MAX_WAIT = 30.0
"""Seconds before a request is tried again, whatever the service asks."""


class _Base:
    """What both clients share.

    Args:
        url: Where the service is, with its root path if it has one.
        key: What `Authorization: Bearer` says, None for nothing.
        timeout: Seconds for one request.
        retries: How often a request is sent again that was refused as too many, or that found no connection.
    """

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 60.0, retries: int = 2) -> None:
        if not url.startswith(("http://", "https://")):
            raise OptionError(f"url must begin with http:// or https://, got {clip(url)}")
        if not timeout > 0 or retries < 0:
            raise OptionError(f"timeout must be positive and retries 0 or more, got {timeout} and {retries}")
        self._sdk = require("httpx", "the client of the service")
        self._retries = retries
        headers = {} if key is None else {"Authorization": f"Bearer {key}".encode()}
        self._options = {"base_url": url, "timeout": timeout, "headers": headers, "follow_redirects": False}

    def _pause(self, error: Exception, attempt: int) -> float:
        """Seconds until a request is sent again.

        Raises:
            UnpoisonError: It is of no use, or was tried often enough.
        """
        ours = error if isinstance(error, UnpoisonError) else unreachable(self._sdk, error)
        wanted = isinstance(error, (RefusedError, self._sdk.ConnectError))
        if not wanted or attempt > self._retries:
            raise ours from None
        wait = getattr(ours, "retry_after", None)
        return min(0.5 * 2.0 ** (attempt - 1) if wait is None else float(wait), MAX_WAIT)


class Client(_Base):
    """See the module; the arguments are those of `_Base`, and safe for several threads."""

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 60.0, retries: int = 2) -> None:
        super().__init__(url, key=key, timeout=timeout, retries=retries)
        self._http = self._sdk.Client(**self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def screen(self, query: str | Query, passages: Iterable[Any], *, defense: str | None = None) -> Screening:
        """Say which passages to trust, as `Defense.screen`.

        Args:
            query: The user's question.
            passages: Strings, dicts, framework documents or `Passage`, in retrieval order.
            defense: One of those that the service has; its first by default.
        """
        request = Exchange(query, passages, defense)
        return request.screening(self._post("/v1/screen", request.body()))

    def answer(self, query: str | Query, passages: Iterable[Any], *, defense: str | None = None) -> Answer:
        """Answer in spite of poisoned passages, as `Defense.answer`."""
        request = Exchange(query, passages, defense)
        return request.answer(self._post("/v1/answer", request.body()))

    def stream(
        self, query: str | Query, passages: Iterable[Any], *, defense: str | None = None
    ) -> Iterator[Screening | str | Answer]:
        """`answer` as it comes, as `Defense.aanswer_stream`: a screening, pieces of text, the answer that counts."""
        request = Exchange(query, passages, defense)
        try:
            with self._http.stream("POST", "/v1/answer", json=request.body(stream=True)) as response:
                if response.status_code != 200:
                    response.read()
                    raise failure(response)
                events = Events()
                for line in response.iter_lines():
                    if (event := events.event(line)) is not None:
                        yield request.event(*event)
                events.check_end()
        except self._sdk.TransportError as error:
            raise unreachable(self._sdk, error) from None

    def rerank(
        self, query: str, documents: Iterable[str], *, top_n: int | None = None, defense: str | None = None
    ) -> list[Ranked]:
        """The documents that may be read, best first; dropped ones are not among them, unless the service demotes."""
        return read_ranking(self._post("/v2/rerank", rerank_body(query, documents, top_n, defense)))

    def _post(self, path: str, body: Any) -> Any:
        attempt = 1
        while True:
            try:
                return content(self._http.post(path, json=body))
            except (self._sdk.TransportError, RefusedError) as error:
                pause = self._pause(error, attempt)
            attempt += 1
            time.sleep(pause)


class AsyncClient(_Base):
    """`Client` for asyncio."""

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 60.0, retries: int = 2) -> None:
        super().__init__(url, key=key, timeout=timeout, retries=retries)
        self._http = self._sdk.AsyncClient(**self._options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def screen(self, query: str | Query, passages: Iterable[Any], *, defense: str | None = None) -> Screening:
        """As `Client.screen`."""
        request = Exchange(query, passages, defense)
        return request.screening(await self._post("/v1/screen", request.body()))

    async def answer(self, query: str | Query, passages: Iterable[Any], *, defense: str | None = None) -> Answer:
        """As `Client.answer`."""
        request = Exchange(query, passages, defense)
        return request.answer(await self._post("/v1/answer", request.body()))

    async def stream(
        self, query: str | Query, passages: Iterable[Any], *, defense: str | None = None
    ) -> AsyncIterator[Screening | str | Answer]:
        """As `Client.stream`."""
        request = Exchange(query, passages, defense)
        try:
            async with self._http.stream("POST", "/v1/answer", json=request.body(stream=True)) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise failure(response)
                events = Events()
                async for line in response.aiter_lines():
                    if (event := events.event(line)) is not None:
                        yield request.event(*event)
                events.check_end()
        except self._sdk.TransportError as error:
            raise unreachable(self._sdk, error) from None

    async def rerank(
        self, query: str, documents: Iterable[str], *, top_n: int | None = None, defense: str | None = None
    ) -> list[Ranked]:
        """As `Client.rerank`."""
        return read_ranking(await self._post("/v2/rerank", rerank_body(query, documents, top_n, defense)))

    async def _post(self, path: str, body: Any) -> Any:
        attempt = 1
        while True:
            try:
                return content(await self._http.post(path, json=body))
            except (self._sdk.TransportError, RefusedError) as error:
                pause = self._pause(error, attempt)
            attempt += 1
            await asyncio.sleep(pause)
