"""The file of a Guard of one's own (`defenses.guard.fit`): for its owner alone, and read as if anybody had made it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from unpoison.defenses.guard.key import GROUPS, part_of
from unpoison.defenses.guard.model import COMPANY, WORDING, GuardModel
from unpoison.defenses.guard.windows import WindowModel
from unpoison.errors import InputError, OptionError, shown
from unpoison.kernels.window_evidence import COLUMNS

__all__ = ["OwnGuard", "check_new", "parsed", "read", "write"]

LARGEST: Final = 2**20
"""Bytes of a file; a fitted one has about 150,000."""

MOST_TREES: Final = 500
"""Of one classifier, so that a file cannot make a screening slow."""
INNER, OUTER = 7, 8
"""Nodes and leaves of a tree of depth 3."""
MOST_LEVELS: Final = 100
"""Levels of damage."""


class OwnGuard(NamedTuple):
    """Coefficients that were fitted with a secret.

    Attributes:
        encoder: On whose vectors: `lexical`, or `minilm` for all other encoders.
        model: The judgement in company.
        windows: The judgement of windows.
    """

    encoder: str
    model: GuardModel
    windows: WindowModel


def check_new(path: Path) -> None:
    """See that there is no such file yet.

    Raises:
        InputError: There is.
    """
    if path.exists():
        raise InputError(f"{path} exists already; give a new name, for the Guard in it may be in use")


def write(data: Mapping[str, Any], path: Path) -> None:
    """Write coefficients to a file that only its owner can read: whoever reads it can search for what passes.

    Raises:
        InputError: The file exists, or cannot be written.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(json.dumps(data, separators=(",", ":")) + "\n")
    except FileExistsError:
        check_new(path)
        raise InputError(f"{path} is a link to nowhere; give a new name") from None
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}; give a file in a folder of yours") from None


