"""The transformer of the package unpoison-reader, which judges stretches of which the linear model is unsure.

`injections.cutting` adds its log-odds to those of `text.prompt_injection`. It reads a stretch alone, within its line
and in its surroundings: an order in honest text looks honest, and a piece of honest text looks like an order. Each
window of tokens is a run of its own: an int8 graph scales its numbers by all that is in a run, and no text may change
how another is judged. `benchmarks/training/train_injection_model.py` trains and exports it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import ModelError, clip
from unpoison.utils.extras import require
from unpoison.utils.graphs import check_published, open_graph
from unpoison.utils.plain_text import encodable

__all__ = ["SWITCH", "WINDOW", "InjectionModel", "Passed", "shipped_injection_model"]

WINDOW = 94
"""Tokens of a window, without the marks around it."""

REACH = 600
"""Characters on both sides of a stretch of which a window is cut."""

FILES = ("model.onnx", "tokenizer.json")

SWITCH = "UNPOISON_INJECTION_MODEL"
"""The environment variable that switches the model off (`off`) for every surface of a process."""


class Passed(NamedTuple):
    """A part of a text, `end` exclusive."""

    text: str
    start: int
    end: int


class InjectionModel:
    """Judges stretches of texts.

    Args:
        folder: It holds `model.onnx`, `tokenizer.json`, and `injection.json` with the hashes of both.

    Raises:
        MissingExtraError: The extra `reader` is not installed.
        ModelError: A file is missing, cut or changed.
    """

    name = "injection model"

    def __init__(self, folder: Path) -> None:
        _check_hashes(folder, self.name)
        self._session, self._inputs, (self._output, *_) = open_graph(folder, self.name)
        self._tokenizer = require("tokenizers", "the injection model").Tokenizer.from_file(str(folder / FILES[1]))
        self._tokenizer.encode_special_tokens = True  # a "[SEP]" in a text is text
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._first, self._last = self._tokenizer.encode("").ids
        self._lock = Lock()  # tokenizers refuse to be used by two threads at once

    def log_odds(self, stretches: Sequence[Passed], /) -> NDArray[np.float64]:
        """The log-odds that each of n stretches is a prompt injection: the mean of its readings, shape (n,).

        Two calls give the same bytes on one machine. Time is linear in the number of stretches.

        Raises:
            ModelError: The model failed, or made a value that is not finite.
        """
        odds = np.array([self._judge(*stretch) for stretch in stretches], float)
        if not np.isfinite(odds).all():
            raise ModelError(f"{self.name} made a value that is not finite; install the package again")
        return odds

    def _judge(self, text: str, start: int, end: int) -> float:
        first, last = max(0, start - REACH), min(len(text), end + REACH)
        line = text.rfind("\n", first, start) + 1 or first, text.find("\n", end, last)
        parts = (start, end), (line[0], line[1] if line[1] >= 0 else last), (first, last)
        windows = [self._window(text[begin:stop], start - begin, end - begin) for begin, stop in parts]
        odds = [self._run(window) for window in windows]
        return sum(odds) / len(odds)

    def _window(self, text: str, start: int, end: int) -> list[int]:
        """The tokens of a stretch, with as many on both sides as a window holds; the first ones of a long stretch."""
        with self._lock:
            encoded = self._tokenizer.encode(encodable(text), add_special_tokens=False)
        inside = [i for i, (begin, stop) in enumerate(encoded.offsets) if stop > start and begin < end] or [0]
        middle = min((inside[0] + inside[-1] + 1) // 2, inside[0] + WINDOW // 2)
        first = max(0, min(middle - WINDOW // 2, len(encoded.ids) - WINDOW))
        return [self._first, *encoded.ids[first : first + WINDOW], self._last]

    def _run(self, ids: list[int]) -> float:
        tokens = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
        feed = {name: tokens[name].astype(kind) for name, kind in self._inputs.items()}
        try:
            return float(self._session.run([self._output], feed)[0][0])
        except Exception as error:  # onnxruntime raises bare exceptions of its own
            raise ModelError(f"{self.name} failed ({clip(str(error), 200)}); install the package again") from error


def _check_hashes(folder: Path, name: str) -> None:
    try:
        hashes = json.loads((folder / "injection.json").read_text("utf-8"))["sha256"]
        expected = {file: str(hashes[file]) for file in FILES}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{name} has no usable injection.json ({type(error).__name__}); install the package again"
        ) from error
    for file, digest in expected.items():
        check_published(folder / file, digest, name)


def shipped_injection_model() -> InjectionModel | None:
    """The model of the package unpoison-reader; None where the extra `reader` is missing or the model is switched off.

    Raises:
        ModelError: Its files were cut or changed.
    """
    return None if os.environ.get(SWITCH) == "off" else _shipped()


@cache
def _shipped() -> InjectionModel | None:
    if not all(map(find_spec, ("unpoison_reader", "onnxruntime", "tokenizers"))):
        return None
    return InjectionModel(Path(str(require("unpoison_reader", "the injection model").FOLDER)) / "injection")
