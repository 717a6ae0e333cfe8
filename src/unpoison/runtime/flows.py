"""Error messages for malformed flows, for authors of defenses and attacks."""

from __future__ import annotations

from types import GeneratorType
from typing import Any, TypeVar, get_args

from unpoison.errors import FlowError, clip
from unpoison.models.requests import Flow, Request

__all__ = ["as_flow", "as_requests", "result_of"]

T = TypeVar("T")

WRITE = (
    "replies = yield from generate(prompts), (replies,) = yield (Generate(prompts),), or "
    "vectors, replies = yield Encode(texts), Generate(prompts)"
)


def as_flow(value: Flow[T], owner: object, method: str) -> Flow[T]:
    """Check that a method returned a flow.

    Raises:
        FlowError: It did not: the method has no `yield`.
    """
    if isinstance(value, GeneratorType):
        return value
    raise FlowError(
        f"{type(owner).__name__}.{method} returned {_article(value)} and is no flow: there is no yield in it. "
        "If it asks no model, put the line 'yield from ()' before its return"
    )


def result_of(value: Any, kind: type[T], owner: object, method: str) -> T:
    """Check the type of a flow's return value.

    Raises:
        FlowError: It has another type.
    """
    if isinstance(value, kind):
        return value
    raise FlowError(f"{type(owner).__name__}.{method} returned {_article(value)}; return a {kind.__name__}")


def as_requests(step: Any) -> tuple[Request, ...]:
    """Check that a flow yielded a tuple of requests.

    Raises:
        FlowError: It did not; the message says what to write.
    """
    several = isinstance(step, (tuple, list))
    for one in step if several else (step,):
        if not several or not isinstance(one, get_args(Request)):
            shown = f"{one.__name__}(...)" if isinstance(one, GeneratorType) else _article(one)
            raise FlowError(f"a flow yielded {shown}; it yields a tuple of requests: {WRITE}")
    return tuple(step)


def _article(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}, {clip(value, 40)}"
