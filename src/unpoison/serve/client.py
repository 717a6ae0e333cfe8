"""A client of a running service, with the interface of a defense: the same arguments and results.

    from unpoison.serve import Client

    with Client("http://127.0.0.1:8000", key="...") as service:
        screening = service.screen(query, passages)
        screening.kept

Failures raise the same errors as the library: `InputError` for unusable input, `OptionError` for a key or an option,
`ModelError` (with `retryable`) for a service or a model that cannot reply now. Nothing is returned unscreened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query, as_passages, as_query
from unpoison.core.screenings import Screening
from unpoison.errors import DeadlineError, InputError, ModelError, OptionError, StoreError, UnpoisonError, clip
from unpoison.utils.checks import MAX_SECONDS, on_this_machine, web_address, within
from unpoison.utils.extras import require
from unpoison.utils.files import Closing

__all__ = ["Client"]

T = TypeVar("T")
Make = Callable[[Any, Screening], T]


class Client(Closing):
    """A client of the service, safe for several threads.

    Args:
        url: The address of the service, with its root path if it has one.
        key: The API key for `Authorization: Bearer`; None to send none.
        timeout: Seconds for one request.

    Raises:
        OptionError: An argument out of its range.
        MissingExtraError: `httpx` is not installed.
    """

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 60.0) -> None:
        local = on_this_machine(web_address("url", url))
        within("timeout", timeout, 0.001, MAX_SECONDS)
        if key is not None and not (isinstance(key, str) and key.strip() and key.isprintable()):
            raise OptionError("key must be one line of text, without control characters")
        self._sdk = require("httpx", "the client of the service")
        headers = {"Content-Type": b"application/json"}
        headers |= {} if key is None else {"Authorization": f"Bearer {key}".encode()}
        self._http = self._sdk.Client(base_url=url, timeout=timeout, headers=headers, trust_env=not local)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def screen(self, query: str | Query, passages: Iterable[Any], *, defense: str | None = None) -> Screening:
        """Say which passages to trust, as `Defense.screen`.

        Args:
            query: The user's question.
            passages: Strings, dicts, framework documents or `Passage`, in retrieval order.
            defense: The name of a configured defense; by default the first.

        Raises:
            UnpoisonError: See the module.
        """
        return self._ask("/v1/screen", query, passages, defense, lambda _, screening: screening)

    def answer(self, query: str | Query, passages: Iterable[Any], *, defense: str | None = None) -> Answer:
        """Answer in spite of poisoned passages, as `Defense.answer`; the arguments are those of `screen`.

        Raises:
            UnpoisonError: See the module.
        """
        return self._ask("/v1/answer", query, passages, defense, lambda it, own: Answer.from_dict(it["answer"], own))

    def _ask(self, path: str, query: Any, passages: Iterable[Any], defense: str | None, make: Make[T]) -> T:
        """What is made of the data of a reply, and of its screening of the caller's own passages."""
        asked, read = as_query(query), as_passages(passages)
        try:
            vector = None if asked.embedding is None else asked.embedding.tolist()
            body = {"query": asked.text, "embedding": vector, "passages": list(map(_fields, read)), "defense": defense}
            content = json.dumps(body, ensure_ascii=False, allow_nan=False)
            # A lone surrogate, which is in no UTF-8, is sent as a question mark: positions stay.
            response = self._http.post(path, content=content.encode("utf-8", "replace"))
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"this cannot be sent as JSON ({clip(str(error), 200)}); leave it out") from None
        except self._sdk.TimeoutException:
            message = "the service did not reply in time; raise timeout, or send fewer passages"
            raise DeadlineError(message, retryable=True) from None
        except self._sdk.TransportError as error:
            url, why = clip(str(self._http.base_url), 200), type(error).__name__
            raise ModelError(f"{url} cannot be reached ({why}); see whether it runs there", retryable=True) from None
        if response.status_code != 200:
            raise _failure(response)
        try:
            data = response.json()
            return make(data, Screening.from_dict({**data["screening"], "query": asked.text, "passages": read}))
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            why = f"{type(error).__name__}: {clip(str(error), 200)}"
            message = f"what replied is no unpoison service that this client can read ({why}); check the address"
            raise ModelError(message) from None


def _fields(passage: Passage) -> dict[str, Any]:
    fields = passage.to_dict()
    return fields if passage.embedding is None else {**fields, "embedding": passage.embedding.tolist()}


def _failure(response: Any) -> UnpoisonError:
    """The library's error for a reply that is not 200."""
    try:
        error = response.json()["error"]
        kind, says = str(error["type"]), f"it says: {clip(str(error['message']), 300)}"
    except (ValueError, TypeError, KeyError, RecursionError):
        kind, says = "", "check its address"
    status: int = response.status_code
    message = f"the service replied with {status}; {says}"
    if kind in ("DeadlineError", "Timeout") or status == 504:
        return DeadlineError(message, retryable=True)
    if kind == "StoreError":
        return StoreError(message)
    if kind in ("OptionError", "UnknownNameError", "NoGenerator") or status in (401, 403, 404, 421):
        return OptionError(message)
    if status in (400, 413, 415, 422):
        return InputError(message)
    headers: Mapping[str, str] = response.headers
    wait = headers.get("retry-after", "")
    after = float(wait) if wait.isascii() and wait.isdigit() and len(wait) < 6 else None
    return ModelError(message, retryable=status in (429, 500, 502, 503), retry_after=after)
