"""What `serve` and `mcp` make of a command line: the keys that are asked for, and defenses with their models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unpoison.defenses.base import Defense
    from unpoison.runtime.driver import Limits
    from unpoison.serve.keys import Keys

__all__ = ["KEY", "build_defense", "build_defenses", "check_used", "load_keys"]

KEY = "UNPOISON_API_KEY"
"""The environment variable with the key; on a command line every user of the machine could read it."""


def load_keys(path: Path | None) -> Keys | None:
    """The keys of the environment and of a file, None for neither."""
    from unpoison.errors import OptionError
    from unpoison.serve.keys import Key, KeyFile, Keys

    text = os.environ.get(KEY)
    if text is not None and not text.strip():
        raise OptionError(f"{KEY} is empty; set it to a key, or unset it to serve without one")
    own = () if text is None else (Key.of(text.strip()),)
    if path is not None:
        return KeyFile(path, own)
    return Keys(own) if own else None


def build_defenses(
    specs: list[str], *, encoder: str | None, generator: str | None, limits: Limits, sources: Path | None = None
) -> dict[str, Defense]:
    """The defenses of option strings, with the models of a command line that they take."""
    from unpoison.models.loading import load_encoder, load_generator
    from unpoison.sources import Sources

    given = {
        "encoder": None if encoder is None else load_encoder(encoder),
        "generator": None if generator is None else load_generator(generator),
        "limits": limits,
        "sources": Sources.of(sources),
    }
    return {spec: build_defense(given, spec) for spec in specs}


def _accepted_arguments(spec: str) -> frozenset[str]:
    """The arguments of the class that an option string names."""
    import inspect

    from unpoison.core import registry

    return frozenset(inspect.signature(registry.find("defenses", registry.parse(spec)[0])).parameters)


def build_defense(given: dict[str, Any], spec: str) -> Defense:
    """The defense of an option string, with the models of the command line that it takes."""
    from unpoison.cli.running import learn_sources
    from unpoison.defenses.loading import load_defense

    accepted = _accepted_arguments(spec)
    defense = load_defense(spec, **{name: value for name, value in given.items() if name in accepted})
    learn_sources(defense, given.get("learn", False))
    return defense


def check_used(specs: list[str], given: dict[str, Any]) -> None:
    """See that some defense takes each of the models.

    Raises:
        OptionError: None does.
    """
    from unpoison.errors import OptionError

    accepted = frozenset[str]().union(*map(_accepted_arguments, specs))
    for name in ("encoder", "nli", "injection_model", "beliefs", "sources"):
        if given[name] is not None and name not in accepted:
            raise OptionError(f"none of {', '.join(specs)} takes --{name.replace('_', '-')}; leave it out")
