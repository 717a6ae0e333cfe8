"""Shared by the adapters to model servers: clients, translation of errors, and validated replies.

The SDKs of OpenAI and Anthropic come from the same code generator: their clients, options and exceptions have the same
names, so one translation works for both.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any, ClassVar, NamedTuple, TypeVar
from urllib.parse import urlsplit
from weakref import finalize

from unpoison.core.answers import Reply
from unpoison.errors import ModelError, OptionError, clip
from unpoison.models import responses
from unpoison.models.checkpoints import NamedModel
from unpoison.models.prompts import Prompt
from unpoison.utils.checks import at_least, on_this_machine, web_address
from unpoison.utils.plain_text import encodable
from unpoison.utils.threads import on_thread

__all__ = ["Connection", "RemoteGenerator", "StreamPiece", "at_server", "check_client"]

T = TypeVar("T")


class StreamPiece(NamedTuple):
    """A part of a streamed response: text, the finish reason, and token counts so far."""

    text: str = ""
    finish: str = ""
    tokens: Mapping[str, Any] = {}


class Connection:
    """The clients of one SDK. The SDK never retries, because the driver does, and two policies would multiply.

    Redirects are not followed: the prompts would go to a host that the user did not name.

    Args:
        model: The model's name, for error messages.
        sdk: The SDK's module.
        classes: Its synchronous and its asynchronous client class.
        client: The user's own client of either class, or None.
        options: Arguments of the clients, if the user gave none.
        key: The environment variable of the key.
        hint: Advice if the server rejects a request as malformed.

    Raises:
        OptionError: No key, or an invalid address.
    """

    def __init__(
        self,
        model: str,
        sdk: Any,
        classes: tuple[Any, Any],
        client: Any,
        options: dict[str, Any],
        *,
        key: str,
        hint: str = "",
    ) -> None:
        local = "base_url" in options and on_this_machine(web_address("base_url", options["base_url"]))
        http = {"trust_env": not local, "follow_redirects": False}
        self._model, self._sdk, self._key, self._hint = model, sdk, key, hint
        self._given = None if client is None else client.with_options(max_retries=0)
        self._given_async = isinstance(client, classes[1])
        self._make_async: Callable[[], Any] = lambda: classes[1](
            max_retries=0,
            http_client=sdk.DefaultAsyncHttpxClient(**http, event_hooks={"response": [responses.bound_async]}),
            **options,
        )
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[None, None]]] = {}
        try:
            self._client = self._given or classes[0](
                max_retries=0,
                http_client=sdk.DefaultHttpxClient(**http, event_hooks={"response": [responses.bound]}),
                **options,
            )
        except Exception as error:  # the SDKs check little but the key here, each with a class of its own
            raise OptionError(f"cannot make a client for {clip(model)}: {error}; set {key} or pass api_key") from None
        if client is None:  # the collector may finalise a socket before the client that would close it
            finalize(self, self._client.close)

    @property
    def synchronous(self) -> bool:
        """Whether only a synchronous client was given, so that asyncio needs a thread."""
        return self._given is not None and not self._given_async

    def call(self, ask: Callable[[Any], Any], read: Callable[[Any], T]) -> T:
        """Call the synchronous client and parse the response.

        Raises:
            ModelError: The call failed, or its response is malformed.
            OptionError: Only an asynchronous client was given.
        """
        if self._given_async:
            raise OptionError(
                f"{clip(self._model)} was given an asynchronous client, which serves ascreen and aanswer only; "
                "pass a synchronous one for screen and answer"
            )
        with self._translate_errors():
            response = ask(self._client)
        return self._parse_response(response, read)

    async def acall(
        self, ask: Callable[[Any], Awaitable[Any]], read: Callable[[Any], T], timeout: float | None = None
    ) -> T:
        """`call` with the asynchronous client."""
        client = self._given if self._given_async else await self._client_of_loop()
        with self._translate_errors():
            async with asyncio.timeout(timeout):  # the SDK's own bounds each read, not the whole
                response = await ask(client)
        return self._parse_response(response, read)

    async def astream(
        self, ask: Callable[[Any], Awaitable[Any]], read: Callable[[Any], StreamPiece], finishes: Mapping[str, str]
    ) -> AsyncGenerator[str | Reply, None]:
        """Stream the text of a response, then yield the whole reply, truncated at 65,536 characters.

        Args:
            ask: Calls the asynchronous client.
            read: Parses a part of the response.
            finishes: Maps the server's finish reasons to those of `Reply.finish`.

        Raises:
            ModelError: The call failed, at the beginning or later, or a part is malformed.
        """
        client = self._given if self._given_async else await self._client_of_loop()
        text, finish, tokens = "", "", dict[str, Any]()
        with self._translate_errors():
            response = await ask(client)
            try:
                async for part in response:
                    checked = self._parse_response(part, read)
                    finish, tokens = checked.finish or finish, {**tokens, **checked.tokens}
                    if piece := encodable(checked.text)[: responses.MAX_REPLY_CHARS - len(text)]:
                        text += piece
                        yield piece
                    if len(text) >= responses.MAX_REPLY_CHARS:
                        finish = "length"
                        break
            finally:
                await response.close()
        if not finish:
            raise ModelError(f"{clip(self._model)} broke off in its reply", retryable=True)
        yield responses.make_reply(text, finishes.get(finish, finish), tokens.get("prompt"), tokens.get("completion"))

    async def _client_of_loop(self) -> Any:
        """One client for each event loop, because connections cannot be shared between loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            for earlier_loop in list(self._by_loop):
                if earlier_loop.is_closed():
                    self._by_loop.pop(earlier_loop, None)
            client = self._make_async()
            closing = _close_with_loop(client)
            self._by_loop[loop] = client, closing
            await anext(closing)
        return self._by_loop[loop][0]

    def _parse_response(self, response: Any, read: Callable[[Any], T]) -> T:
        """The SDKs do not check the servers' JSON, so any field may be missing or of another type."""
        try:
            return read(response)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise self._response_error() from None

    def _response_error(self) -> ModelError:
        return ModelError(
            f"the server of {clip(self._model)} at {self._address()} sent a response that its API does not define; "
            "check base_url (most end in /v1)",
            retryable=True,
        )

    def _length_error(self) -> ModelError:
        return ModelError(
            f"the server of {clip(self._model)} at {self._address()} sent more than the {responses.MAX_REPLY_BYTES:,} "
            "bytes that are read; check base_url, or send fewer texts at a time"
        )

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate the SDK's exceptions. They are not chained, because their requests contain the key."""
        try:
            yield
        except self._sdk.APIStatusError as error:
            raise self._status_error(error) from None
        except (self._sdk.APITimeoutError, TimeoutError):
            raise ModelError(f"{clip(self._model)} did not reply in time", retryable=True) from None
        except self._sdk.APIConnectionError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise ModelError(f"{clip(self._model)} did not reply in time", retryable=True) from None
            if isinstance(error.__cause__, responses.TooLongError):
                raise self._length_error() from None
            raise ModelError(
                f"the connection to {self._address()} failed; check base_url and the network", retryable=True
            ) from None
        except responses.TooLongError:
            raise self._length_error() from None
        except (TypeError, UnicodeEncodeError) as error:  # a header holds ASCII
            if isinstance(error, TypeError) and "authentication" not in str(error):
                raise
            raise OptionError(f"no API key for {clip(self._model)}; set {self._key} or pass api_key=...") from None
        except (self._sdk.APIError, ValueError, RecursionError):  # no JSON, or with too long a number, or too deep
            raise self._response_error() from None

    def _status_error(self, error: Any) -> ModelError:
        """The error for a status of 400 or above, with advice."""
        status, model, words = error.status_code, clip(self._model), self._words(error)
        if 300 <= status < 400:
            return ModelError(
                f"{self._address()} redirects ({status}), which is not followed; if you trust the other address, give "
                "it as base_url"
            )
        if status == 401:
            return ModelError(f"the server refused the API key for {model} (401); check {self._key} or api_key=...")
        if status == 403:
            return ModelError(f"the API key may not use {model} (403); ask for access or choose another model")
        if status == 404:
            return ModelError(f"{self._address()} has no {model} or no path (404); check the model's name and base_url")
        if status == 429 and getattr(error, "code", None) == "insufficient_quota":
            return ModelError(f"the account of {model} has no quota left (429); add credit or use another key")
        if status in (408, 409, 429) or status >= 500:
            wait = responses.retry_after(error.response.headers.get("retry-after"))
            return ModelError(f"the server of {model} cannot reply ({status}){words}", retryable=True, retry_after=wait)
        hint = f"; {self._hint}" if self._hint else ""
        return ModelError(f"the server refused the request to {model} ({status}){words}{hint}")

    def _words(self, error: Any) -> str:
        """The server's own message, truncated, without the key."""
        body = error.body if isinstance(error.body, dict) else {}
        inner = body.get("error")
        message = inner.get("message") if isinstance(inner, dict) else body.get("message")
        if not isinstance(message, str):
            return ""
        key = getattr(self._client, "api_key", None)
        return f": {clip(message.replace(key, '[key]') if key else message, 300)}"

    def _address(self) -> str:
        """The server's address, without possible secrets."""
        parts = urlsplit(str(self._client.base_url))
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"


