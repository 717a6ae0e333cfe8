"""Anthropic's models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from unpoison.errors import ModelError, OptionError, shown
from unpoison.extras import require
from unpoison.models.checkpoints import encodable
from unpoison.models.remote import Connection, Piece, named, received
from unpoison.prompts import Prompt
from unpoison.threads import on_thread
from unpoison.types import Reply

__all__ = ["AnthropicGenerator"]

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
"""Anthropic's stop reasons in the words of `Reply.finish`."""


class AnthropicGenerator:
    """A model of Anthropic's Messages API.

    Args:
        model: The model's name.
        api_key: None for `ANTHROPIC_API_KEY`, or whatever else the SDK finds.
        client: Your own `anthropic.Anthropic` (serves everything, asyncio by threads) or `anthropic.AsyncAnthropic`
            (serves `ascreen` and `aanswer`), instead of api_key and base_url.
        base_url: None for `ANTHROPIC_BASE_URL` or Anthropic.
        temperature: None leaves it out of the request, for models that refuse it.
        max_tokens: Instead of what each prompt allows.

    Raises:
        MissingExtraError: The extra `anthropic` is not installed.
        OptionError: An option out of its range.
    """

    def __init__(
        self,
        model: str,
        api_key: str | None = None,
        client: Any = None,
        *,
        base_url: str | None = None,
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise OptionError(f"model must be the model's name, got {shown(model)}")
        if max_tokens is not None and max_tokens < 1:
            raise OptionError(f"max_tokens must be at least 1 or None, got {max_tokens}")
        if client is not None and (base_url is not None or api_key is not None):
            raise OptionError("pass either client= or base_url= and api_key=, not both; a client has its own")
        sdk = require("anthropic", f"anthropic:{model}")
        given = {"temperature": temperature, "max_tokens": max_tokens}
        self.name = named("anthropic", model, given, base_url=base_url, temperature=0.0)
        self._model, self._max_tokens = model, max_tokens
        # The SDK has dropped the parameter, the API has not.
        self._extra = {} if temperature is None else {"extra_body": {"temperature": temperature}}
        options = {name: value for name, value in (("api_key", api_key), ("base_url", base_url)) if value is not None}
        self._connection = Connection(
            model,
            sdk,
            (sdk.Anthropic, sdk.AsyncAnthropic),
            client,
            options,
            key="ANTHROPIC_API_KEY",
            hint="a model that refuses temperature needs temperature=None; if too long, send fewer passages",
        )

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """The model's reply, cut at 65,536 characters.

        Raises:
            ModelError: The call failed or its response has no text; `retryable` says whether it may succeed later.
            OptionError: No key was found.
        """
        request = self._request(prompt, timeout)
        return self._connection.call(lambda client: client.messages.create(**request), self._reply)

    async def agenerate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """`generate` for asyncio."""
        if self._connection.synchronous:
            return await on_thread(lambda: self.generate(prompt, timeout=timeout))
        request = self._request(prompt, timeout)
        return await self._connection.acall(lambda client: client.messages.create(**request), self._reply, timeout)

    async def astream(self, prompt: Prompt, /, *, timeout: float | None = None) -> AsyncIterator[str | Reply]:
        """The reply as it comes, and then the whole; with a synchronous client it comes in one piece.

        Raises:
            ModelError: As `generate`, also in the middle.
        """
        if self._connection.synchronous:
            reply = await self.agenerate(prompt, timeout=timeout)
            yield reply.text
            yield reply
            return
        request = {**self._request(prompt, timeout), "stream": True}
        ask = lambda client: client.messages.create(**request)  # noqa: E731
        async with aclosing(self._connection.astream(ask, _piece, _FINISH)) as stream:
            async for piece in stream:
                yield piece

    def _request(self, prompt: Prompt, timeout: float | None) -> dict[str, Any]:
        messages = [{**message, "content": encodable(message["content"])} for message in prompt.messages()]
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        return {
            "model": self._model,
            "system": system,
            "messages": [message for message in messages if message["role"] != "system"],
            "max_tokens": self._max_tokens or prompt.max_tokens,
            **self._extra,
            **({} if timeout is None else {"timeout": timeout}),
        }

    def _reply(self, message: Any) -> Reply:
        text = "".join(block.text for block in message.content if block.type == "text")
        finish = str(message.stop_reason or "stop")
        finish = _FINISH.get(finish, finish)
        if not text and finish not in ("stop", "length", "refusal"):
            raise ModelError(f"{shown(self._model)} replied without text (stop_reason {shown(finish)})", retryable=True)
        usage = getattr(message, "usage", None)
        return received(text, finish, getattr(usage, "input_tokens", None), getattr(usage, "output_tokens", None))

    def __repr__(self) -> str:
        return f"AnthropicGenerator({self._model!r})"


def _piece(event: Any) -> Piece:
    """An event of a streamed message."""
    if event.type == "content_block_delta" and event.delta.type == "text_delta":
        if not isinstance(event.delta.text, str):
            raise TypeError("the text is none")
        return Piece(event.delta.text)
    if event.type == "message_start":
        return Piece(tokens={"prompt": getattr(event.message.usage, "input_tokens", None)})
    if event.type == "message_delta":
        tokens = {"completion": getattr(event.usage, "output_tokens", None)}
        return Piece(finish=str(event.delta.stop_reason or ""), tokens=tokens)
    return Piece()
