"""Why a defense decided as it did: a code, its parameters, and the sentence that they make.

A defense calls `Reason.of("grada.central", place=1, ...)`; `reason_words.py` has one sentence a code. Programs read the
code and the parameters, never the sentence. A string from a custom defense is a reason without a code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from unpoison.core.reason_words import SENTENCES
from unpoison.errors import clip

__all__ = ["PROMPT_INJECTION", "Reason", "as_reason", "quotable"]

PROMPT_INJECTION = "prompt_injection"
"""The code for a dropped prompt injection, and the name of the evidence for it."""

MAX_CODE_CHARS = 100
"""Characters."""

DIGITS = 6
"""Decimal places kept in a parameter."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason; `str(reason)` is its sentence.

    Attributes:
        sentence: The sentence, in lower case, clauses included.
        code: What it says, such as "prompt_injection" or "grada.central"; empty for a custom defense's string.
        parameters: Numbers, strings and tuples of them. "passage" and "passages" are positions in the input; "clauses"
            holds the reasons behind this one.

    Raises:
        ValueError: A sentence or code of another type, or parameters that JSON cannot hold.
    """

    sentence: str
    code: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.sentence, str) or not isinstance(self.code, str) or len(self.code) > MAX_CODE_CHARS:
            raise ValueError(f"a reason needs a sentence and a short code, got {clip((self.sentence, self.code))}")
        if not isinstance(self.parameters, Mapping):
            raise ValueError(f"a reason needs a mapping of parameters, got {clip(self.parameters)}")
        frozen = {str(name): _freeze(value) for name, value in self.parameters.items()}
        clauses = frozen.get("clauses", ())
        if not isinstance(clauses, tuple) or not all(isinstance(clause, Reason) for clause in clauses):
            raise ValueError(f"the clauses of a reason are reasons, got {clip(clauses)}")
        object.__setattr__(self, "parameters", MappingProxyType(frozen))

    @classmethod
    def of(cls, code: str, **parameters: Any) -> Self:
        """The reason of a code in `SENTENCES`; the sentences of its "clauses" follow its own.

        Raises:
            KeyError: Unknown code, or a parameter of its sentence is missing.
        """
        clauses = "; ".join(map(str, parameters.get("clauses", ())))
        shown = {name: _show(value) for name, value in parameters.items() if name != "clauses"}
        sentence = SENTENCES[code].format_map(shown)
        return cls(f"{sentence}: {clauses}" if clauses else sentence, code, parameters)

    @property
    def codes(self) -> tuple[str, ...]:
        """Its own code and those of its clauses, at any depth."""
        inner = (code for clause in self.parameters.get("clauses", ()) for code in clause.codes)
        return tuple(filter(None, (self.code, *inner)))

    @property
    def unquoted(self) -> str:
        """The sentence for a model: "…" stands for every text parameter, since a passage may have written it."""
        hidden = {name: "…" if isinstance(value, str) else value for name, value in self.parameters.items()}
        return str(_reword(self.code, hidden | {"clauses": ()}, "…"))

    def remap(self, positions: Callable[[int], int], own: Callable[[str], str]) -> Reason:
        """The same reason after the passages moved to other positions; `own` renumbers a sentence without a code."""
        parameters = dict(self.parameters)
        if isinstance(parameters.get("passage"), int):
            parameters["passage"] = positions(parameters["passage"])
        if "passages" in parameters:
            parameters["passages"] = [positions(i) for i in parameters["passages"]]
        if "clauses" in parameters:
            parameters["clauses"] = [clause.remap(positions, own) for clause in parameters["clauses"]]
        return _reword(self.code, parameters, own(self.sentence))

    def to_dict(self) -> dict[str, Any]:
        """Sentence, code and parameters as JSON-ready values; only the sentence if there is no code."""
        fields: dict[str, Any] = {"reason": self.sentence}
        parameters = {name: _thaw(value) for name, value in self.parameters.items()}
        return {**fields, "code": self.code, "parameters": parameters} if self.code else fields

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the output of `to_dict`; other fields are ignored, and parameters may be JSON text, as in a table.

        Raises:
            ValueError: A field is missing or malformed.
        """
        try:
            parameters = data.get("parameters") or {}
            parameters = json.loads(parameters) if isinstance(parameters, str) else parameters
            if isinstance(parameters, Mapping) and "clauses" in parameters:
                parameters = {**parameters, "clauses": [cls.from_dict(clause) for clause in parameters["clauses"]]}
            return cls(data.get("reason"), data.get("code") or "", parameters)  # type: ignore[arg-type]
        except (AttributeError, RecursionError, TypeError) as error:
            raise ValueError(f"not a saved reason: {type(error).__name__}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.sentence, self.code, dict(self.parameters))

    def __str__(self) -> str:
        return self.sentence


def as_reason(text: str | Reason) -> Reason:
    """A reason as it is; a custom defense's string as a reason without a code."""
    return text if isinstance(text, Reason) else Reason(text)


def quotable(text: str, longest: int = 80) -> str:
    """Text from a passage or a model, shortened to fit into a reason."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _reword(code: str, parameters: Mapping[str, Any], sentence: str) -> Reason:
    """The reason of a code that may come from another version: its own sentence if this version has none for it."""
    try:
        return Reason.of(code, **parameters)
    except (KeyError, TypeError, ValueError):
        return Reason(sentence, code, parameters)


def _show(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _freeze(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return round(value, DIGITS) if isfinite(value) else str(value)
    if value is None or isinstance(value, (str, bool, int, Reason)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(map(_freeze, value))
    raise ValueError(f"the parameters of a reason are numbers, strings and lists of them, got {clip(value)}")


def _thaw(value: Any) -> Any:
    if isinstance(value, Reason):
        return value.to_dict()
    return list(map(_thaw, value)) if isinstance(value, tuple) else value
