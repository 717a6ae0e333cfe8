"""Error messages for malformed flows, for authors of defenses and attacks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FrameType, GeneratorType
from typing import Any, TypeVar, get_args

from unpoison.errors import FlowError, clip
from unpoison.models import requests
from unpoison.models.requests import Flow, Request

__all__ = ["as_flow", "as_requests", "explain_error", "result_of"]

T = TypeVar("T")

WRITE = "replies = yield from generate(prompts), or vectors, replies = yield Encode(texts), Generate(prompts)"


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
    if isinstance(step, get_args(Request)):
        name = type(step).__name__
        raise FlowError(
            f"a flow yielded {name}(...) alone; write (reply,) = yield ({name}(...),) with the comma, for a flow "
            "yields a tuple of requests and is sent a tuple of replies"
        )
    if isinstance(step, GeneratorType):
        raise FlowError(f"a flow yielded {step.__name__}(...); write yield from {step.__name__}(...)")
    if not isinstance(step, (tuple, list)):
        raise FlowError(f"a flow yielded {_article(step)}; it yields a tuple of requests: {WRITE}")
    for request in step:
        if isinstance(request, GeneratorType):
            wanted = request.__name__.capitalize()
            raise FlowError(f"a flow yielded {request.__name__}(...) in a tuple; write {wanted}(...) there: {WRITE}")
        if not isinstance(request, get_args(Request)):
            raise FlowError(f"a flow yielded {_article(request)} in a tuple, which is no request: {WRITE}")
    return tuple(step)


def explain_error(error: Exception) -> Exception:
    """The error of a flow, or its cause if that is a request without `yield from`."""
    for frame, line in _frames(error):
        for name, value in frame.f_locals.items():
            if _is_pending_request(value):
                return FlowError(
                    f"{value.__name__}(...) was called without yield from, so {name!r} holds no reply; write "
                    f"{name} = yield from {value.__name__}(...) (line {line} of {frame.f_code.co_name} failed: "
                    f"{type(error).__name__}: {error})"
                )
    if isinstance(error, (AttributeError, TypeError)) and "'generator'" in str(error):
        return FlowError(f"a request was used as if it were its reply ({error}); write yield from before it: {WRITE}")
    return error


def _is_pending_request(value: object) -> bool:
    """Whether this is a request generator of this package that was never started."""
    return (
        isinstance(value, GeneratorType)
        and value.gi_code.co_filename == _OURS.co_filename
        and inspect.getgeneratorstate(value) == inspect.GEN_CREATED
    )


_OURS = requests.encode.__code__


def _frames(error: Exception) -> Iterator[tuple[FrameType, int]]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _article(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}, {clip(value, 40)}"
