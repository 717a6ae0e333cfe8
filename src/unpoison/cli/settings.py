"""Options from a TOML file: every key is also a flag and an environment variable.

The command line counts before the environment, the environment before the file, the file before the default.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from unpoison.errors import InputError, OptionError, UnknownNameError, clip

__all__ = ["MAX_FILE_BYTES", "read_settings"]

MAX_FILE_BYTES = 1024 * 1024
"""Bytes of a file; settings are a page."""

SCALAR = (str, int, float, bool)


def read_settings(context: Any, parameter: Any, path: Path | None) -> Path | None:
    """The callback of an eager `--config`: what the file sets becomes the default of the options of this command.

    Args:
        context: The command's.
        parameter: The option itself, which the file cannot set.
        path: The file, None for none.

    Raises:
        InputError: The file cannot be read, or is no TOML.
        UnknownNameError: A key that is no option; the message has the nearest.
        OptionError: A value that no option takes, such as a table.
    """
    if path is None:
        return None
    options = {p.name: p for p in context.command.params if p.name not in (parameter.name, "help")}
    names = {_long(p): name for name, p in options.items()}
    settings: dict[str, Any] = {}
    for key, value in _table(path).items():
        option = key.replace("_", "-")
        if option not in names:
            raise UnknownNameError(f"setting of {path.name}", key, names)
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(member, SCALAR) for member in values):
            raise OptionError(f"{path.name}: {key} must be a text, a number, true or false, or a list of them")
        multiple = getattr(options[names[option]], "multiple", False)
        if isinstance(value, list) and not multiple:
            raise OptionError(f"{path.name}: {key} takes one value, got {clip(value)}")
        settings[names[option]] = values if multiple else value
    context.default_map = {**(context.default_map or {}), **settings}
    return path


def _long(parameter: Any) -> str:
    """`max-body` of the option --max-body."""
    return str(max(parameter.opts, key=len)).lstrip("-").replace("_", "-")


def _table(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise InputError(f"{path} has more than {MAX_FILE_BYTES:,} bytes; settings are one short file")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise InputError(f"the settings {path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"the settings {path} are no TOML: {error}") from None
