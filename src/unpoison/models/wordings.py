"""What the papers ask and plant, and what stands for it here: `data/wordings.yaml`, each with its source.

The papers' sentences are theirs, and some of the code that holds them carries no licence; so each is stated as a fact
(`says`), restated in our words (`text` and the like), and what is not as there is said (`differs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

__all__ = ["PAPERS", "wording"]

PAPERS = ("grada", "ragdefender", "trustrag", "radar")
"""Whose way of asking a style can name."""


@cache
def _all() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    text = files("unpoison").joinpath("data", "wordings.yaml").read_text(encoding="utf-8")
    read: Mapping[str, Mapping[str, Mapping[str, Any]]] = yaml.safe_load(text)
    return read


def wording(kind: str, name: str) -> Mapping[str, Any]:
    """One entry: `wording("answer", "grada")` or `wording("orders", "qa")`.

    Raises:
        KeyError: No such entry.
    """
    return _all()[kind][name]
