"""Encoders and classifiers in ONNX format, with onnxruntime and tokenizers, without torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import ModelError, clip
from unpoison.models.checkpoints import CheckpointEncoder, in_batches, token_windows
from unpoison.text.alignment import Region
from unpoison.utils.checks import at_least
from unpoison.utils.extras import require

__all__ = ["OnnxClassifier", "OnnxEncoder", "OnnxGraph", "open_graph"]


class OnnxEncoder(CheckpointEncoder):
    """A sentence encoder in a folder with `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`.

    A graph with one vector per token is pooled by the mean over the text's tokens, or as in `1_Pooling/config.json`; a
    graph with an output `sentence_embedding` is already pooled.

    Args:
        folder: The folder of the files.
        pooling: Pooling of token vectors: `mean`, or `cls`, the first token; None for the folder's setting.
        similarity: `cosine` scales every vector to length 1; `dot` leaves them unnormalised.
        query_encoder: Another such folder for questions (DPR's two towers).
        batch_size: Texts per run; always 1 for an int8 graph, whose scales depend on all texts of a run, so that texts
            do not influence each other.
        max_length: Maximum tokens of a text, at most the model's own limit; longer texts are truncated.
        providers: onnxruntime's execution providers, the preferred first.
        threads: Threads of one run; None for the library's default, one per core.

    Raises:
        MissingExtraError: The extra `onnx` is not installed.
        ModelError: A file is missing or unusable.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        pooling: Literal["mean", "cls"] | None = None,
        similarity: Literal["cosine", "dot"] = "cosine",
        query_encoder: str | None = None,
        batch_size: int = 32,
        max_length: int = 256,
        providers: Sequence[str] = ("CPUExecutionProvider",),
        threads: int | None = None,
    ) -> None:
        super().__init__(f"onnx:{folder}", pooling, similarity, query_encoder)
        self._passages = OnnxGraph(self.name, Path(folder), batch_size, max_length, providers, threads)
        self._pools_first = _pools_first_token(self.name, Path(folder)) if pooling is None else pooling == "cls"
        self.longest = min(max_length, _longest(self.name, Path(folder)))
        if query_encoder is not None:
            self._questions = OnnxGraph(self.name, Path(query_encoder), batch_size, max_length, providers, threads)

    def _vectors(self, tower: Any, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors: NDArray[np.float64] = tower.run(texts, "sentence_embedding", self._pool)
        if self.similarity == "dot":
            return vectors.astype(np.float32)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(length > 0, length, 1.0)).astype(np.float32)

    def _pool(self, output: NDArray[Any], mask: NDArray[np.int64]) -> NDArray[Any]:
        if output.ndim == 2:
            return output
        if self._pools_first:
            return output[:, 0]
        weight = mask[:, :, None]
        pooled: NDArray[Any] = (output * weight).sum(axis=1) / weight.sum(axis=1)
        return pooled


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


