"""Guard on real passages, texts alone: `python -m benchmarks speed_real evaluation-data`; Markdown goes to stdout.

Passages of 100 and of 300 words are cut from the search results of the data, 10 and 49 to a question. Everything runs
on one thread, contenders take turns on the same texts, and what counts is the processor's time: the median, and the
99th of 100. "first sight" has texts that no cache has seen, "seen before" the same ones again. The package
ragdefender gets vectors as tensors, so that its encoder costs nothing; it takes part where it is installed. So does
GRADA's published procedure, beside ours.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy is imported
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import gc
import json
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from benchmarks.speed import naive
from benchmarks.speed.inputs import DIMENSIONS, Case
from benchmarks.speed.speed_defenses import needed, ragdefender
from benchmarks.speed.timing import digits, note
from unpoison import Grada, Guard, __version__

__all__: list[str] = []

FILES = ("nq_retrieved", "realtimeqa")
SIZES = (10, 49)
LENGTHS = (100, 300)

FEW = 5
"""Questions for a contender that takes seconds."""

LONG = 0.5
"""Seconds of one call from which that is so."""

Call = Callable[[Case], object]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure Guard on real passages.")
    parser.add_argument("data", type=Path, help="the folder of the evaluation data")
    parser.add_argument("--calls", type=int, default=100, help="questions of each size")
    arguments = parser.parse_args()
    print(f"`python -m benchmarks speed_real evaluation-data --calls {arguments.calls}`, unpoison {__version__}.")
    print("\n| ms of the processor, p50 / p99 | words | k = 10 | k = 49 |\n|---|---:|---:|---:|")
    for words in LENGTHS:
        questions, texts = _passages(arguments.data, words)
        columns = {k: _measured(_cases(questions, texts, k, arguments.calls)) for k in SIZES}
        for name in columns[SIZES[0]]:
            cells = [_cell(columns[k], name) for k in SIZES]
            print(f"| {name} | {words} | {' | '.join(cells)} |")


def _passages(folder: Path, words: int) -> tuple[list[str], list[str]]:
    """The questions of the data, and its passages one behind the other in pieces of so many words."""
    questions, pieces = list[str](), list[str]()
    for name in FILES:
        with (folder / f"{name}.jsonl").open(encoding="utf-8") as file:
            rows = [json.loads(line) for line in islice(file, 1000)]
        questions += [row["question"] for row in rows]
        said = [word for row in rows for passage in row["passages"] for word in passage["text"].split()]
        pieces += [" ".join(said[at : at + words]) for at in range(0, len(said) - words, words)]
    return questions, pieces


def _cases(questions: list[str], texts: list[str], k: int, count: int) -> list[Case]:
    """Questions with k pieces each; a number behind a piece makes it new where all have had their turn."""
    rng, pieces = np.random.default_rng(k), (f"{text} {i}" for i, text in enumerate(cycle(texts)))
    vectors = (1 + rng.normal(size=(count, k, DIMENSIONS))).astype(np.float32)
    return [
        Case(question, tuple(islice(pieces, k)), vectors[i])
        for i, question in enumerate(islice(cycle(questions), count))
    ]


def _measured(cases: list[Case]) -> dict[str, list[float]]:
    """Seconds of each call, by contender."""
    guard, grada = Guard(), Grada()
    contenders: dict[str, Call] = {
        "Guard, first sight": lambda case: guard.screen(case.question, list(case.texts)),
        "Guard, seen before": lambda case: guard.screen(case.question, list(case.texts)),
        **{f"{name}, single-hop": call for name, call in ragdefender("single_hop").items()},
        **{f"{name}, multi-hop": call for name, call in ragdefender("multi_hop").items()},
        "GRADA, first sight": lambda case: grada.screen(case.question, [f"{text} again" for text in case.texts]),
    }
    if needed("networkx", "bm25s"):
        contenders["GRADA as published"] = lambda case: naive.grada(case.question, case.texts)
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    warm, *rest = cases
    for call in contenders.values():
        call(warm)
    for number, case in enumerate(rest):
        for name, call in contenders.items():
            if number < FEW or np.median(taken[name]) < LONG:
                gc.collect()
                begin = time.process_time()
                call(case)
                taken[name].append(time.process_time() - begin)
    note(f"{len(cases[0].texts)} passages, {len(rest)} questions")
    return taken


def _cell(taken: dict[str, list[float]], name: str) -> str:
    """The median and the 99th of 100, and how Guard's first sight and GRADA's relate to a contender's median."""
    p50, p99 = np.percentile(taken[name], [50, 99])
    ours = {"ragdefender": "Guard, first sight", "GRADA as": "GRADA, first sight"}
    against = next((float(np.median(taken[row])) for start, row in ours.items() if name.startswith(start)), None)
    beside = "" if against is None else f" (ours is {against / float(p50):.2g} of it)"
    return f"{digits(float(p50))} / {digits(float(p99))}{beside}"


if __name__ == "__main__":
    main()
