"""OpenAI and every server with its API: vLLM, LMDeploy, Ollama, DeepSeek, Grok, Gemini, by base URL."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Reply
from unpoison.errors import ModelError, OptionError, clip
from unpoison.models.checkpoints import NamedModel, model_name
from unpoison.models.remote import Connection, RemoteGenerator, StreamPiece, at_server, check_client
from unpoison.models.responses import make_reply
from unpoison.utils.checks import MAX_SECONDS, among, at_least, within
from unpoison.utils.extras import require
from unpoison.utils.plain_text import encodable

__all__ = ["OpenAIEncoder", "OpenAIGenerator"]


class OpenAIGenerator(RemoteGenerator):
    """A chat model behind an OpenAI-compatible endpoint.

    Args:
        model: The model's name at the server, such as "gpt-4o-mini".
        base_url: The server, such as "http://localhost:11434/v1" for Ollama; None for `OPENAI_BASE_URL` or OpenAI.
        api_key: None for `OPENAI_API_KEY`. A server named by base_url may need none.
        client: Your own `openai.OpenAI` (for all calls; asyncio uses threads) or `openai.AsyncOpenAI` (for `ascreen`
            and `aanswer` only), instead of base_url and api_key.
        temperature: None omits it from the request, for models that reject it.
        seed: Sent if given; servers that support it are more reproducible.
        max_tokens: Overrides the limit of each prompt, for models that use tokens for reasoning.
        max_tokens_field: The server's name of the limit; reasoning models use "max_completion_tokens".
        extra_body: Further fields of the request, such as a switch that disables reasoning.

    Raises:
        MissingExtraError: The extra `openai` is not installed.
        OptionError: No key, or an option out of its range.
    """

    _streaming: ClassVar[Mapping[str, Any]] = {"stream": True, "stream_options": {"include_usage": True}}
    _finishes: ClassVar[Mapping[str, str]] = {"content_filter": "refusal"}

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        client: Any = None,
        *,
        temperature: float | None = 0.0,
        seed: int | None = None,
        max_tokens: int | None = None,
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        check_client(model, client, base_url, api_key, max_tokens)
        among("max_tokens_field", max_tokens_field, ("max_tokens", "max_completion_tokens"))
        given = {
            "temperature": temperature,
            "seed": seed,
            "max_tokens": max_tokens,
            # A hash, because extra fields may contain a key, and names appear in logs and reports.
            "extra_body": blake2b(repr(extra_body).encode(), digest_size=4).hexdigest() if extra_body else None,
        }
        server = base_url or os.environ.get("OPENAI_BASE_URL")
        self.name = model_name(f"openai:{model}{at_server(server, client)}", given, temperature=0.0)
        self._model, self._max_tokens, self._limit = model, max_tokens, max_tokens_field
        optional = {"temperature": temperature, "seed": seed, "extra_body": dict(extra_body) if extra_body else None}
        self._options = {name: value for name, value in optional.items() if value is not None}
        self._connection = _connection(model, server, api_key, client, _HINT)

    def _send(self, client: Any, request: dict[str, Any]) -> Any:
        return client.chat.completions.create(**request)

    def _reply(self, response: Any) -> Reply:
        choice = response.choices[0]
        text, finish = choice.message.content, str(choice.finish_reason or "stop")
        refusal = getattr(choice.message, "refusal", None)
        if isinstance(refusal, str) and refusal:
            text, finish = refusal, "refusal"
        finish = self._finishes.get(finish, finish)
        if text is None and finish in ("length", "refusal"):
            text = ""  # all tokens were used for reasoning, or a filter removed the text
        if not isinstance(text, str):
            raise ModelError(f"{clip(self._model)} replied without text (finish_reason {clip(finish)})", retryable=True)
        usage = getattr(response, "usage", None)
        tokens = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
        return make_reply(text, finish, *tokens)

    def _piece(self, part: Any) -> StreamPiece:
        usage = getattr(part, "usage", None)
        tokens = {} if usage is None else {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens}
        if not part.choices:
            return StreamPiece(tokens=tokens)
        choice = part.choices[0]
        refusal = getattr(choice.delta, "refusal", None)
        text = refusal or choice.delta.content or ""
        if not isinstance(text, str):
            raise TypeError("the text is none")
        return StreamPiece(text, "refusal" if refusal else str(choice.finish_reason or ""), tokens)


class OpenAIEncoder(NamedModel):
    """An embedding model behind an OpenAI-compatible endpoint.

    Args:
        model: The model's name at the server, such as "text-embedding-3-small".
        base_url: As for `OpenAIGenerator`.
        api_key: As for `OpenAIGenerator`.
        client: Your own `openai.OpenAI`, instead of base_url and api_key.
        dimensions: Requests shorter vectors, if the model supports them.
        batch_size: Texts per request; 32 is the limit of the strictest common servers.
        timeout: Seconds per request.

    Raises:
        MissingExtraError: The extra `openai` is not installed.
        OptionError: No key, or an option out of its range.
    """

    remote = True  # waits for a server: the driver calls it on a thread, to enforce the deadline

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        client: Any = None,
        *,
        dimensions: int | None = None,
        batch_size: int = 32,
        timeout: float = 60.0,
    ) -> None:
        check_client(model, client, base_url, api_key)
        at_least("batch_size", batch_size, 1)
        if dimensions is not None:
            at_least("dimensions", dimensions, 1)
        within("timeout", timeout, 0.001, MAX_SECONDS)
        server = base_url or os.environ.get("OPENAI_BASE_URL")
        self.name = model_name(f"openai:{model}{at_server(server, client)}", {"dimensions": dimensions})
        self.batch_size, self.timeout = batch_size, timeout
        self._model, self._dimensions = model, dimensions
        self._connection = _connection(model, server, api_key, client, "")

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Shape (n, d), rows of length 1; a blank text is not sent, and its row is 0.

        Raises:
            ModelError: The call failed, or its response does not have one finite vector for each text.
        """
        wanted = [i for i, text in enumerate(texts) if text.strip()]
        batches = [wanted[i : i + self.batch_size] for i in range(0, len(wanted), self.batch_size)]
        encoded = [self._batch([encodable(texts[i]) for i in batch]) for batch in batches]
        sizes = {vectors.shape[1] for vectors in encoded} or {self._dimensions or 1}
        if len(sizes) > 1:
            raise ModelError(f"{self.name} returned vectors of {sorted(sizes)} dimensions for one list of texts")
        vectors = np.zeros((len(texts), sizes.pop()), np.float32)
        if encoded:
            vectors[wanted] = np.concatenate(encoded)
        return vectors

    def _batch(self, texts: list[str]) -> NDArray[np.float64]:
        request: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._dimensions is not None:
            request["dimensions"] = self._dimensions

        def read(response: Any) -> NDArray[np.float64]:
            rows = sorted((item.index, item.embedding) for item in response.data)
            if [index for index, _ in rows] != list(range(len(texts))):
                raise ValueError
            vectors = np.array([embedding for _, embedding in rows], np.float64)
            if vectors.ndim != 2 or vectors.shape[1] == 0:
                raise ValueError
            return vectors

        vectors = self._connection.call(lambda client: client.embeddings.create(**request, timeout=self.timeout), read)
        if not np.isfinite(vectors).all():
            raise ModelError(f"{self.name} returned a vector that is not finite; use another model or server")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths > 0, lengths, 1.0)


_HINT = (
    "a reasoning model may need temperature=None and max_tokens_field='max_completion_tokens'; "
    "for a prompt that is too long, send fewer passages"
)


def _connection(model: str, server: str | None, api_key: str | None, client: Any, hint: str) -> Connection:
    sdk = require("openai", f"openai:{model}")
    key = api_key or os.environ.get("OPENAI_API_KEY") or ("not-needed" if server else None)
    if key is None and client is None:
        raise OptionError(
            f"no API key for {clip(model)}; set OPENAI_API_KEY, or name a server of your own, such as "
            f"base_url=http://127.0.0.1:11434/v1"
        )
    options = {name: value for name, value in (("api_key", key), ("base_url", server)) if value is not None}
    return Connection(model, sdk, (sdk.OpenAI, sdk.AsyncOpenAI), client, options, key="OPENAI_API_KEY", hint=hint)
