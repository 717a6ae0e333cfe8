"""Why a defense decided as it did: a code with parameters, worded once for a terminal and once for who decides.

A defense makes its reasons by `Reason.of("grada.central", place=1, ...)`; the words stand in `reason_words.py`. Nobody
reads a sentence back. A string of somebody's own is a reason without a code, and is shown as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from math import isfinite
from string import Formatter
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from unpoison.core.reason_words import OTHER_FATE, WORDS
from unpoison.errors import clip

__all__ = ["PROMPT_INJECTION", "Clause", "Reason", "as_reason", "quotable"]

PROMPT_INJECTION = "prompt_injection"
"""The code of what is dropped for a prompt injection, and the name of the evidence for it."""

MAX_PLAIN_CHARS = 1000
"""Characters of a reason of somebody's own that are read as plain words."""

MAX_CODE_CHARS = 100
"""Characters."""

DEEPEST = 40
"""Levels of clauses and lists."""

DIGITS = 6
"""Digits behind the point that a parameter keeps."""

_OPTIONAL = re.compile(r"\[(\w{1,40})\|([^\]]{0,200})\]")


class Clause(NamedTuple):
    """A part of a reason: its code and parameters; without a code, "text" is a reason of somebody's own."""

    code: str
    parameters: Mapping[str, Any]


Change = Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]]


