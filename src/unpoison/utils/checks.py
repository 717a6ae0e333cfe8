"""Options of a constructor: each value back, or an error that names its range; and the names that options had."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, TypeVar

from unpoison.errors import OptionError, clip

__all__ = ["ATTACKS", "GONE", "RENAMED", "among", "answers_old_names", "at_least", "flag", "new_name", "within"]

N = TypeVar("N", int, float)
S = TypeVar("S", bound=str)

MAX_NUMBER = 2**31 - 1
"""What no option exceeds: it fits every integer type that a computation may use."""


def among(option: str, value: S, choices: tuple[str, ...]) -> S:
    """The value, if it is one of the choices.

    Raises:
        OptionError: It is not; the message lists them.
    """
    if value not in choices:
        raise OptionError(f"{option} must be one of {', '.join(choices)}, got {clip(value)}")
    return value


def at_least(option: str, value: N, low: N, high: N | None = None, *, whole: bool = True) -> N:
    """The value, if it is a number not below `low` and not above `high`.

    Args:
        option: Its name.
        value: What was given.
        low: The smallest that is taken.
        high: The largest; where it is not given, what every computation with the number can still hold.
        whole: Whether only whole numbers are taken.

    Raises:
        OptionError: It is not.
    """
    high = MAX_NUMBER if high is None else high
    if not _is_number(value, whole) or not value >= low or value == float("inf"):
        raise OptionError(f"{option} must be a {'whole ' if whole else ''}number of at least {low}, got {clip(value)}")
    if value > high:
        raise OptionError(f"{option} must be at most {high:,}, got {clip(value)}")
    return value


def _is_number(value: object, whole: bool) -> bool:
    return isinstance(value, Integral if whole else Real) and not isinstance(value, bool)


def flag(option: str, value: bool) -> bool:
    """The value, if it is True or False: a string such as "false" would count as true.

    Raises:
        OptionError: It is not.
    """
    if type(value).__name__ not in ("bool", "bool_"):  # numpy's has no other sign, and is not imported here
        raise OptionError(f"{option} must be True or False, got {clip(value)}")
    return bool(value)


def within(option: str, value: float, low: float, high: float, *, open_end: bool = False) -> float:
    """The value, if it lies in [low, high], or in [low, high) with `open_end`.

    Raises:
        OptionError: It does not.
    """
    if not _is_number(value, whole=False) or not low <= value <= high or (open_end and value == high):
        raise OptionError(
            f"{option} must be a number in [{low:g}, {high:g}{')' if open_end else ']'}, got {clip(value)}"
        )
    return value


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
