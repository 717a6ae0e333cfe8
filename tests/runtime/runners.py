"""What tests of the driver run: both of its forms, and generators made of a function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from unpoison.core.answers import Reply
from unpoison.models.prompts import Prompt, answer_prompt
from unpoison.runtime.driver import Limits, arun, run


def run_asynchronously(*arguments: Any) -> Any:
    return asyncio.run(arun(*arguments))


both = pytest.mark.parametrize("runner", [run, run_asynchronously])


Runner = Callable[..., Any]


FAST = Limits(backoff=0.001)


PROMPTS = [answer_prompt(f"item {i}?", [f"text {i}"]) for i in range(20)]


class Synchronous:
    """A generator without an asynchronous call, made of a function of the prompt."""

    name = "plain"

    def __init__(self, function: Callable[[Prompt], Any]) -> None:
        self.function = function

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        return self.function(prompt)


class Batched(Synchronous):
    name = "batched"

    def generate_batch(self, prompts: Sequence[Prompt], /, *, timeout: float | None = None) -> list[Reply]:
        return self.function(prompts)


def raising(script: list[Any]) -> Callable[[Prompt], Any]:
    """A function that returns or raises what the script says, one after the other."""
    steps = iter(script)

    def function(_: Prompt) -> Any:
        step = next(steps)
        if isinstance(step, BaseException):
            raise step
        return step

    return function
