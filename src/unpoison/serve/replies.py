"""JSON replies; errors are `{"error": {"type", "message"}}` with the matching status."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as AnyHTTPException

from unpoison import errors
from unpoison.utils.plain_text import plain

__all__ = ["Json", "Refusal", "failure_reply", "install"]


class Json(JSONResponse):
    """A reply whose content is escaped JSON."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


STATUS: Mapping[type[errors.UnpoisonError], int] = {
    **dict.fromkeys((errors.InputError, errors.OptionError, errors.UnknownNameError), 422),
    errors.StoreError: 503,
    errors.DeadlineError: 504,
    errors.ModelError: 502,
}
"""Status and type by error class; the first match is used."""

HTTP: Mapping[int, tuple[str, str]] = {
    400: ("InvalidBody", "the body is no JSON that can be read; send one JSON object"),
    404: ("NotFound", "there is nothing at this address; GET /openapi.json lists what there is"),
    405: ("MethodNotAllowed", "this address does not take this method; GET /openapi.json lists what there is"),
}
"""Messages for requests that the framework itself refuses."""


class Refusal(HTTPException):
    """A refused request; the middleware turns it into a reply.

    Attributes:
        kind: The error's type in the reply.
    """

    def __init__(self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, message, headers)
        self.kind = kind


def failure_reply(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Json:
    """The reply for a failure."""
    return Json({"error": {"type": kind, "message": message}}, status, headers)


def install(app: FastAPI) -> None:
    """Register the error handlers."""
    app.add_exception_handler(RequestValidationError, _reject_malformed)
    app.add_exception_handler(AnyHTTPException, _refuse)
    app.add_exception_handler(errors.UnpoisonError, _ours)


async def _ours(request: Request, error: Exception) -> Json:
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
    wait = getattr(error, "retry_after", None)
    headers = {"Retry-After": str(ceil(wait))} if wait is not None else None
    return _log_failure(request, status, type(error).__name__, str(error), headers)


async def _refuse(request: Request, error: Exception) -> Json:
    assert isinstance(error, AnyHTTPException)  # noqa: S101  it is installed for these
    if isinstance(error, Refusal):
        raise error
    kind, message = HTTP.get(error.status_code, ("Refused", str(error.detail)))
    return _log_failure(request, error.status_code, kind, message, error.headers)


async def _reject_malformed(request: Request, error: Exception) -> Json:
    assert isinstance(error, RequestValidationError)  # noqa: S101  it is installed for these
    first = min(error.errors(), key=lambda problem: len(problem["loc"]))
    return _log_failure(request, 422, "InputError", _sentence(first))


def _log_failure(
    request: Request, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> Json:
    """The reply for a failure, whose type is also written to the access log."""
    request.state.record.error = kind
    return failure_reply(status, kind, message, headers)


def _sentence(problem: Mapping[str, Any]) -> str:
    """A sentence such as: passages[3].embedding[0] should be a finite number, got 'x'."""
    where, value = _path_of(problem["loc"]), problem.get("input")
    if problem["type"] == "missing":
        return f"{where} is missing; GET /openapi.json describes the body"
    if problem["type"] == "extra_forbidden":
        return f"{where} is not known here; leave it out, or see GET /openapi.json for the spelling"
    if problem["type"] == "value_error":
        return str(problem["msg"]).removeprefix("Value error, ")
    scalar = value is None or isinstance(value, (str, int, float))
    got = errors.clip(value) if scalar else "an object" if isinstance(value, Mapping) else "a list"
    return f"{where} {str(problem['msg']).removeprefix('Input ')}, got {got}"


def _path_of(location: Sequence[str | int]) -> str:
    """("body", "passages", 3, "<object>", "embedding", 0) as passages[3].embedding[0], cut: names may be hostile."""
    path = ""
    for part in location[1:]:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not part.startswith("<"):  # tags of unions in schemas.py are not fields
            path += f".{part}" if path else part
    return plain(path[:80]) or "the body"
