"""The one codec for results as rows: in files, logs and replies of the service.

A row has the fields of a frozen dataclass by name, as JSON values. A new field with a default value is compatible:
older rows are read without it, and unknown fields of newer versions are ignored. Input is checked against the types of
the dataclass, because rows come from files and other machines.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from unpoison.core.reasons import Reason
from unpoison.errors import InputError, clip

__all__ = ["JsonRecord", "array_row", "from_row", "json_entries", "read_array", "to_row"]

T = TypeVar("T")

NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class JsonRecord:
    """A dataclass that is written and read as its fields."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Its fields as JSON-ready values."""
        return to_row(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the output of `to_dict`."""
        return from_row(cls, data)


def to_row(value: Any, *, leave_out: Collection[str] = (), sparse: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a dataclass as JSON-ready values, in their order.

    Args:
        value: An instance; members with a `to_dict` are written by it.
        leave_out: Fields to omit, because they are stored elsewhere.
        sparse: Fields to omit if they are empty (None, "" or an empty collection).

    Raises:
        TypeError: A field has no JSON equivalent.
    """
    row: dict[str, Any] = {}
    for name in (field.name for field in fields(value) if field.init and field.name not in leave_out):
        content = getattr(value, name)
        if name in sparse and (content is None or (hasattr(content, "__len__") and not len(content))):
            continue
        row |= content.to_dict() if isinstance(content, Reason) else {name: json_value(content)}
    return row


def json_value(value: Any) -> Any:
    """A value as its JSON equivalent.

    Raises:
        TypeError: It has none.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return json_value(value.tolist())
    if callable(getattr(value, "to_dict", None)):
        return value.to_dict()
    if is_dataclass(value):
        return to_row(value)
    if hasattr(value, "_asdict"):  # a named tuple
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): json_value(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(member) for member in value]
    raise TypeError(f"not a JSON value: {clip(value)} ({type(value).__name__})")


def json_entries(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a mapping with JSON equivalents; custom defenses may store arbitrary objects."""
    row = {}
    for name, value in values.items():
        try:
            row[str(name)] = json_value(value)
        except (TypeError, RecursionError):
            continue
    return row


def from_row(kind: type[T], row: object, **given: Any) -> T:
    """Read the output of `to_row`: unknown fields are ignored, missing ones take their default.

    Args:
        kind: The dataclass.
        row: A mapping.
        given: Fields that are not in the row.

    Raises:
        InputError: A field is missing or of another type; the message names it.
        ValueError: The dataclass rejects the combination of values.
    """
    noun = kind.__name__.lower()
    if not isinstance(row, Mapping):
        raise InputError(f"{noun} must be an object, got {clip(row)}")
    values, known = dict(given), cast(Any, kind)
    hints = _hints(known)
    for field in fields(known):
        if not field.init or field.name in given:
            continue
        if field.name in row:
            values[field.name] = _read(hints[field.name], row[field.name], f"{noun}.{field.name}", row)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"a {noun} needs {field.name}, got the fields {clip(sorted(map(str, row)))}")
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(hint: Any, value: object, name: str, row: Mapping[str, Any]) -> Any:
    """Read a value by its type hint; the code and parameters of a reason are fields of the same row."""
    origin, choices = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if value is None and NoneType in choices:
            return None
        return _read(next(choice for choice in choices if choice is not NoneType), value, name, row)
    if origin is Literal and value in choices:
        return value
    if origin is tuple and isinstance(value, (list, tuple)):
        return tuple(_read(choices[0], member, f"{name}[{i}]", row) for i, member in enumerate(value))
    if hint is Any or (origin in (Mapping, dict) and isinstance(value, Mapping)):
        return value
    if isinstance(hint, type):
        return _as(hint, value, name, row)
    raise InputError(f"{name} cannot be {clip(value)}")


def _as(kind: Any, value: object, name: str, row: Mapping[str, Any]) -> Any:
    if kind is Reason:
        _as(str, value, name, row)
        return Reason.from_dict(row)
    if hasattr(kind, "from_dict"):
        return kind.from_dict(value)
    if is_dataclass(kind):
        return from_row(cast(type[Any], kind), value)
    if hasattr(kind, "_fields") and isinstance(value, Mapping) and value.keys() >= set(kind._fields):
        return kind(*(_read(_hints(kind)[field], value[field], f"{name}.{field}", value) for field in kind._fields))
    if kind is float and type(value) is int and abs(value) < 1 << 1000:
        return float(value)
    if type(value) is not kind and not (kind is str and isinstance(value, str)):
        raise InputError(f"{name} must be {NAMES.get(kind, kind.__name__)}, got {clip(value)}")
    return value


def array_row(array: NDArray[Any]) -> dict[str, Any]:
    """An array with its dtype, for an exact round trip."""
    return {"dtype": str(array.dtype), "values": array.tolist()}


def read_array(row: Mapping[str, Any]) -> NDArray[Any]:
    """Read the output of `array_row`.

    Raises:
        KeyError, TypeError, ValueError: The row is malformed.
    """
    return np.array(row["values"], dtype=row["dtype"])
