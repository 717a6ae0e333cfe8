"""The options that every defense takes beside its own, stated once.

A constructor takes them as `**common: Unpack[CommonOptions]` and passes them on. Type checkers know their names and
types; `state_common_options` writes them into the signature and the help text, where `inspect.signature`, `help` and
option strings find them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypedDict, Unpack, get_type_hints

from unpoison.defenses.injections import InjectionPolicy
from unpoison.models.protocols import InjectionClassifier
from unpoison.runtime.driver import Limits
from unpoison.sources.sources import SourcesOption

__all__ = ["CommonOptions", "state_common_options"]


class CommonOptions(TypedDict, total=False):
    """What every defense takes.

    Attributes:
        prompt_injection: What becomes of passages that hold a prompt injection, before anything reads them: `redact`
            cuts its sentences and drops what has no harmless rest, `drop`, `flag` only says so, `keep` does not look.
        injection_model: A classifier that finds injections in place of the built-in detector, or the string of one:
            `hf:NAME_OR_PATH` or `onnx:FOLDER` (`models.load_injection_model`).
        sources: Who says what: `Sources`, or a policy as a file or a mapping. What is of a blocked source is dropped
            unread, and what a source repeats is read once.
        limits: Bounds on the model calls.
    """

    prompt_injection: InjectionPolicy
    injection_model: InjectionClassifier | str | None
    sources: SourcesOption
    limits: Limits | None


MARK = re.compile(r"\n\n    As every defense it also takes .* \(`CommonOptions`\)\.\n")
"""The sentence behind a class's own options in whose place the common ones are described."""


@cache
def _types() -> dict[str, Any]:
    return get_type_hints(CommonOptions)


def state_common_options(cls: type, base: Callable[..., None]) -> None:
    """Name each of the options in the signature and in the help text of a class that takes them as `**common`.

    Args:
        cls: A class with a constructor of its own.
        base: The constructor that has the defaults.
    """
    init: Any = vars(cls)["__init__"]
    written = inspect.signature(init)
    own = [parameter for parameter in written.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    rest = next((p for p in written.parameters.values() if p.kind is p.VAR_KEYWORD), None)
    if rest is None or rest.annotation not in ("Unpack[CommonOptions]", Unpack[CommonOptions]):
        return
    defaults = inspect.signature(base).parameters
    common = [defaults[name] for name in _types()]
    init.__signature__ = written.replace(parameters=[*own, *common])
    init.__annotations__ = {**init.__annotations__, **_types()}
    del init.__annotations__[rest.name]
    if cls.__doc__ and CommonOptions.__doc__:  # none with `python -OO`
        entries = re.findall(r"(?m)^ {8}(\w+)(: .*\n(?: {12}.*\n)*)", CommonOptions.__doc__)
        missing = "".join(f"        {name}{text}" for name, text in entries if f"        {name}: " not in cls.__doc__)
        cls.__doc__ = MARK.sub(lambda _: f"\n{missing}", cls.__doc__, count=1)
