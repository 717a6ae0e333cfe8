"""What goes between the client and the service: questions out, screenings, answers and failures back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from unpoison.errors import DeadlineError, InputError, ModelError, OptionError, StoreError, UnpoisonError, clip
from unpoison.types import (
    Answer,
    Passage,
    Query,
    Screening,
    as_passages,
    as_query,
)

__all__ = [
    "Events",
    "Exchange",
    "Ranked",
    "RefusedError",
    "content",
    "failure",
    "read_ranking",
    "rerank_body",
    "unreachable",
]

AGAIN = (429, 503)
"""What the service refuses before it did anything."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One document that may be read: its position in the request, and a score in (0, 1] that says the order."""

    index: int
    score: float


class Exchange:
    """A question and its passages, as they are sent and as they come back."""

    def __init__(self, query: str | Query, passages: Iterable[Any], defense: str | None) -> None:
        self.query, self.passages, self.defense = as_query(query), as_passages(passages), defense

    def body(self, **more: Any) -> dict[str, Any]:
        body: dict[str, Any] = {
            "query": self.query.text,
            "passages": [_passage_fields(p) for p in self.passages],
            **more,
        }
        if self.query.embedding is not None:
            body["embedding"] = self.query.embedding.tolist()
        return body if self.defense is None else {**body, "defense": self.defense}

    def event(self, name: str, data: Any) -> Screening | str | Answer:
        match name:
            case "screening":
                return self.screening(data)
            case "text":
                return str(data["text"])
            case "answer":
                return self.answer(data)
            case "error":
                raise _remote_error(data, None)
        raise _unreadable()

    def screening(self, data: Any) -> Screening:
        """The caller's own passages with the service's verdicts."""
        try:
            return Screening.from_dict({**data["screening"], "query": self.query.text, "passages": self.passages})
        except (KeyError, TypeError, ValueError) as error:
            raise _unreadable(error) from None

    def answer(self, data: Any) -> Answer:
        screening = self.screening(data)
        try:
            return Answer.from_dict(data["answer"], screening)
        except (KeyError, TypeError, ValueError) as error:
            raise _unreadable(error) from None


class Events:
    """Server-sent events, line by line."""

    def __init__(self) -> None:
        self._name, self._last = "", ""

    def event(self, line: str) -> tuple[str, Any] | None:
        """The event that a line completes."""
        if line.startswith("event: "):
            self._name = self._last = line.removeprefix("event: ")
        if not line.startswith("data: "):
            return None
        try:
            return self._name, json.loads(line.removeprefix("data: "))
        except ValueError:
            raise _unreadable() from None

    def check_end(self) -> None:
        """Say so where the stream broke off."""
        if self._last != "answer":
            raise ModelError("the service broke off in its answer; ask again", retryable=True)


def _passage_fields(passage: Passage) -> dict[str, Any]:
    fields = passage.to_dict()
    return fields if passage.embedding is None else {**fields, "embedding": passage.embedding.tolist()}


def rerank_body(query: str, documents: Iterable[str], top: int | None, defense: str | None) -> dict[str, Any]:
    """The body of a rerank request."""
    return {"model": defense or "default", "query": query, "documents": list(documents), "top_n": top}


def read_ranking(data: Any) -> list[Ranked]:
    """What a rerank request is replied with."""
    try:
        return [Ranked(int(row["index"]), float(row["relevance_score"])) for row in data["results"]]
    except (KeyError, TypeError, ValueError):
        raise _unreadable() from None


class RefusedError(ModelError):
    """Refused before anything was done: the same request may be sent again."""


def content(response: Any) -> Any:
    """The content of a response.

    Raises:
        UnpoisonError: It is a failure.
    """
    if response.status_code != 200:
        raise failure(response)
    try:
        return response.json()
    except ValueError:
        raise _unreadable() from None


def failure(response: Any) -> UnpoisonError:
    """A reply that is no success, as the library would raise it."""
    try:
        data = response.json()
    except ValueError:
        data = None
    wait = response.headers.get("retry-after", "")
    after = float(wait) if wait.isascii() and wait.isdigit() and len(wait) < 6 else None
    if response.status_code in AGAIN:
        return RefusedError(_sentence(data, response.status_code), retryable=True, retry_after=after)
    return _remote_error(data, response.status_code)


def _remote_error(data: Any, status: int | None) -> UnpoisonError:
    kind = data["error"].get("type") if isinstance(data, Mapping) and isinstance(data.get("error"), Mapping) else None
    message = _sentence(data, status)
    if kind in ("DeadlineError", "Timeout") or status == 504:
        return DeadlineError(message, retryable=True)
    if kind == "StoreError":
        return StoreError(message)
    if kind in ("OptionError", "UnknownNameError", "NoGenerator") or status in (401, 403, 404, 421):
        return OptionError(message)
    if status in (400, 413, 415, 422):
        return InputError(message)
    return ModelError(message, retryable=status in (None, 500, 502))


def _sentence(data: Any, status: int | None) -> str:
    error = data.get("error") if isinstance(data, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else None
    reply = f"it says: {clip(message, 300)}" if isinstance(message, str) else "check its address"
    return f"the service replied with {'an error' if status is None else status}; {reply}"


def unreachable(sdk: Any, error: Exception) -> ModelError:
    """What the transport of a client raised, in our words."""
    if isinstance(error, sdk.TimeoutException):
        return DeadlineError("the service did not reply in time; raise timeout, or send fewer passages", retryable=True)
    return ModelError(f"the service cannot be reached ({type(error).__name__}); check its address", retryable=True)


def _unreadable(error: Exception | None = None) -> ModelError:
    why = "" if error is None else f" ({type(error).__name__}: {clip(str(error), 200)})"
    return ModelError(f"what replied is no unpoison service that this client can read{why}; check the address")
