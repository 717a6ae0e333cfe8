"""The options that attacks share, stated once.

A constructor takes those that its attack has as `**common: Unpack[WriterOptions]` and passes them on. Type checkers
know their names and types; `state_options` writes them into the signature, where `inspect.signature`, `help` and
option strings find them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypedDict, get_type_hints

from unpoison.models.protocols import Encoder, Generator
from unpoison.runtime.limits import Limits

__all__ = ["DirectOptions", "ModelOptions", "RetrievalOptions", "SearchOptions", "WriterOptions", "state_options"]


class DirectOptions(TypedDict, total=False):
    """Of an attack that asks no model; `Attack` says what each option means."""

    seed: int
    prefix: bool


class ModelOptions(TypedDict, total=False):
    """Of an attack that asks a language model, and says itself whether the question stands in front."""

    seed: int
    generator: Generator | str | None
    limits: Limits | None


class WriterOptions(ModelOptions, total=False):
    """Of an attack whose texts a language model writes."""

    prefix: bool


class SearchOptions(ModelOptions, total=False):
    """Of an attack that searches with an encoder, the question in front or not as its paper has it."""

    encoder: Encoder | str | None


class RetrievalOptions(WriterOptions, SearchOptions, total=False):
    """All of them."""


def state_options(init: Any, base: Callable[..., None]) -> None:
    """Name the options behind `**common` in the signature of a constructor.

    Args:
        init: The constructor; one without `**common` stays as it is.
        base: The constructor that has the defaults.
    """
    *own, last = inspect.signature(init).parameters.values()
    if last.kind is not last.VAR_KEYWORD or last.name != "common":
        return
    types = get_type_hints(init.__globals__[str(last.annotation).removeprefix("Unpack[").removesuffix("]")])
    common = [option for option in inspect.signature(base).parameters.values() if option.name in types]
    init.__signature__ = inspect.Signature([*own, *common])
    init.__annotations__ = {name: hint for name, hint in init.__annotations__.items() if name != "common"} | types
