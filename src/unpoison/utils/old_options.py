"""Options that have another name than they had, or are gone: who gives one is told what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from inspect import signature
from typing import Any

from unpoison.errors import OptionError

__all__ = ["ATTACKS", "GONE", "RENAMED", "answers_old_names", "new_name"]

RENAMED = {"orders": ("prompt_injection", "redact, drop, flag or keep")}
"""The names that options had: the new name, and what may stand there."""

ATTACKS = {"orders": "prompt-injection"}
"""Attacks that had another name, which option strings may still use: the new name."""

_NO_ENCODER = "its checks compare no embeddings; leave it out"
GONE = {
    "guard": {
        "coefficients": "it has one set of coefficients, for every encoder and for none; leave it out, and for your "
        "own retrievals take threshold= from `unpoison guard calibrate`",
        "trust_embeddings": "it reads no embeddings, so forged ones cannot mislead it; leave it out",
    },
    "guard calibrate": {"e": _NO_ENCODER, "encoder": _NO_ENCODER, "encoder_cache": _NO_ENCODER},
}
"""The options that defenses and commands had, and why they are gone."""


def new_name(old: str, owner: str, existing: Collection[str] | None = None, *, flag: str = "") -> str | None:
    """The sentence that answers an option by the name that it had, or that is gone; None for what never was an option.

    Args:
        old: What was given, with the dashes of a command line or without.
        owner: What has options, such as `guard`, `Guard` or `unpoison guard calibrate`.
        existing: The options that it has; where it does not have the new one either, there is nothing to say.
        flag: What stands before the new name on a command line.
    """
    option = old.lstrip("-").replace("-", "_")
    reason = GONE.get(owner.lower().removeprefix("unpoison "), {}).get(option)
    if reason is not None and option not in (existing or ()):
        return f"{owner} has no option {old} any more: {reason}"
    name, values = RENAMED.get(option, ("", ""))
    if not name or (existing is not None and (name not in existing or option in existing)):
        return None
    return f"{owner} has no option {old} any more; write {flag}{name}= ({values})"


def answers_old_names(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that raises `OptionError` where an option is given by the name that it had."""
    parameters = signature(init).parameters
    options = frozenset(parameters)
    passes_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())

    @wraps(init)
    def wrapper(self: Any, *values: Any, **given: Any) -> None:
        unknown = [] if passes_on else sorted(given.keys() - options)
        for option in unknown:
            if answer := new_name(option, type(self).__name__, options):
                raise OptionError(answer)
        if unknown:
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument {unknown[0]!r}")
        init(self, *values, **given)

    return wrapper