def read(path: str | os.PathLike[str]) -> OwnGuard:
    """Read the coefficients of a file.

    Raises:
        OptionError: There is no such file, or it holds something else, or was fitted with another version's numbers.
    """
    try:
        with Path(path).open("rb") as file:
            raw = file.read(LARGEST + 1)
    except (OSError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise OptionError(
            f"coefficients must be auto, minilm, lexical or a file of 'unpoison guard fit', got {shown(path)}: {why}"
        ) from None
    try:
        if len(raw) > LARGEST:
            raise ValueError(f"it is larger than {LARGEST:,} bytes")
        return parsed(json.loads(raw))
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise OptionError(f"{path} holds no coefficients: {why}; make it with 'unpoison guard fit'") from None


def parsed(data: Any) -> OwnGuard:
    """The coefficients of a file's content.

    Raises:
        ValueError: It is something else.
    """
    parts = _fields(data, "the file", {"format": int, "encoder": str, "shipped": str, "style": list, "windows": dict,
                                       "columns": list, "alone_columns": list, "calibration": dict})  # fmt: skip
    if parts["format"] != 1 or parts["encoder"] not in ("lexical", "minilm"):
        raise ValueError("its format or its encoder is unknown to this version")
    shipped, windows = GuardModel.load(parts["encoder"]), WindowModel.load()
    if parts["shipped"] != f"{shipped.calibration}-{windows.calibration}":
        raise ValueError("it was fitted with the numbers of another version, so fit it again")
    names = (*shipped.columns, *WORDING)
    if parts["columns"] != list(shipped.columns) or not set(_words(parts["alone_columns"])) <= set(names):
        raise ValueError("its columns are not those of this version")
    calibration = _fields(parts["calibration"], "calibration", {"context": list})
    levels = _levels(data, low=0.0, high=1.0)
    looked = parts["windows"]
    style, window_style = _groups(data), _groups(looked)
    whole = {
        "columns": parts["columns"],
        "first": _trees(data, "first", len(names)),
        "second": _trees(data, "second", len(names) + len(COMPANY)),
        "alone_columns": parts["alone_columns"],
        "alone": _trees(data, "alone", len(parts["alone_columns"])),
        "calibration": {
            "slope": _number(calibration, "slope", 0.0, 100.0),
            "alone": _number(calibration, "alone", 0.0, 100.0),
            "context": _table(calibration["context"], "context", (len(shipped.context),)).tolist(),
            "base": _number(calibration, "base", -100.0, 100.0),
        },
        "bound": _number(data, "bound", 0.0, 20.0),
        "ordinary": _number(data, "ordinary", -100.0, 100.0),
        **levels,
    }
    of_windows = {"trees": _trees(looked, "trees", len(COLUMNS)), **_levels(looked, low=-100.0, high=100.0)}
    if len(of_windows["thresholds"]) != len(levels["thresholds"]):
        raise ValueError("its two lists of thresholds differ in length")
    return OwnGuard(
        parts["encoder"],
        GuardModel.from_numbers(whole, part_of(shipped.style, style)),
        WindowModel.from_numbers(of_windows, part_of(windows.style, window_style)),
    )


def _fields(data: Any, name: str, kinds: Mapping[str, type]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ValueError(f"{name} is no object")
    for field, kind in kinds.items():
        if not isinstance(data.get(field), kind):
            raise ValueError(f"{field} is missing or no {kind.__name__}")
    return data


def _words(values: Sequence[Any]) -> list[str]:
    if not all(isinstance(value, str) for value in values):
        raise ValueError("a column is no name")
    return list(values)


def _number(data: Mapping[str, Any], name: str, low: float, high: float) -> float:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError(f"{name} is no number from {low:g} to {high:g}")
    return float(value)


def _table(
    values: Any, name: str, shape: tuple[int, ...], whole: bool = False
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Finite numbers of a shape."""
    try:
        table = np.array(values)
    except ValueError:
        table = np.array(None)
    if table.shape != shape or table.dtype.kind not in ("i" if whole else "if") or not np.isfinite(table).all():
        raise ValueError(f"{name} is no table of {' x '.join(map(str, shape))} finite numbers")
    return table


def _trees(data: Mapping[str, Any], name: str, columns: int) -> dict[str, Any]:
    trees = _fields(data.get(name), name, {"features": list, "thresholds": list, "leaves": list})
    count = len(trees["features"])
    if not 1 <= count <= MOST_TREES:
        raise ValueError(f"{name} holds {count} trees, not 1 to {MOST_TREES}")
    features = _table(trees["features"], f"the features of {name}", (count, INNER), whole=True)
    if features.min() < 0 or features.max() >= columns:
        raise ValueError(f"the features of {name} name columns that there are not")
    return {
        "features": features.tolist(),
        "thresholds": _table(trees["thresholds"], f"the thresholds of {name}", (count, INNER)).tolist(),
        "leaves": _table(trees["leaves"], f"the leaves of {name}", (count, OUTER)).tolist(),
        "base": _number(trees, "base", -100.0, 100.0),
    }


def _levels(data: Any, *, low: float, high: float) -> dict[str, list[float]]:
    """Shares of damage, rising, and thresholds, falling, inside (low, high)."""
    levels = _fields(data, "windows", {"damage": list, "thresholds": list})
    count = len(levels["damage"])
    if not 2 <= count <= MOST_LEVELS:
        raise ValueError(f"it has {count} levels of damage, not 2 to {MOST_LEVELS}")
    damage = _table(levels["damage"], "damage", (count,))
    thresholds = _table(levels["thresholds"], "thresholds", (count,))
    if (np.diff(damage) <= 0).any() or not 0 < damage[0] <= damage[-1] <= 1:
        raise ValueError("its levels of damage are no rising shares")
    if (np.diff(thresholds) > 0).any() or not low < thresholds[-1] <= thresholds[0] < high:
        raise ValueError("its thresholds do not fall, or are out of range")
    return {"damage": damage.tolist(), "thresholds": thresholds.tolist()}


def _groups(data: Mapping[str, Any]) -> list[int]:
    groups = data.get("style")
    if not isinstance(groups, list) or not 1 <= len(groups) <= GROUPS:
        raise ValueError(f"style is no list of 1 to {GROUPS} groups")
    numbers: list[int] = _table(groups, "style", (len(groups),), whole=True).tolist()
    if len(set(numbers)) < len(numbers) or not set(numbers) <= set(range(GROUPS)):
        raise ValueError(f"style names groups that are not between 0 and {GROUPS - 1}, or one twice")
    return numbers
