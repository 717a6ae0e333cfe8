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
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from unpoison.errors import DeadlineError, InputError, ModelError, OptionError, StoreError, UnpoisonError, clip
from unpoison.types import (
    Answer,
    Passage,
    Query,
    Screening,
    as_passages,
    as_query,
)
from unpoison.utils.closing import Closing
from unpoison.utils.extras import require

__all__ = [
    "AsyncClient",
    "Client",
    "Events",
    "Exchange",
    "Ranked",
    "RefusedError",
    "content",
    "failure",
    "read_ranking",
    "rerank_body",
    "unreachable",
]

AGAIN = (429, 503)
"""What the service refuses before it did anything."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One document that may be read: its position in the request, and a score in (0, 1] that says the order."""

    index: int
    score: float


class Exchange:
    """A question and its passages, as they are sent and as they come back."""

    def __init__(self, query: str | Query, passages: Iterable[Any], defense: str | None) -> None:
        self.query, self.passages, self.defense = as_query(query), as_passages(passages), defense

    def body(self, **more: Any) -> dict[str, Any]:
        body: dict[str, Any] = {
            "query": self.query.text,
            "passages": [_passage_fields(p) for p in self.passages],
            **more,
        }
        if self.query.embedding is not None:
            body["embedding"] = self.query.embedding.tolist()
        return body if self.defense is None else {**body, "defense": self.defense}

    def event(self, name: str, data: Any) -> Screening | str | Answer:
        match name:
            case "screening":
                return self.screening(data)
            case "text":
                return str(data["text"])
            case "answer":
                return self.answer(data)
            case "error":
                raise _remote_error(data, None)
        raise _unreadable()

    def screening(self, data: Any) -> Screening:
        """The caller's own passages with the service's verdicts."""
        try:
            return Screening.from_dict({**data["screening"], "query": self.query.text, "passages": self.passages})
        except (KeyError, TypeError, ValueError) as error:
            raise _unreadable(error) from None

    def answer(self, data: Any) -> Answer:
        screening = self.screening(data)
        try:
            return Answer.from_dict(data["answer"], screening)
        except (KeyError, TypeError, ValueError) as error:
            raise _unreadable(error) from None


class Events:
    """Server-sent events, line by line."""

    def __init__(self) -> None:
        self._name, self._last = "", ""

    def event(self, line: str) -> tuple[str, Any] | None:
        """The event that a line completes."""
        if line.startswith("event: "):
            self._name = self._last = line.removeprefix("event: ")
        if not line.startswith("data: "):
            return None
        try:
            return self._name, json.loads(line.removeprefix("data: "))
        except ValueError:
            raise _unreadable() from None

    def check_end(self) -> None:
        """Say so where the stream broke off."""
        if self._last != "answer":
            raise ModelError("the service broke off in its answer; ask again", retryable=True)


def _passage_fields(passage: Passage) -> dict[str, Any]:
    fields = passage.to_dict()
    return fields if passage.embedding is None else {**fields, "embedding": passage.embedding.tolist()}


def rerank_body(query: str, documents: Iterable[str], top: int | None, defense: str | None) -> dict[str, Any]:
    """The body of a rerank request."""
    return {"model": defense or "default", "query": query, "documents": list(documents), "top_n": top}


def read_ranking(data: Any) -> list[Ranked]:
    """What a rerank request is replied with."""
    try:
        return [Ranked(int(row["index"]), float(row["relevance_score"])) for row in data["results"]]
    except (KeyError, TypeError, ValueError):
        raise _unreadable() from None


class RefusedError(ModelError):
    """Refused before anything was done: the same request may be sent again."""


def content(response: Any) -> Any:
    """The content of a response.

    Raises:
        UnpoisonError: It is a failure.
    """
    if response.status_code != 200:
        raise failure(response)
    try:
        return response.json()
    except ValueError:
        raise _unreadable() from None


def failure(response: Any) -> UnpoisonError:
    """A reply that is no success, as the library would raise it."""
    try:
        data = response.json()
    except ValueError:
        data = None
    wait = response.headers.get("retry-after", "")
    after = float(wait) if wait.isascii() and wait.isdigit() and len(wait) < 6 else None
    if response.status_code in AGAIN:
        return RefusedError(_sentence(data, response.status_code), retryable=True, retry_after=after)
    return _remote_error(data, response.status_code)


def _remote_error(data: Any, status: int | None) -> UnpoisonError:
    kind = data["error"].get("type") if isinstance(data, Mapping) and isinstance(data.get("error"), Mapping) else None
    message = _sentence(data, status)
    if kind in ("DeadlineError", "Timeout") or status == 504:
        return DeadlineError(message, retryable=True)
    if kind == "StoreError":
        return StoreError(message)
    if kind in ("OptionError", "UnknownNameError", "NoGenerator") or status in (401, 403, 404, 421):
        return OptionError(message)
    if status in (400, 413, 415, 422):
        return InputError(message)
    return ModelError(message, retryable=status in (None, 500, 502))


def _sentence(data: Any, status: int | None) -> str:
    error = data.get("error") if isinstance(data, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else None
    reply = f"it says: {clip(message, 300)}" if isinstance(message, str) else "check its address"
    return f"the service replied with {'an error' if status is None else status}; {reply}"


def unreachable(sdk: Any, error: Exception) -> ModelError:
    """What the transport of a client raised, in our words."""
    if isinstance(error, sdk.TimeoutException):
        return DeadlineError("the service did not reply in time; raise timeout, or send fewer passages", retryable=True)
    return ModelError(f"the service cannot be reached ({type(error).__name__}); check its address", retryable=True)


def _unreadable(error: Exception | None = None) -> ModelError:
    why = "" if error is None else f" ({type(error).__name__}: {clip(str(error), 200)})"
    return ModelError(f"what replied is no unpoison service that this client can read{why}; check the address")


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


class Client(_Base, Closing):
    """See the module; the arguments are those of `_Base`, and safe for several threads."""

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 60.0, retries: int = 2) -> None:
        super().__init__(url, key=key, timeout=timeout, retries=retries)
        self._http = self._sdk.Client(**self._options)

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
