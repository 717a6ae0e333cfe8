"""Graphs in ONNX format, run with onnxruntime, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.errors import ModelError, clip
from unpoison.utils.extras import require

__all__ = ["open_graph"]


def open_graph(
    folder: Path, name: str, providers: Sequence[str], *, threads: int | None = None
) -> tuple[Any, dict[str, type[np.signedinteger[Any]]], list[str], bool]:
    """Open an onnxruntime session of a folder's graph, which must be a single file beside its `tokenizer.json`.

    Args:
        folder: The folder of `model.onnx` or `onnx/model.onnx`.
        name: Its name in error messages.
        providers: onnxruntime's execution providers, the preferred first.
        threads: Threads of one run; None for the library's default.

    Returns:
        The session, the type of each input, the names of the outputs, and whether the graph is int8.

    Raises:
        MissingExtraError: onnxruntime is not installed.
        ModelError: A file is missing or invalid, or refers to other files: an untrusted graph must not choose files to
            read.
    """
    runtime = require("onnxruntime", "an ONNX model")
    file = next((path for path in (folder / "model.onnx", folder / "onnx" / "model.onnx") if path.is_file()), None)
    if file is None or not (folder / "tokenizer.json").is_file():
        raise ModelError(f"{name} lacks model.onnx or tokenizer.json; give a folder that has both")
    try:
        graph = file.read_bytes()
    except OSError as error:
        raise _unusable(name, error) from error
    if _ELSEWHERE in graph:
        raise ModelError(f"{name} keeps weights in files beside {file.name}; export it as one file")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    if threads is not None:
        options.intra_op_num_threads = threads
    try:
        session = runtime.InferenceSession(graph, options, providers=list(providers))
    except Exception as error:  # the library raises bare exceptions of its own
        raise _unusable(name, error) from error
    inputs: dict[str, type[np.signedinteger[Any]]] = {
        put.name: np.int32 if "int32" in put.type else np.int64 for put in session.get_inputs()
    }
    return session, inputs, [put.name for put in session.get_outputs()], _SCALED in graph


_SCALED = b"DynamicQuantizeLinear"
"""An operator of dynamically quantised int8 graphs."""

_ELSEWHERE = b"\n\x08location"
"""The field of a graph (a protocol buffer) that refers to a tensor in another file."""


def _unusable(name: str, error: Exception) -> ModelError:
    return ModelError(f"cannot load {name} ({clip(' '.join(str(error).split()), 200)}); export the model again")
