"""Models of Anthropic's Messages API."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from unpoison.core.answers import Reply
from unpoison.errors import ModelError, clip
from unpoison.models.checkpoints import model_name
from unpoison.models.prompts import Prompt
from unpoison.models.remote import Connection, RemoteGenerator, StreamPiece, at_server, check_client
from unpoison.models.responses import make_reply
from unpoison.utils.extras import require

__all__ = ["AnthropicGenerator"]


class AnthropicGenerator(RemoteGenerator):
    """A model of Anthropic's Messages API.

    Args:
        model: The model's name.
        api_key: None for `ANTHROPIC_API_KEY`, or the SDK's other sources.
        client: Your own `anthropic.Anthropic` (for all calls; asyncio uses threads) or `anthropic.AsyncAnthropic` (for
            `ascreen` and `aanswer` only), instead of api_key and base_url.
        base_url: None for `ANTHROPIC_BASE_URL` or Anthropic.
        temperature: None omits it from the request, for models that reject it.
        max_tokens: Overrides the limit of each prompt.

    Raises:
        MissingExtraError: The extra `anthropic` is not installed.
        OptionError: An option out of its range.
    """

    _finishes: ClassVar[Mapping[str, str]] = {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
    }

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
        check_client(model, client, base_url, api_key, max_tokens)
        sdk = require("anthropic", f"anthropic:{model}")
        given = {"temperature": temperature, "max_tokens": max_tokens}
        server = base_url or os.environ.get("ANTHROPIC_BASE_URL")
        self.name = model_name(f"anthropic:{model}{at_server(server, client)}", given, temperature=0.0)
        self._model, self._max_tokens = model, max_tokens
        # The SDK no longer has the parameter, the API does.
        self._options = {} if temperature is None else {"extra_body": {"temperature": temperature}}
        options = {name: value for name, value in (("api_key", api_key), ("base_url", server)) if value is not None}
        classes = (sdk.Anthropic, sdk.AsyncAnthropic)
        hint = "a model that refuses temperature needs temperature=None; if too long, send fewer passages"
        self._connection = Connection(model, sdk, classes, client, options, key="ANTHROPIC_API_KEY", hint=hint)

    def _request(self, prompt: Prompt, timeout: float | None) -> dict[str, Any]:
        request = super()._request(prompt, timeout)
        system = "\n\n".join(one["content"] for one in request["messages"] if one["role"] == "system")
        messages = [one for one in request["messages"] if one["role"] != "system"]
        return {**request, "system": system, "messages": messages}

    def _send(self, client: Any, request: dict[str, Any]) -> Any:
        return client.messages.create(**request)

    def _reply(self, response: Any) -> Reply:
        text = "".join(block.text for block in response.content if block.type == "text")
        finish = str(response.stop_reason or "stop")
        finish = self._finishes.get(finish, finish)
        if not text and finish not in ("stop", "length", "refusal"):
            raise ModelError(f"{clip(self._model)} replied without text (stop_reason {clip(finish)})", retryable=True)
        usage = getattr(response, "usage", None)
        return make_reply(text, finish, getattr(usage, "input_tokens", None), getattr(usage, "output_tokens", None))

    def _piece(self, part: Any) -> StreamPiece:
        if part.type == "content_block_delta" and part.delta.type == "text_delta":
            if not isinstance(part.delta.text, str):
                raise TypeError("the text is none")
            return StreamPiece(part.delta.text)
        if part.type == "message_start":
            return StreamPiece(tokens={"prompt": getattr(part.message.usage, "input_tokens", None)})
        if part.type == "message_delta":
            tokens = {"completion": getattr(part.usage, "output_tokens", None)}
            return StreamPiece(finish=str(part.delta.stop_reason or ""), tokens=tokens)
        return StreamPiece()
