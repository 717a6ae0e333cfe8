"""Whether whole `screen` calls became much slower: `python -m benchmarks speed_ratio`, a part of `make check`.

Nothing is measured in seconds, which say more of the machine: every call takes turns with a fixed peer, which reads
the same texts in plain Python and numpy and never changes, and the ratio of their processor times stands beside the
recorded one in `speed_ratios.json`. A ratio of more than twice that, three times in a row, fails. `--write` records
what is measured, after a change that is meant to cost something, or saves something. The transformer of injections is
off: how long its graph takes depends on the instructions that a processor has, and `benchmarks latency` says it.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy is imported
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import gc
import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from itertools import count
from pathlib import Path
from statistics import median

import numpy as np

from unpoison import Grada, Guard
from unpoison.injections.model import SWITCH

__all__ = ["SLOWER", "fixed_peer", "measured", "too_slow"]

RECORDED = Path(__file__).with_name("speed_ratios.json")

SLOWER = 2.0
"""So many times the recorded ratio is too slow."""

TRIES = 3
"""A busy machine may spoil one measurement, or two."""

ROUNDS = 11

WORDS = 100
"""Of a passage."""

RUNS = 3
"""Calls of one turn, one after the other, so that the first one's cold caches count as little as the peer's."""

THINGS = "laptop phone tablet printer camera monitor keyboard speaker router headset".split()  # noqa: SIM905
FAQ = [f"You can return a {thing} within 30 days of delivery, unused and in its own box." for thing in THINGS]

_unseen = count()

Screen = Callable[[str, list[str]], object]


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the speed of whole screenings with a fixed peer's.")
    parser.add_argument("--write", action="store_true", help="record the ratios that are measured")
    write = parser.parse_args().write
    ratios = measured()
    if write:
        rounded = {name: float(f"{ratio:.2g}") for name, ratio in ratios.items()}
        RECORDED.write_text(json.dumps(rounded, indent=2) + "\n", encoding="utf-8")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    for _ in range(TRIES - 1):
        if not too_slow(ratios, recorded):
            break
        again = measured()
        ratios = {name: min(ratio, again[name]) for name, ratio in ratios.items()}
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:.2g} times the fixed peer, recorded {recorded.get(name, 'nothing')}")
    slow = too_slow(ratios, recorded)
    print("\n".join(slow), file=sys.stderr, end="\n" if slow else "")
    return 1 if slow else 0


def too_slow(ratios: Mapping[str, float], recorded: Mapping[str, float]) -> list[str]:
    """A sentence for every row that takes more than `SLOWER` times what is recorded, or of which nothing is."""
    return [
        f"{name} takes {ratio / recorded[name]:.1f} times as long as recorded; profile it, or record it with --write"
        if name in recorded
        else f"nothing is recorded of {name}; record it with --write"
        for name, ratio in ratios.items()
        if ratio > SLOWER * recorded.get(name, 0.0)
    ]


def measured() -> dict[str, float]:
    """For each row the median, over turns on different texts, of its processor time in times of the peer's."""
    os.environ[SWITCH] = "off"
    taken: dict[str, list[float]] = {}
    rows = _rows()
    for turn in range(ROUNDS + 1):
        gc.collect()
        for name, work in rows.items():
            peer = _seconds([partial(fixed_peer, *_case(10, turn))] * RUNS)
            ratio = work(turn) / peer
            if turn:  # in the first one everything is loaded
                taken.setdefault(name, []).append(ratio)
    return {name: median(ratios) for name, ratios in taken.items()}


def fixed_peer(question: str, texts: Sequence[str]) -> list[int]:
    """Texts by their centrality among each other, most central first. Never to be changed, for all is measured by it.

    Words are counted in plain Python, the cosines of the counts and their largest eigenvector found by numpy.
    """
    numbers: dict[str, int] = {}
    read = [re.findall(r"\w+", text.lower()) for text in (question, *texts)]
    for words in read:
        for word in words:
            numbers.setdefault(word, len(numbers))
    counts = np.zeros((len(read), len(numbers)))
    for row, words in enumerate(read):
        for word in words:
            counts[row, numbers[word]] += 1
    counts /= np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1.0)
    alike = counts[1:] @ counts[1:].T
    centrality = np.full(len(texts), 1 / len(texts))
    for _ in range(30):
        centrality = alike @ centrality
        centrality /= centrality.sum()
    return sorted(range(len(texts)), key=lambda i: -float(centrality[i]))


def _rows() -> dict[str, Callable[[int], float]]:
    """For each row the seconds of `RUNS` calls, on the texts of a turn."""
    guard, grada = Guard(), Grada()
    return {
        "Guard, 10 texts, first sight": lambda turn: _first(guard.screen, *_case(10, turn)),
        "Guard, 10 texts, seen before": lambda turn: _again(guard.screen, *_case(10, turn)),
        "Guard, 10 near-identical texts, first sight": lambda _: _first(guard.screen, "How long can I return it?", FAQ),
        "GRADA, 10 texts, first sight": lambda turn: _first(grada.screen, *_case(10, turn)),
        "GRADA, 10 texts, seen before": lambda turn: _again(grada.screen, *_case(10, turn)),
        "GRADA, 49 texts, first sight": lambda turn: _first(grada.screen, *_case(49, turn)),
    }


def _first(screen: Screen, question: str, texts: Sequence[str]) -> float:
    """Of texts that nobody saw, whatever is remembered of others."""
    unseen = [[f"{text} {next(_unseen)}" for text in texts] for _ in range(RUNS)]
    return _seconds([partial(screen, question, each) for each in unseen])


def _again(screen: Screen, question: str, texts: Sequence[str]) -> float:
    known = list(texts)
    screen(question, known)
    return _seconds([partial(screen, question, known)] * RUNS)


def _seconds(calls: Sequence[Callable[[], object]]) -> float:
    """Of the processor, so that other programs hardly count."""
    begin = time.process_time()
    for call in calls:
        call()
    return time.process_time() - begin


def _case(k: int, turn: int) -> tuple[str, list[str]]:
    """A question of the sample and k texts of `WORDS` words, others in every turn until all have had theirs."""
    questions, texts = _sample()
    return questions[turn % len(questions)], [texts[(turn * k + i) % len(texts)] for i in range(k)]


@cache
def _sample() -> tuple[list[str], list[str]]:
    """The questions of the built-in sample, and its texts one behind the other in pieces of `WORDS` words."""
    lines = (files("unpoison") / "data" / "sample.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    words = [word for row in rows for passage in row["passages"] for word in passage["text"].split()]
    texts = [" ".join(words[at : at + WORDS]) for at in range(0, len(words) - WORDS, WORDS)]
    return [row["question"] for row in rows], texts


if __name__ == "__main__":
    sys.exit(main())