async def _close_with_loop(client: Any) -> AsyncGenerator[None, None]:
    """Close the client when its event loop shuts down, because a loop finalises its asynchronous generators."""
    try:
        yield
    finally:
        await client.close()


def at_server(base_url: object, client: Any = None) -> str:
    """The server in the name of a model, with its path and without a password; "" for the SDK's own.

    Two servers may have different models of one name, and the name is in the key of cached replies. A path of only
    `/v1`, which most have, is left out.
    """
    if client is not None:
        base_url = str(getattr(client, "base_url", ""))
    if not isinstance(base_url, str) or not base_url:
        return ""
    parts = urlsplit(base_url if client is not None else web_address("base_url", base_url))
    path = parts.path.rstrip("/")
    server = parts.netloc.rpartition("@")[2] + ("" if path == "/v1" else path)
    return "" if server in ("api.openai.com", "api.anthropic.com") else f"@{server}"


def check_client(
    model: object, client: object, base_url: object, api_key: object, max_tokens: int | None = None
) -> None:
    """Reject inconsistent arguments.

    Raises:
        OptionError: No model name, a client together with base_url or api_key, or no room for a reply.
    """
    if not isinstance(model, str) or not model:
        raise OptionError(f"model must be the model's name at the server, got {clip(model)}")
    if client is not None and (base_url is not None or api_key is not None):
        raise OptionError("pass either client= or base_url= and api_key=, not both; a client has its own")
    if max_tokens is not None:
        at_least("max_tokens", max_tokens, 1)


