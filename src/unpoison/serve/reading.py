"""Reads the body of a request: counts its values before parsing, and validates it up to the first error.

A long body is read on a thread of its own, so that other requests, and `/healthz`, are answered meanwhile. A body of 8
MiB may hold four million numbers or three million objects, which take hundreds of megabytes once they are parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, get_type_hints

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from unpoison.errors import InputError
from unpoison.io.file_rows import CONTAINER, KEY, TEXT, count_values
from unpoison.serve.bounds import Bounds
from unpoison.serve.replies import HTTP, Refusal
from unpoison.serve.schemas import MAX_RANK_FIELDS, MAX_TRUST

__all__ = ["BodyRoute", "read_body"]

MAX_FIELDS = 64
"""Fields of a body."""

WATCHED = 10
"""In monitor mode, a request may have up to this many times the passages, and is passed through unscreened."""

LISTS = ("passages", "documents", "texts")
"""Fields with one entry for each passage."""

LENGTHS = {"rank_fields": MAX_RANK_FIELDS, "trust": MAX_TRUST}
"""Maximum entries of other fields, checked before they are read one by one."""


def read_body(body: bytes, adapter: TypeAdapter[Any], bounds: Bounds, *, watched: bool = False) -> Any:
    """The validated body of a request.

    Args:
        body: JSON.
        adapter: Of the schema.
        bounds: Limits.
        watched: Whether too many passages are passed through, in monitor mode, up to `WATCHED` times as many.

    Raises:
        Refusal: It is not JSON.
        InputError: It has more values, fields or passages than are taken.
        RequestValidationError: It violates the schema; only the first error is reported.
    """
    if (count := count_values(body)) > bounds.values:
        raise InputError(
            f"the body has about {count:,} values and at most {bounds.values:,} are taken, a text being {TEXT}, "
            f"a key {KEY} and a list or an object {CONTAINER}; send fewer or shorter passages"
        )
    try:
        value = from_json(body, cache_strings="keys")  # texts differ, and the cache would take longer than they do
    except ValueError:
        raise Refusal(400, *HTTP[400]) from None
    if isinstance(value, dict):
        if len(value) > MAX_FIELDS:
            raise InputError(f"the body has {len(value):,} fields and at most {MAX_FIELDS} are taken; leave some out")
        for name in LISTS:
            if isinstance(held := value.get(name), list):
                bounds.check_number(len(held) // (WATCHED if watched else 1), name)
        for name, most in LENGTHS.items():
            if isinstance(held := value.get(name), (list, dict)) and len(held) > most:
                raise InputError(f"{name} has {len(held):,} entries and at most {most} are taken; leave some out")
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in problems]) from None


class _Read(Request):
    """A request with a body that was already received."""

    def __init__(self, request: Request, value: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._value = value

    async def body(self) -> bytes:
        return b"{}"

    async def json(self) -> Any:
        return self._value


class BodyRoute(APIRoute):
    """A route that reads its parameter `body` by `read_body`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle
        adapter = TypeAdapter[Any](get_type_hints(self.endpoint, include_extras=True)["body"])

        async def read_first(request: Request) -> Response:
            return await handle(_Read(request, await _value(request, adapter)))

        return read_first


async def _value(request: Request, adapter: TypeAdapter[Any]) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # others pass without a CORS preflight
        message = "the body must be JSON and say so; send the header Content-Type: application/json"
        raise Refusal(415, "UnsupportedMediaType", message)
    service = request.app.state.service
    body: bytes = (await request.receive())["body"]  # the whole, as the middleware received it; held only here
    request.state.size = len(body)
    watched = request.scope["path"] in request.state.middleware.watched
    read = partial(read_body, body, adapter, service.bounds, watched=watched)
    return await service.work.aside(len(body), read)
