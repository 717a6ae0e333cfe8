"""A generator behind a model server: replies at once, for asyncio, and as they come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, ClassVar

from unpoison.models.prompts import Prompt
from unpoison.models.remote import Connection, Piece
from unpoison.types import Reply
from unpoison.utils.threads import on_thread

__all__ = ["RemoteGenerator"]


class RemoteGenerator(ABC):
    """What the generators of two SDKs share; they differ in their requests and responses only."""

    _streaming: ClassVar[Mapping[str, Any]] = {"stream": True}
    """Fields by which a request asks for its reply as it comes."""

    _finishes: ClassVar[Mapping[str, str]] = {}
    """The server's reasons for an end in the words of `Reply.finish`, where they differ."""

    _connection: Connection

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """The model's reply, cut at 65,536 characters.

        Raises:
            ModelError: The call failed or its response has no text; `retryable` says whether it may succeed later.
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
        """The reply as it comes, and then the whole; with a synchronous client it comes in one piece.

        Raises:
            ModelError: As `generate`, also in the middle.
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

    @abstractmethod
    def _request(self, prompt: Prompt, timeout: float | None) -> dict[str, Any]:
        """The arguments of the SDK's call."""

    @abstractmethod
    def _send(self, client: Any, request: dict[str, Any]) -> Any:
        """The SDK's call: a response, or with an asynchronous client what awaits one."""

    @abstractmethod
    def _reply(self, response: Any) -> Reply:
        """What a whole response says."""

    @abstractmethod
    def _piece(self, part: Any) -> Piece:
        """What a part of a streamed response says."""
