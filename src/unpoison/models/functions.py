"""A generator from a function."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from unpoison.errors import ModelError, OptionError, clip
from unpoison.models.prompts import Message, Prompt
from unpoison.types import Reply
from unpoison.utils.threads import on_thread

__all__ = ["FunctionGenerator", "GeneratorFunction"]

GeneratorFunction: TypeAlias = Callable[[list[Message]], str | Reply | Awaitable[str | Reply]]
"""A function from chat messages to text, for `FunctionGenerator`."""


class FunctionGenerator:
    """A generator from a function from chat messages to text.

        generator = FunctionGenerator(lambda messages: my_model(messages[-1]["content"]))

    The function is called from several threads concurrently, or awaited if it is asynchronous. `TimeoutError` and
    `ConnectionError` are retried; any other exception ends the answer with a `ModelError`.

    Args:
        function: Takes messages, `[{"role": "system", "content": ...}, {"role": "user", ...}]`, and returns the text
            or a `Reply`; may be `async def`.
        name: Its name in records of calls and in caches; None for the function's name.

    Raises:
        OptionError: The function cannot be called with one argument.
    """

    def __init__(self, function: GeneratorFunction, *, name: str | None = None) -> None:
        self.name = name or f"function:{getattr(function, '__name__', type(function).__name__)}"
        self._function = function
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # functions not written in Python may have no signature
            return
        try:
            signature.bind([])
        except TypeError:
            raise OptionError(
                f"a generator is called with one argument, the list of messages, and {self.name} takes {signature}; "
                "write it as def generate(messages)"
            ) from None

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """The result of the function; only an asynchronous one is cancelled after `timeout` seconds.

        Raises:
            ModelError: It returned neither a string nor a `Reply`.
        """
        result = self._function(prompt.messages())
        return self._reply(asyncio.run(_await_result(result, timeout)) if inspect.isawaitable(result) else result)

    async def agenerate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """`generate` for asyncio; a synchronous function runs on a thread."""
        if inspect.iscoroutinefunction(self._function):
            return self._reply(await _await_result(self._function(prompt.messages()), timeout))
        return await on_thread(lambda: self.generate(prompt, timeout=timeout))

    def _reply(self, result: object) -> Reply:
        if isinstance(result, str):
            return Reply(result)
        if not isinstance(result, Reply):
            raise ModelError(f"{self.name} must return a string or a Reply, got {clip(result)}")
        return result

    def __repr__(self) -> str:
        return f"FunctionGenerator({self.name!r})"


async def _await_result(result: Awaitable[Any], timeout: float | None) -> Any:
    async with asyncio.timeout(timeout):
        return await result
