"""Option checks for constructors: each returns its value, or raises an error that names the range."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from numbers import Integral, Real
from typing import TypeVar
from urllib.parse import urlsplit

from unpoison.errors import OptionError, clip, nearest

__all__ = ["among", "at_least", "direct", "flag", "on_this_machine", "refuse_unknown", "web_address", "within"]

N = TypeVar("N", int, float)
S = TypeVar("S", bound=str)

MAX_NUMBER = 2**31 - 1
"""The upper bound of every option; it fits into 32 bits."""

MAX_SECONDS = 86_400.0
"""Maximum of a time limit, a day; the system takes no endless ones."""


def among(option: str, value: S, choices: tuple[str, ...]) -> S:
    """The value, if it is one of the choices.

    Raises:
        OptionError: It is not; the message lists them.
    """
    if value not in choices:
        raise OptionError(f"{option} must be one of {', '.join(choices)}, got {clip(value)}")
    return value


def refuse_unknown(owner: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Raise an `OptionError` for the first option that is not known, with the nearest that is."""
    for name in options:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise OptionError(f"{owner} has no option {clip(name)}; {nearest(name, known)}it has: {listed}")


def at_least(option: str, value: N, low: N, high: N | None = None, *, whole: bool = True) -> N:
    """The value, if it is a number not below `low` and not above `high`.

    Args:
        option: Its name.
        value: The given value.
        low: The minimum.
        high: The maximum; by default `MAX_NUMBER`.
        whole: Whether to accept whole numbers only.

    Raises:
        OptionError: It is not.
    """
    high = MAX_NUMBER if high is None else high
    if not _is_number(value, whole) or not value >= low:
        raise OptionError(f"{option} must be a {'whole ' if whole else ''}number of at least {low}, got {clip(value)}")
    if value > high:
        raise OptionError(f"{option} must be at most {high:,}, got {clip(value)}")
    return value


def _is_number(value: object, whole: bool) -> bool:
    return isinstance(value, Integral if whole else Real) and not isinstance(value, bool)


def flag(option: str, value: bool) -> bool:
    """The value, if it is True or False; a string such as "false" would be truthy.

    Raises:
        OptionError: It is not.
    """
    if type(value).__name__ not in ("bool", "bool_"):  # also numpy's, which is not imported here
        raise OptionError(f"{option} must be True or False, got {clip(value)}")
    return bool(value)


def within(option: str, value: float, low: float, high: float, *, open_end: bool = False) -> float:
    """The value, if it lies in [low, high], or in [low, high) with `open_end`.

    Raises:
        OptionError: It does not.
    """
    if not _is_number(value, whole=False) or not low <= value <= high or (open_end and value == high):
        end = ")" if open_end else "]"
        raise OptionError(f"{option} must be a number in [{low:g}, {high:g}{end}, got {clip(value)}")
    return value


def on_this_machine(url: str) -> bool:
    """Whether an address is one of this machine, which no proxy of the environment reaches.

    >>> on_this_machine("http://127.0.0.1:8000/v1"), on_this_machine("http://localhost.example")
    (True, False)
    """
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        address = ip_address(host)
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback or address.is_unspecified
    return host.rstrip(".") == "localhost" or host.rstrip(".").endswith(".localhost")


@contextmanager
def direct(url: str) -> Iterator[None]:
    """Clients that are made inside reach an address of this machine without the proxies of the environment."""
    kept = {name: os.environ.get(name) for name in ("NO_PROXY", "no_proxy") if on_this_machine(url)}
    os.environ.update({name: ",".join(filter(None, (held, urlsplit(url).hostname))) for name, held in kept.items()})
    try:
        yield
    finally:
        for name, held in kept.items():
            os.environ.pop(name)
            os.environ.update({} if held is None else {name: held})


def web_address(name: str, url: object) -> str:
    """The address of a server, checked.

    Raises:
        OptionError: It has no scheme or no host, a host, port or IPv6 address that cannot be, or is no line of text.
    """
    if isinstance(url, str) and not (url.isprintable() and len(url) <= 8_192):
        raise OptionError(f"{name} must be one line of at most 8,192 characters, got {clip(url)}")
    try:
        parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
        (parts.hostname or "").encode("idna")  # as it is looked up
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return str(url)
        scheme = "http" if isinstance(url, str) and on_this_machine(f"//{url}") else "https"
    except ValueError as error:
        raise OptionError(f"{name} is not a valid address ({error}), got {clip(url)}") from None
    meant = f"; write {scheme}://{url}" if isinstance(url, str) and url and "://" not in url else ""
    raise OptionError(f"{name} must begin with http:// or https://, got {clip(url)}{meant}")
