"""Every error that unpoison raises on purpose.

::

    UnpoisonError                     catch this one
    ├── InputError (ValueError)       a query, passage, row or file that cannot be used
    ├── OptionError (ValueError)      an option that does not exist or is out of its range
    ├── UnknownNameError (LookupError)  no defense, model or attack of that name
    ├── MissingExtraError (ImportError)  an optional dependency that is not installed
    ├── FlowError (TypeError)         a defense or attack of your own yields or returns something else than it must
    ├── StoreError                    a store of beliefs or passages cannot be reached
    ├── WorkerError                   a process of a batch has died
    ├── TargetError                   a system under test failed, or its reply cannot be used
    └── ModelError                    a model call failed, or its reply cannot be used
        └── DeadlineError (TimeoutError)  the answer was not ready in the time given

Each message names the field, the value and the fix. The command line prints it without a traceback and exits
with status 2.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "DeadlineError", "FlowError", "InputError", "MissingExtraError", "ModelError", "OptionError", "StoreError",
    "TargetError", "UnknownNameError", "UnpoisonError", "WorkerError", "clip", "nearest",
]  # fmt: skip


FEW, MANY = 12, 24
"""Known names that an error lists, beside one that was meant and without."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The question after the names that may have been meant, with a space behind it; "" where none is near."""
    near = get_close_matches(name[:100], list(known), n=3)  # it is quadratic
    return f"did you mean {' or '.join(map(repr, near))}? " if near else ""


class UnpoisonError(Exception):
    """The root of all errors raised on purpose."""


class InputError(UnpoisonError, ValueError):
    """A query, passage, row or file that cannot be used."""


class OptionError(UnpoisonError, ValueError):
    """An option that does not exist or is out of its range."""


class UnknownNameError(UnpoisonError, LookupError):
    """No defense, model or attack of that name."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        hint = nearest(name, names)
        some = names[: FEW if hint else MANY]
        more = f" and {len(names) - len(some)} more" if len(names) > len(some) else ""
        listed = f"{len(names)} are known" if hint and more else f"known: {', '.join(some)}{more}"
        own = "" if hint or kind not in ("defense", "attack") else "; name your own as MODULE:CLASS, my_module:MyClass"
        self._message = f"no {kind} is named {clip(name)}; {hint}{listed}{own}"
        super().__init__(kind, name, names)  # what another process makes it of again

    def __str__(self) -> str:
        return self._message


class MissingExtraError(UnpoisonError, ImportError):
    """An optional dependency that is not installed."""


class FlowError(UnpoisonError, TypeError):
    """A defense or attack of somebody's own yields or returns something else than it must."""


class StoreError(UnpoisonError):
    """A store of beliefs or passages cannot be reached, or does not agree to a change."""


class WorkerError(UnpoisonError):
    """A process of a batch has died."""


class TargetError(UnpoisonError):
    """A system under test failed, or its reply cannot be used.

    Attributes:
        retryable: Whether the same call may succeed later (429, 5xx, timeouts, broken connections).
        refused: Whether the call certainly had no effect: nothing was planted by it.
    """

    def __init__(self, message: str, *, retryable: bool = False, refused: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.refused = refused


class ModelError(UnpoisonError):
    """A model call failed, or its reply cannot be used.

    Attributes:
        retryable: Whether the same call may succeed later (429, 5xx, timeouts, broken connections).
        retry_after: Seconds that the server asked us to wait, where it said so.
    """

    def __init__(self, message: str, *, retryable: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after


class DeadlineError(ModelError, TimeoutError):
    """The answer was not ready in the time given."""


def clip(value: object, limit: int = 60) -> str:
    """A value as it appears in an error message: its repr, cut, so that hostile input cannot flood a log."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
