"""What the readers make of single passages: right words, silence where there is no answer, time.

    python -m benchmarks reader_scores evaluation-data

No question was learnt from, in whatever spelling. `files`: nine question files, a hundred passages each where there are
so many, half of them without an answer (clean passages that hold none, or another question's where a file has too few).
`mixed`: the rows of `qa_spans.jsonl`, whose near misses count as without answer, and poison texts. `poison`: poison
texts alone, whose answer is what they say; none is without. F1 and exact match as in SQuAD, over what has an answer; an
answer that was refused counts 0.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.training.reader_data import MEASURED, measured, poison_pairs, span_pairs, unseen
from benchmarks.training.reader_texts import Pair, scored, summary
from unpoison.models import ExtractiveReader, load_generator
from unpoison.models.prompts import atomic_answer_prompt
from unpoison.models.reader import Reader
from unpoison.text.replies import informative

Read = Callable[[list[Pair]], list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the shared data")
    parser.add_argument("--also", action="append", default=[], help="a further reader, such as qa:FOLDER")
    parser.add_argument("--per-file", type=int, default=100)
    options = parser.parse_args()
    models: dict[str, Reader] = {name: load_generator(name) for name in ("reader", *options.also)}  # type: ignore[misc]
    readers: dict[str, Read] = {"extractive": _extractive, **{name: _model(model) for name, model in models.items()}}
    sets = {name: measured(options.folder, name, options.per_file) for name in MEASURED}
    others = {"mixed": _mixed(options.folder), "poison": _poison(options.folder, 500)}
    print(
        "| passages | n | "
        + " | ".join(f"{name}: F1 / EM | answered though none / refused though answer" for name in readers)
        + " |"
    )
    print("|---" * (2 + 2 * len(readers)) + "|")
    found = {
        name: {kind: _scores(read, pairs) for kind, pairs in (sets | others).items()} for name, read in readers.items()
    }
    for kind in ("files", *sets, *others):
        rows = {
            name: [s for part in sets for s in by[part]] if kind == "files" else by[kind] for name, by in found.items()
        }
        cells = [f"{a} / {b} | {c} / {d}".replace("nan", "-") for a, b, c, d in map(summary, rows.values())]
        print(f"| {kind} | {len(next(iter(rows.values())))} | {' | '.join(cells)} |")
    _print_time(models)


def _mixed(folder: Path) -> list[Pair]:
    rng = np.random.default_rng(1)
    spans = [pair for pair in span_pairs(folder) if unseen(folder, pair.question)]
    poison = poison_pairs(folder, test=True)
    return [part[i] for part, most in ((spans, 750), (poison, 250)) for i in rng.permutation(len(part))[:most]]


def _poison(folder: Path, most: int) -> list[Pair]:
    pairs = poison_pairs(folder, test=True)
    return [pairs[i] for i in np.random.default_rng(1).permutation(len(pairs))[:most]]


def _scores(read: Read, pairs: list[Pair]) -> list:
    return [scored(pair, answer) for pair, answer in zip(pairs, read(pairs), strict=True)]


def _extractive(pairs: list[Pair]) -> list[str]:
    reader = ExtractiveReader()
    replies = [reader.generate(atomic_answer_prompt(pair.question, pair.text)).text for pair in pairs]
    return [reply if informative(reply) else "" for reply in replies]


def _model(reader: Reader) -> Read:
    return lambda pairs: [r.answer for r in reader.read_pairs([(pair.question, pair.text) for pair in pairs])]


def _print_time(models: Mapping[str, Reader]) -> None:
    words = (__doc__ or "").split()
    rng = np.random.default_rng(0)
    print("\n| reader | passages of 120 words | ms, best of 5 |\n|---|---|---|")
    for name, count in product(models, (1, 10, 50)):
        taken = []
        for _ in range(5):
            texts = [" ".join(rng.choice(words, 120)) for _ in range(count)]
            began = time.perf_counter()
            models[name].read("which words answer a question", texts)
            taken.append(1000 * (time.perf_counter() - began))
        print(f"| {name} | {count} | {min(taken):.0f} |")
    print(f"\nPeak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
