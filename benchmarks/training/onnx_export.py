"""Readers to one int8 ONNX file, which needs neither torch nor transformers to run."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unpoison.errors import ModelError, OptionError, clip
from unpoison.models.spans import load_answerer
from unpoison.utils.extras import require

__all__ = ["INPUTS", "export", "file_hashes", "write_graph", "write_settings"]

PURPOSE = "exporting a model"

INPUTS = ("input_ids", "attention_mask", "token_type_ids")

PER_TEXT = ("relation", "odds")
"""Outputs with values for a whole text; others have one per token."""


def export(name_or_path: str, folder: Path) -> Path:
    """Write an extractive question-answering checkpoint as `model.onnx` (int8) and `tokenizer.json`.

    Args:
        name_or_path: A checkpoint of the transformers library, by folder or by name.
        folder: Where the files go; it must be empty or absent.

    Returns:
        The graph, some quarter of the checkpoint's size. Linear layers and embeddings are int8, sums are float32.

    Raises:
        OptionError: The folder has files.
        MissingExtraError: The extra `export` is not installed.
        ModelError: The checkpoint cannot be loaded, has no fast tokenizer, or cannot be exported.
    """
    _check_new(folder)
    torch = require("torch", PURPOSE)
    tokenizer, model = load_answerer(name_or_path, name_or_path, PURPOSE, "cpu", attn_implementation="eager")
    inputs = _inputs_of(model)

    class Spans(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *values: Any) -> tuple[Any, Any]:
            outputs = self.model(**dict(zip(inputs, values, strict=True)))
            return outputs.start_logits, outputs.end_logits

    folder.mkdir(parents=True, exist_ok=True)
    longest = min(
        v for v in (getattr(model.config, "max_position_embeddings", 0), tokenizer.model_max_length, 512) if v > 0
    )
    graph = write_graph(Spans(), inputs, ("start_logits", "end_logits"), folder / "model.onnx")
    (folder / "tokenizer.json").write_text(tokenizer.backend_tokenizer.to_str(), "utf-8")
    write_settings(folder, window=min(384, longest), question=min(64, longest // 4))
    return graph


def _inputs_of(model: Any) -> tuple[str, ...]:
    return INPUTS if getattr(model.config, "type_vocab_size", 0) > 1 else INPUTS[:2]


def _check_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OptionError(f"{folder} has files already; give a folder that is new or empty")


def write_graph(
    model: Any, inputs: Sequence[str], outputs: Sequence[str], file: Path, *, batch: int | None = None
) -> Path:
    """Write a torch module whose outputs have values per token, or per text (`PER_TEXT`), as an int8 graph.

    Weights are quantised by channel, activations while running. `batch` fixes the texts of a run, as the module may
    need; otherwise any number can be read together.

    Raises:
        MissingExtraError: onnx or onnxruntime is not installed.
        ModelError: The exporter refused the model.
    """
    torch = require("torch", PURPOSE)
    require("onnx", PURPOSE)
    quantization = require("onnxruntime.quantization", PURPOSE)
    ones = torch.ones(batch or 2, 9, dtype=torch.long)
    feeds = tuple(ones * 0 if name == "token_type_ids" else ones for name in inputs)
    texts = {} if batch else {0: "batch"}
    axes = {name: texts if name in PER_TEXT else {**texts, 1: "length"} for name in (*inputs, *outputs)}
    with TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that needs no further package is deprecated
        whole = Path(scratch) / "whole.onnx"
        try:
            torch.onnx.export(
                model, feeds, str(whole), input_names=list(inputs), output_names=list(outputs), dynamic_axes=axes,
                opset_version=17, dynamo=False,
            )  # fmt: skip
            quantization.quantize_dynamic(
                str(whole), str(file), weight_type=quantization.QuantType.QInt8, per_channel=True, reduce_range=True
            )
        except Exception as error:  # both libraries raise exceptions of many kinds
            raise ModelError(
                f"cannot export the model ({type(error).__name__}: {clip(' '.join(str(error).split()), 200)}); "
                "export another architecture, or use the checkpoint itself with qa:FOLDER"
            ) from error
    return file


def write_settings(
    folder: Path,
    *,
    window: int,
    question: int,
    slope: float = 1.0,
    intercept: float = 0.0,
    temperature: float = 1.0,
    languages: Sequence[str] = (),
) -> Path:
    """Write `reader.json`: how the folder's graph is to be used (`Settings`), and the hashes of its files."""
    settings = {
        "window": window, "question": question, "slope": slope, "intercept": intercept, "temperature": temperature,
        "languages": list(languages), "sha256": file_hashes(folder),
    }  # fmt: skip
    file = folder / "reader.json"
    file.write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
    return file


def file_hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of a folder's graph and tokenizer."""
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("model.onnx", "tokenizer.json")}