class RemoteGenerator(NamedModel, ABC):
    """Base of the generators of two SDKs, which differ only in their requests and responses."""

    _streaming: ClassVar[Mapping[str, Any]] = {"stream": True}
    """Fields of a streaming request."""

    _finishes: ClassVar[Mapping[str, str]] = {}
    """Maps the server's finish reasons to those of `Reply.finish`."""

    _connection: Connection
    _model: str
    _max_tokens: int | None
    _limit: str = "max_tokens"
    _options: Mapping[str, Any]

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """The model's reply, truncated at 65,536 characters.

        Raises:
            ModelError: The call failed or its response has no text; `retryable` tells whether a retry may succeed.
            OptionError: No key was found.
        """
        request = self._request(prompt, timeout)
        return self._connection.call(lambda client: self._send(client, request), self._reply)

    async def agenerate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """`generate` for asyncio."""
        if self._connection.synchronous:
            return await on_thread(lambda: self.generate(prompt, timeout=timeout))
        request = self._request(prompt, timeout)
        return await self._connection.acall(lambda client: self._send(client, request), self._reply, timeout)

    async def astream(self, prompt: Prompt, /, *, timeout: float | None = None) -> AsyncIterator[str | Reply]:
        """Stream the reply, then yield it whole; with a synchronous client in one piece.

        Raises:
            ModelError: As `generate`, also during the stream.
        """
        if self._connection.synchronous:
            reply = await self.agenerate(prompt, timeout=timeout)
            yield reply.text
            yield reply
            return
        request = {**self._request(prompt, timeout), **self._streaming}
        pieces = self._connection.astream(lambda client: self._send(client, request), self._piece, self._finishes)
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    def _request(self, prompt: Prompt, timeout: float | None) -> dict[str, Any]:
        """The arguments of the SDK's call."""
        messages = [{**message, "content": encodable(message["content"])} for message in prompt.messages()]
        timed = {} if timeout is None else {"timeout": timeout}
        most = self._max_tokens or prompt.max_tokens
        return {"model": self._model, "messages": messages, self._limit: most, **self._options, **timed}

    @abstractmethod
    def _send(self, client: Any, request: dict[str, Any]) -> Any:
        """The SDK's call: a response, or an awaitable with an asynchronous client."""

    @abstractmethod
    def _reply(self, response: Any) -> Reply:
        """Parse a whole response."""

    @abstractmethod
    def _piece(self, part: Any) -> StreamPiece:
        """Parse a part of a streamed response."""
