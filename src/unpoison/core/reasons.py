"""Why a defense decided as it did: a code, its parameters, and the sentence that they make.

A defense calls `Reason.of("grada.central", place=1, ...)`; `SENTENCES` has the sentences of all codes. Programs read
the code and the parameters, never the sentence. A string from a custom defense is a reason without a code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError
from functools import cache, cached_property
from math import isfinite
from string import Formatter
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from unpoison.errors import clip
from unpoison.utils.assets import read_data

__all__ = ["PROMPT_INJECTION", "SENTENCES", "Reason", "add_sentences", "as_reason", "quotable"]

PROMPT_INJECTION = "prompt_injection"
"""The code for a dropped prompt injection, and the name of the evidence for it."""

MAX_CODE_CHARS = 100
"""Characters."""

DIGITS = 6
"""Decimal places kept in a parameter."""

NOTHING: Mapping[str, Any] = MappingProxyType({})

SENTENCES: dict[str, str] = read_data("reasons.json")
"""The sentence of every code, as a `str.format` string over the parameters of the reason; other packages add theirs."""


def add_sentences(sentences: Mapping[str, str]) -> None:
    """Add the sentences of the codes that a defense alone gives, which begin with its name."""
    SENTENCES.update(sentences)


class Reason:
    """A reason; `str(reason)` is its sentence. Nothing of it changes.

    Sentence and parameters of `Reason.of` are made when they are first read: most verdicts are never explained.

    Attributes:
        sentence: The sentence, in lower case, clauses included.
        code: What it says, such as "prompt_injection" or "grada.central"; empty for a custom defense's string.
        parameters: Numbers, strings and tuples of them. "passage" and "passages" are positions in the input; "clauses"
            holds the reasons behind this one.

    Raises:
        ValueError: A sentence or code of another type, or parameters that JSON cannot hold.
    """

    code: str
    _given: Mapping[str, Any]

    def __init__(self, sentence: str, code: str = "", parameters: Mapping[str, Any] = NOTHING) -> None:
        if not isinstance(sentence, str) or not isinstance(code, str) or len(code) > MAX_CODE_CHARS:
            raise ValueError(f"a reason needs a sentence and a short code, got {clip((sentence, code))}")
        if not isinstance(parameters, Mapping):
            raise ValueError(f"a reason needs a mapping of parameters, got {clip(parameters)}")
        vars(self).update(sentence=sentence, code=code, parameters=_frozen(parameters))

    @classmethod
    def of(cls, code: str, **parameters: Any) -> Self:
        """The reason of a code in `SENTENCES`; the sentences of its "clauses" follow its own.

        Raises:
            KeyError: Unknown code, or a parameter of its sentence is missing.
        """
        if missing := _named_in(code) - parameters.keys():
            raise KeyError(min(missing))
        reason = cls.__new__(cls)
        vars(reason).update(code=code, _given=parameters)
        return reason

    @cached_property
    def sentence(self) -> str:
        """The sentence, in lower case, clauses included."""
        clauses = "; ".join(map(str, self._given.get("clauses", ())))
        shown = {name: value for name, value in self._given.items() if name != "clauses"}
        shown |= {k: ", ".join(map(str, v)) for k, v in shown.items() if isinstance(v, (list, tuple))}
        sentence = SENTENCES[self.code].format_map(shown)
        return f"{sentence}: {clauses}" if clauses else sentence

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """Numbers, strings and tuples of them, read-only."""
        return _frozen(self._given)

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

    def __repr__(self) -> str:
        return f"Reason({self.sentence!r}, {self.code!r}, {dict(self.parameters)!r})"

    def __eq__(self, other: object) -> bool:
        return NotImplemented if not isinstance(other, Reason) else self._compared == other._compared

    def __hash__(self) -> int:
        return hash(self._compared[:2])

    @property
    def _compared(self) -> tuple[str, str, Mapping[str, Any]]:
        return self.code, self.sentence, dict(self.parameters)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to {name}: a reason does not change")

    __delattr__ = __setattr__  # type: ignore[assignment]


def as_reason(text: str | Reason) -> Reason:
    """A reason as it is; a custom defense's string as a reason without a code."""
    return text if isinstance(text, Reason) else Reason(text)


def quotable(text: str, longest: int = 80) -> str:
    """Text from a passage or a model, shortened to fit into a reason."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _reword(code: str, parameters: Mapping[str, Any], sentence: str) -> Reason:
    """The reason of a code that may come from another version: its own sentence if this version has none for it."""
    try:
        reason = Reason.of(code, **parameters)
        _ = reason.sentence, reason.parameters  # made here, where what is wrong with them is caught
        return reason
    except (KeyError, TypeError, ValueError):
        return Reason(sentence, code, parameters)


@cache
def _named_in(code: str) -> frozenset[str]:
    """The parameters that the sentence of a code shows."""
    return frozenset(name for _, name, _, _ in Formatter().parse(SENTENCES[code]) if name)


def _frozen(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    frozen = {str(name): _freeze(value) for name, value in parameters.items()}
    clauses = frozen.get("clauses", ())
    if not isinstance(clauses, tuple) or not all(isinstance(clause, Reason) for clause in clauses):
        raise ValueError(f"the clauses of a reason are reasons, got {clip(clauses)}")
    return MappingProxyType(frozen)


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
