"""The texts in objects of any library: fields as JSON has them, and an object of the same type with other ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from unpoison.agents.leaves import MAX_DEPTH, MAX_VALUES, TooMuchError
from unpoison.errors import InputError

__all__ = ["put_values", "values_of"]


def values_of(value: Any) -> Any:
    """Strings, numbers, lists and mappings of a value, of dataclasses and of pydantic models, in their order.

    Any other object is what `str` makes of it, beside what its `to_dict` returns, where it has one. Numbers alone in a
    list, such as an embedding, are left out.

    Raises:
        TooMuchError: There is more than may be read.
        InputError: Two keys of a mapping are the same text.
    """
    count = 0

    def unfold(here: Any, depth: int) -> Any:
        nonlocal count
        count += 1
        if count > MAX_VALUES:
            raise TooMuchError(f"it has more than {MAX_VALUES:,} values")
        if depth > MAX_DEPTH:
            raise TooMuchError(f"it has more than {MAX_DEPTH} levels")
        if here is None or isinstance(here, (str, bool, int, float, bytes, bytearray, memoryview)):
            return here
        if isinstance(here, Mapping):
            found = {str(key): unfold(held, depth + 1) for key, held in here.items()}
            if len(found) != len(here):
                raise InputError("two keys of a tool's result are the same text; make them differ")
            return found
        if isinstance(here, (list, tuple, set, frozenset)):
            return [] if _only_numbers(here) else [unfold(held, depth + 1) for held in here]
        if (own := _fields(here)) is not None:
            return {name: unfold(held, depth + 1) for name, held in own.items()}
        if not isinstance(here, type) and callable(to_dict := getattr(here, "to_dict", None)):
            return [str(here), unfold(to_dict(), depth + 1)]
        return str(here)

    return unfold(value, 0)


def put_values(value: Any, before: Any, after: Any) -> Any:
    """The value with what stands in `after`, where that is not the object that stands in `before`.

    Args:
        value: What was unfolded. Where nothing changed it is returned itself.
        before: What `values_of` returned for it.
        after: That, with other texts.
    """
    if after is before:
        return value
    if isinstance(value, Mapping):
        parts = zip(value.items(), before.items(), after.items(), strict=True)
        return {key if old == new else new: put_values(held, b, a) for (key, held), (old, b), (new, a) in parts}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [put_values(held, b, a) for held, b, a in zip(value, before, after, strict=True)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if (own := _fields(value)) is not None:
        changes = {name: put_values(own[name], before[name], after[name]) for name in own}
        changes = {name: new for name, new in changes.items() if new is not own[name]}
        return value.model_copy(update=changes) if hasattr(value, "model_copy") else replace(value, **changes)
    return after if isinstance(after, str) else after[0]


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass or a pydantic model; None for anything else."""
    if isinstance(value, type):
        return None
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if hasattr(value, field.name)}
    named = getattr(type(value), "model_fields", None)
    if not isinstance(named, dict):
        return None
    return {**{name: getattr(value, name) for name in named}, **(value.model_extra or {})}


def _only_numbers(values: Any) -> bool:
    return all(isinstance(value, (int, float)) for value in values)
