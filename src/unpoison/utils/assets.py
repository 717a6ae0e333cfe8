"""Files beside the code: tables and arrays of this package, graphs of ONNX; read, verified and opened in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from hashlib import file_digest
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.errors import ModelError, clip
from unpoison.utils.extras import require

__all__ = ["DATA", "array_folder", "check_published", "open_graph", "read_data"]

DATA = Path(__file__).parents[1] / "data"
"""The folder `unpoison/data`."""


def read_data(name: str) -> Any:
    """A file of `DATA`: the values of a `.yaml` or `.json`, the text of any other."""
    text = (DATA / name).read_text(encoding="utf-8")
    if name.endswith(".yaml"):
        import yaml  # here: the papers' methods need none

        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  both are safe
    return json.loads(text) if name.endswith(".json") else text


def check_published(folder: Path, hashes: Mapping[str, str], name: str) -> None:
    """Verify the SHA-256 of files in a package of weights; about 0.3 s for 90 MB.

    Args:
        folder: Where they are.
        hashes: File name -> hexadecimal digits.
        name: Of the package, in error messages.

    Raises:
        ModelError: One is missing, truncated or changed.
    """
    for file, expected in hashes.items():
        try:
            with (folder / Path(file).name).open("rb") as stream:
                actual = file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise ModelError(f"{name} lacks {file} ({type(error).__name__}); install the package again") from error
        if actual != expected:
            raise ModelError(f"{name} has a {file} that differs from the published one; install the package again")


PUBLISHED = {
    "crafted.npz": "b632fded4af0b88ee4b4806261c92e890f19ec25a7a96428c0975eb473a455c4",
    "gibberish.npz": "7d61a3d32dc1b282cbb91b9e5ac03be49c89653908ad056c7ae59d2841fcf8c5",
}
"""SHA-256 of the arrays in `unpoison/data`, which `sha256sum` prints after a training."""


@cache
def array_folder() -> Path:
    """`DATA`, with its arrays verified once, in about a millisecond.

    Raises:
        ModelError: One is missing, truncated or changed.
    """
    check_published(DATA, PUBLISHED, "unpoison")
    return DATA


def open_graph(folder: Path, name: str) -> tuple[Any, dict[str, type[np.signedinteger[Any]]], list[str]]:
    """Open a folder's graph, a single file beside its `tokenizer.json`, on the CPU with one thread for each run.

    Args:
        folder: The folder of `model.onnx` or `onnx/model.onnx`.
        name: Its name in error messages.

    Returns:
        The session of onnxruntime, the type of each input, and the names of the outputs.

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
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    try:
        session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library raises bare exceptions of its own
        raise _unusable(name, error) from error
    inputs: dict[str, type[np.signedinteger[Any]]] = {
        put.name: np.int32 if "int32" in put.type else np.int64 for put in session.get_inputs()
    }
    return session, inputs, [put.name for put in session.get_outputs()]


_ELSEWHERE = b"\n\x08location"
"""The field of a graph (a protocol buffer) that refers to a tensor in another file."""


def _unusable(name: str, error: Exception) -> ModelError:
    return ModelError(f"cannot load {name} ({clip(' '.join(str(error).split()), 200)}); export the model again")