class OnnxGraph:
    """A tokenizer and an ONNX graph that takes its tokens."""

    def __init__(
        self,
        name: str,
        folder: Path,
        batch_size: int,
        max_length: int,
        providers: Sequence[str],
        threads: int | None = None,
        *,
        overlap: int = 0,
    ) -> None:
        for option, value in (("batch_size", batch_size), ("max_length", max_length), ("threads", threads or 1)):
            at_least(option, value, 1)
        tokenizers = require("tokenizers", "an ONNX model")
        self._name = name
        self._session, self._inputs, self._outputs, scaled = open_graph(folder, name, providers, threads=threads)
        self._batch_size = 1 if scaled else batch_size
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # the library raises bare exceptions of its own
            raise _unusable(name, error) from error
        unknown = set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown:
            raise ModelError(
                f"{name} wants the inputs {', '.join(sorted(unknown))}, which no tokenizer makes; export a text model"
            )
        length = min(max_length, _longest(name, folder))
        self._tokenizer.enable_truncation(length, stride=min(overlap, length // 4))
        self._tokenizer.enable_padding()
        self._lock = Lock()  # tokenizers refuse to be used by two threads at once

    def run(self, items: Sequence[Any], wanted: str, finish: Any) -> NDArray[np.float64]:
        """The output named `wanted`, else the first, for all items; `finish(output, mask)` post-processes a batch."""
        output = wanted if wanted in self._outputs else self._outputs[0]

        def batch(part: list[Any]) -> NDArray[Any]:
            encoded = self._tokenizer.encode_batch(part)
            mask = np.array([item.attention_mask for item in encoded], np.int64)
            features = {
                "input_ids": np.array([item.ids for item in encoded]),
                "attention_mask": mask,
                "token_type_ids": np.array([item.type_ids for item in encoded]),
            }
            feed = {name: features[name].astype(kind) for name, kind in self._inputs.items()}
            try:
                output_values = self._session.run([output], feed)[0]
            except Exception as error:  # onnxruntime raises bare exceptions of its own
                raise ModelError(
                    f"{self._name} failed ({clip(str(error), 200)}); lower max_length or export again"
                ) from error
            finished: NDArray[Any] = finish(output_values, mask)
            return finished

        with self._lock:
            return in_batches(items, self._batch_size, batch, self._name)


class OnnxClassifier(OnnxGraph):
    """A sequence classifier in a folder with a `config.json` that names the outputs.

    Raises:
        MissingExtraError: The extra `onnx` is not installed.
        ModelError: A file is missing or unusable.
    """

    OVERLAP = 32

    def __init__(self, name: str, folder: str, device: str | None, batch_size: int, max_length: int) -> None:
        self.labels = _labels(name, Path(folder))
        providers = ("CUDAExecutionProvider",) if (device or "").startswith("cuda") else ()
        providers = (*providers, "CPUExecutionProvider")
        super().__init__(name, Path(folder), batch_size, max_length, providers, overlap=self.OVERLAP)

    def logits(self, items: Sequence[Any], /) -> NDArray[np.float64]:
        """The logits of texts or pairs, shape (n, labels).

        Raises:
            ModelError: The graph returned another shape, or a value that is not finite.
        """
        labels = len(self.labels)

        def check(output: NDArray[Any], _mask: NDArray[np.int64]) -> NDArray[Any]:
            if output.ndim != 2 or output.shape[1] != labels:
                raise ModelError(
                    f"{self._name} made an output of shape {output.shape} instead of (texts, {labels}); export the "
                    "whole classifier"
                )
            return output

        return self.run(items, "logits", check) if items else np.zeros((0, labels))

    def windows(self, text: str) -> list[Region]:
        """The overlapping windows that cover a whole text within the model's limit."""
        with self._lock:
            first = self._tokenizer.encode(text)
        return token_windows(
            [offset for offset, special in zip(part.offsets, part.special_tokens_mask) if not special]
            for part in (first, *first.overflowing)
        )


def _read_json(name: str, file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{name} needs a readable {file.name} in its folder ({type(error).__name__}); copy it there"
        ) from error
    if not isinstance(content, dict):
        raise ModelError(f"{name} has a {file.name} that is no JSON object; copy the model's own")
    return content


def _longest(name: str, folder: Path) -> int:
    """The model's maximum number of tokens, if its files state it."""
    lengths = [
        _read_json(name, folder / file).get(field)
        for file, field in (("config.json", "max_position_embeddings"), ("tokenizer_config.json", "model_max_length"))
        if (folder / file).is_file()
    ]
    return min((value for value in lengths if isinstance(value, int) and value > 0), default=2**31)


def _labels(name: str, folder: Path) -> dict[int, str]:
    """The names of a classifier's outputs, by the `id2label` of its `config.json`.

    Raises:
        ModelError: `id2label` is missing or invalid.
    """
    config = _read_json(name, folder / "config.json")
    try:
        return {int(index): str(label) for index, label in config["id2label"].items()}
    except (KeyError, ValueError, AttributeError) as error:
        raise ModelError(f"{name} has no usable id2label in its config.json; name its outputs there") from error


def _pools_first_token(name: str, folder: Path) -> bool:
    """Whether the folder's pooling is that of the first token, rather than the mean."""
    file = folder / "1_Pooling" / "config.json"
    if not file.is_file():
        return False
    settings = _read_json(name, file)
    modes = settings.get("pooling_mode") or [
        key for key, on in settings.items() if key.startswith("pooling_mode_") and on is True
    ]
    modes = [modes] if isinstance(modes, str) else modes
    if not (isinstance(modes, list) and len(modes) == 1 and str(modes[0]) in _POOLS_FIRST):
        raise ModelError(f"{name} pools by {clip(modes)}; only pooling by the mean or the first token is supported")
    return _POOLS_FIRST[str(modes[0])]


_POOLS_FIRST = {"cls": True, "pooling_mode_cls_token": True, "mean": False, "pooling_mode_mean_tokens": False}
"""The names of the supported poolings, in the new and old format of the sentence-transformers library."""
