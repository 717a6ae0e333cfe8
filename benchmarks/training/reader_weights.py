"""The weights of an exported reader as those that training goes on from: int8 back to what the numbers stand for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from unpoison.models.loading import READERS

__all__ = ["earlier_weights", "exported_folder", "exported_weights", "passes"]


def exported_folder(name: str | Path) -> Path:
    """The folder of a shipped reader, by its name, or the folder itself."""
    return Path(import_module(READERS[name]).FOLDER) if name in READERS else Path(name)


def earlier_weights(name: str | Path) -> dict[str, Tensor]:
    """The weights after the last pass of an earlier run, else those of an exported reader.

    Raises:
        FileNotFoundError: The folder holds neither.
    """
    folder = exported_folder(name)
    if files := passes(folder):
        return load_file(files[-1])
    if (folder / "model.onnx").exists():
        return exported_weights(folder / "model.onnx")
    raise FileNotFoundError(f"{folder} holds neither pass-N.safetensors nor model.onnx; train there first")


def passes(work: Path) -> list[Path]:
    """The weights after each whole pass of a run, in order."""
    return sorted(work.glob("pass-*.safetensors"), key=lambda file: int(file.stem.split("-")[1]))


def exported_weights(file: Path) -> dict[str, Tensor]:
    """By the names of the network; a linear layer's matrix is named by the place of the node that multiplies by it."""
    import onnx
    from onnx.numpy_helper import to_array

    graph = onnx.load(file).graph
    values = {value.name: to_array(value) for value in graph.initializer}
    whole = {
        name.removesuffix("_quantized"): _dequantised(name, values) for name in values if name.endswith("_quantized")
    }
    weights = {
        name: value for name, value in values.items() if value.dtype == np.float32 and not name.endswith("_scale")
    }
    weights |= {name: value for name, value in whole.items() if name.startswith("network.")}
    for node in graph.node:
        matrix = node.input[1].removesuffix("_quantized") if node.op_type == "MatMulInteger" else ""
        if matrix in whole:
            layer = node.name.strip("/").replace("/", ".").rsplit(".", 1)[0] + ".weight"
            weights.pop(matrix, None)
            weights[layer] = whole[matrix].T
    return {name.removeprefix("network."): torch.tensor(np.ascontiguousarray(value)) for name, value in weights.items()}


def _dequantised(name: str, values: dict[str, np.ndarray]) -> np.ndarray:
    stem = name.removesuffix("_quantized")
    zero = values[f"{stem}_zero_point"].astype(np.float32)
    return (values[name].astype(np.float32) - zero) * values[f"{stem}_scale"]
