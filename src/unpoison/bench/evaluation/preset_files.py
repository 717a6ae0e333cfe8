"""The papers' tables as YAML files of this package: `data/presets`, and `data/stream_presets` for those over time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from unpoison.errors import UnknownNameError

__all__ = ["preset_file", "preset_files"]


def preset_files(folder: str) -> list[str]:
    """The names of all presets in a folder, sorted."""
    paths = files("unpoison").joinpath("data", folder).iterdir()
    return sorted(path.name.removesuffix(".yaml") for path in paths if path.name.endswith(".yaml"))


@cache
def preset_file(folder: str, name: str) -> Mapping[str, Any]:
    """What a preset's file holds.

    Raises:
        UnknownNameError: No such preset; the message names the nearest.
    """
    if name not in preset_files(folder):
        raise UnknownNameError(folder.removesuffix("s").replace("_", " "), name, preset_files(folder))
    text = files("unpoison").joinpath("data", folder, f"{name}.yaml").read_text(encoding="utf-8")
    content: Mapping[str, Any] = yaml.safe_load(text)
    return content
