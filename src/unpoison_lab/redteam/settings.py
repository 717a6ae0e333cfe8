"""Settings, validated by pydantic with errors that name the field.

Importers call `utils.extras.require` for pydantic first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Self, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from unpoison.errors import OptionError, UnknownNameError, UnpoisonError, clip

__all__ = ["SettingsSection", "Text"]

WANTED = {
    "bool_type": "true or false",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "int_type": "a whole number",
    "less_than_equal": "at most {le:,}",
    "literal_error": "one of {expected}",
    "string_pattern_mismatch": "a text",
    "string_type": "a text",
}
"""The expected value by pydantic's error type; a mapping otherwise."""

Text = Annotated[str, Field(pattern=r"\S")]
"""A string that is not blank."""


class SettingsSection(BaseModel):
    """A mapping in a configuration. A field with an empty value counts as missing."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @classmethod
    def read(cls, values: object, name: str) -> Self:
        """Read a section.

        Args:
            values: The section's content.
            name: The section's name in messages.

        Raises:
            UnknownNameError: An unknown field; the message names the nearest.
            OptionError: A field is missing, or its value cannot be used.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as errors:
            worst = min(errors.errors(), key=lambda error: error["type"] != "extra_forbidden")
            raise _sentence(cls, cast(dict[str, Any], worst), name) from None

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        return {str(name): value for name, value in values.items() if value is not None}


def _sentence(kind: type[SettingsSection], error: dict[str, Any], name: str) -> UnpoisonError:
    """Pydantic's error for one field as an error of this package."""
    details = error.get("ctx", {})
    if isinstance(details.get("error"), UnpoisonError):
        return cast(UnpoisonError, details["error"])
    steps = [step for step in error["loc"] if isinstance(step, str)]
    owner = ".".join(steps[:-1]) or name
    if error["type"] == "extra_forbidden":
        return UnknownNameError(f"field of {owner}", steps[-1], _fields(kind, steps[:-1]))
    if error["type"] in ("missing", "too_short"):
        return OptionError(f"{owner} needs {steps[-1]}; add it")
    wanted = WANTED.get(error["type"], "a mapping").format(**details)
    if error["type"] == "model_type":
        wanted += f" with {', '.join(_fields(kind, steps))}"
    return OptionError(f"{'.'.join(steps) or name} must be {wanted}, got {clip(error['input'])}")


def _fields(kind: type[SettingsSection], steps: Sequence[str]) -> list[str]:
    """The fields of the section that these steps lead to."""
    for step in steps:
        hint = next(field.annotation for name, field in kind.model_fields.items() if step in (name, field.alias))
        kind = next(part for part in _parts(hint) if isinstance(part, type) and issubclass(part, SettingsSection))
    return [field.alias or name for name, field in kind.model_fields.items()]


def _parts(hint: Any) -> Iterator[Any]:
    """A type hint and all its arguments, recursively."""
    yield hint
    for part in get_args(hint):
        yield from _parts(part)