class Reason(str):
    """A reason: the sentence for a terminal, as a string, and what it was made of. Immutable; compares as its string.

    Args:
        text: The sentence.
        code: What it says, in plain field words, such as "prompt_injection" or "grada.near_duplicate"; empty for a
            reason of somebody's own.
        parameters: JSON-ready values. "passage" and "passages" are positions in the input; "clauses" holds pairs of
            code and parameters.

    Raises:
        ValueError: A text that is none, or parameters that are not JSON-ready or nested too deep.
    """

    __slots__ = ("code", "parameters")
    code: str
    parameters: Mapping[str, Any]

    def __new__(cls, text: str, code: str = "", parameters: Mapping[str, Any] = MappingProxyType({})) -> Self:
        if not isinstance(text, str):
            raise ValueError(f"a reason is a sentence, got {clip(text)}")
        if not isinstance(code, str) or len(code) > MAX_CODE_CHARS or not isinstance(parameters, Mapping):
            raise ValueError(f"a reason needs a code and a mapping of parameters, got {clip((code, parameters))}")
        return cls._create(text, str(code), _freeze(parameters))

    @classmethod
    def _create(cls, text: str, code: str, frozen: Mapping[str, Any]) -> Self:
        reason = super().__new__(cls, text)
        object.__setattr__(reason, "code", code)
        object.__setattr__(reason, "parameters", frozen)
        return reason

    @classmethod
    def of(cls, code: str, **parameters: Any) -> Self:
        """The reason that a code of the catalogue makes of its parameters.

        Raises:
            KeyError: No such code, or a parameter that its words need is missing.
        """
        frozen = _freeze(parameters)
        return cls._create(_terminal(code, frozen), code, frozen)

    @property
    def plain(self) -> str:
        """The sentence for who decides, without numbers; a reason without a known code as it is."""
        words = (_plain(self.code, self.parameters) if self.code in WORDS else "") or _own(self)
        return words[:1].upper() + words[1:]

    @property
    def clause(self) -> Clause:
        """This reason as a part of another one; by its sentence where this version has no words for it."""
        known = _sentence(self.code, self.parameters) is not None
        return Clause(self.code, self.parameters) if known else Clause("", {"text": str(self)})

    @property
    def codes(self) -> tuple[str, ...]:
        """Its code and those of its clauses, at any depth."""
        return _codes(Clause(self.code, self.parameters))

    def remap(self, positions: Callable[[int], int], own: Callable[[str], str]) -> Self:
        """The same reason where the passages stand at other positions; `own` does so for somebody's own sentence."""

        def change(code: str, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
            if isinstance(parameters.get("passage"), int):
                parameters["passage"] = positions(parameters["passage"])
            if "passages" in parameters:
                parameters["passages"] = tuple(positions(i) for i in parameters["passages"])
            return code, parameters if code else {"text": own(parameters["text"])}

        return self._transform(change)

    def where_kept(self, kept: bool) -> Self:
        """The same findings where a threshold was moved, so that the passage is kept, or is not."""
        other = OTHER_FATE[kept]
        return self._transform(lambda code, parameters: (other.get(code, code), parameters))

    def _transform(self, change: Change) -> Self:
        before = self.clause
        after = _transform_clause(before, change)
        if after == before:
            return self
        return type(self).of(after.code, **after.parameters) if after.code else type(self)(after.parameters["text"])

    def to_dict(self) -> dict[str, Any]:
        """Text, code and parameters as JSON-ready values; only the text where there is no code."""
        fields: dict[str, Any] = {"reason": str(self)}
        return {**fields, "code": self.code, "parameters": _thaw(self.parameters)} if self.code else fields

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote, from among other fields; of a table, where parameters are JSON text, as well.

        Raises:
            ValueError: A field is missing or malformed.
        """
        text: Any = data.get("reason")
        parameters = data.get("parameters") or {}
        try:
            parameters = json.loads(parameters) if isinstance(parameters, str) else parameters
        except RecursionError:
            raise ValueError("the parameters of a reason are nested too deep") from None
        return cls(text, data.get("code") or "", parameters)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a reason does not change, so {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a reason does not change, so {name} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.code, _thaw(self.parameters))


def as_reason(text: str) -> Reason:
    """The reason itself, or a sentence of somebody's own as one without a code."""
    return text if isinstance(text, Reason) else Reason(text)


def quotable(text: str, longest: int = 80) -> str:
    """A text of a passage or a model, cut to a length that fits into a reason."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


class _Part(NamedTuple):
    """A part of a template: text, and the parameter behind it with its format; None for no parameter."""

    text: str
    name: str | None
    how: str
    quoted: bool


@cache
def _optional(code: str) -> frozenset[str]:
    """The parameters whose words are left out where they are missing."""
    return frozenset(name for name, _ in _OPTIONAL.findall(WORDS[code].terminal))


@cache
def _template(code: str, optional: frozenset[str]) -> tuple[_Part, ...]:
    """A code's words for a terminal, with some of its optional ones."""
    words = _OPTIONAL.sub(lambda part: part[2] if part[1] in optional else "", WORDS[code].terminal)
    return tuple(_Part(text, name, how or "", mark == "r") for text, name, how, mark in Formatter().parse(words))


def _format_value(value: Any, how: str) -> str:
    """A value by its format; a noun behind "#" is counted."""
    if how.startswith("#"):
        return f"{value:,} {how[1:]}{'' if value == 1 else 's'}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else format(value, how)


def _sentence(code: str, parameters: Mapping[str, Any]) -> str | None:
    """The sentence of a code that may be of another version; None where there is none."""
    try:
        return _terminal(code, parameters) if code in WORDS else None
    except (KeyError, TypeError, ValueError):
        return None


def _terminal(code: str, parameters: Mapping[str, Any]) -> str:
    if not code:
        return str(parameters["text"])
    said = []
    for text, name, how, quoted in _template(code, _optional(code).intersection(parameters)):
        said.append(text)
        if name == "clauses":
            said.append("; ".join(_terminal(*clause) for clause in parameters.get("clauses", ())))
        elif name is not None:
            said.append(repr(parameters[name]) if quoted else _format_value(parameters[name], how))
    return "".join(said)


def _plain(code: str, parameters: Mapping[str, Any]) -> str:
    if code not in WORDS:
        return _own(str(parameters.get("text", "")))
    words = WORDS[code].plain
    if "{clauses}" not in words:
        return words
    return words.replace("{clauses}", _join_clauses(_plain(*clause) for clause in parameters.get("clauses", ())))


def _own(text: str) -> str:
    return " ".join(text[:MAX_PLAIN_CHARS].split())


def _join_clauses(parts: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(filter(None, parts)))
    return " and ".join(filter(None, [", ".join(distinct[:-1]), *distinct[-1:]]))


def _codes(clause: Clause) -> tuple[str, ...]:
    inner = (code for part in clause.parameters.get("clauses", ()) for code in _codes(part))
    return tuple(filter(None, (clause.code, *inner)))


def _transform_clause(clause: Clause, change: Change) -> Clause:
    code, parameters = change(clause.code, dict(clause.parameters))
    if "clauses" in parameters:
        parameters["clauses"] = tuple(_transform_clause(Clause(*part), change) for part in parameters["clauses"])
    return Clause(code, parameters)


def _freeze(parameters: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    frozen = {str(name): _freeze_value(value, depth + 1) for name, value in parameters.items()}
    if "clauses" in frozen:
        clauses = frozen["clauses"]
        if not isinstance(clauses, tuple) or not all(map(_is_clause, clauses)):
            raise ValueError(f"clauses are pairs of a code and parameters, got {clip(clauses)}")
        frozen["clauses"] = tuple(Clause(*clause) for clause in clauses)
    return MappingProxyType(frozen)


def _is_clause(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], Mapping)


def _freeze_value(value: object, depth: int) -> Any:
    if depth > DEEPEST:
        raise ValueError(f"the parameters of a reason are nested more than {DEEPEST} deep")
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in (str, int, bool):
        return value
    if isinstance(value, Mapping):
        return _freeze(value, depth)
    if isinstance(value, list | tuple):
        return tuple(_freeze_value(item, depth + 1) for item in value)
    if isinstance(value, float):
        return round(value, DIGITS) if isfinite(value) else str(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    raise ValueError(f"the parameters of a reason are numbers, strings and lists of them, got {clip(value)}")


def _thaw(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _thaw(item) for name, item in value.items()}
    return [_thaw(item) for item in value] if isinstance(value, tuple) else value
