"""Who made the model say that: one of ten passages is guilty. Prints the tables of docs/results.md, "Trace".

    python -m benchmarks trace evaluation-data

For every question nine clean passages (its own, then BM25 from the corpus of its data set) and one published poison at
a random place. The generator answers from all ten without a defense; where its reply holds the wrong answer and no
right one, and its reply to the nine does not, the poison is guilty. Each method is told the question and the answer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unpoison import Vanilla
from unpoison.algorithms.intervals import wilson
from unpoison.models import load_generator
from unpoison.models.protocols import Generator
from unpoison.retrieval import BM25Retriever
from unpoison.scan.statements import says
from unpoison.scan.trace import Method, Tracer

FILES = ("nq_poisoned", "hotpotqa_poisoned", "msmarco_poisoned", "realtimeqa")
SETS = {"nq_poisoned": "nq", "hotpotqa_poisoned": "hotpotqa", "msmarco_poisoned": "msmarco"}
LEFT_OUT = ("garag", "tan")
"""They state no wrong answer: garag is the gold passage with typos, tan mostly leads to an abstention."""
METHODS: tuple[Method, ...] = ("matching", "groups", "leave-one-out", "judge")
CLEAN = 9


class Case(NamedTuple):
    """A question, its answers, ten passages, and which of them is planted."""

    question: str
    right: list[str]
    wrong: list[str]
    passages: list[dict[str, Any]]
    guilty: int


def cases(folder: Path, name: str, *, front: bool, seed: int, each: int) -> Iterator[Case]:
    """`each` poisons of every question, of different attacks as far as there are any."""
    rng, pool = np.random.default_rng(seed), corpus(folder, SETS.get(name))
    for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        clean = [p for p in row["passages"] if p["label"] in ("clean", "gold")]
        clean.sort(key=lambda p: (p["label"] != "gold", p.get("rank", 0)))
        texts = {p["text"] for p in clean}
        if pool is not None:
            found = pool.retrieve(row["question"], 3 * CLEAN)
            clean += [{"text": p.text, "title": p.title} for p in found if p.text not in texts]
        poison = [p for p in row["passages"] if p["label"] == "poison" and p["attack"] not in LEFT_OUT]
        if len(clean) < CLEAN or not poison or not row["incorrect_answers"]:
            continue
        for kind in rng.permutation(sorted({p["attack"] for p in poison})).tolist()[:each]:
            planted = next(p for p in poison if p["attack"] == kind)
            text = f"{row['question']}. {planted['text']}" if front else planted["text"]
            at = int(rng.integers(CLEAN + 1))
            passages = [{"text": p["text"], "title": p.get("title")} for p in clean[:CLEAN]]
            passages.insert(at, {"text": text, "title": planted.get("title")})
            yield Case(row["question"], row["correct_answers"], row["incorrect_answers"], passages, at)


def corpus(folder: Path, dataset: str | None) -> BM25Retriever | None:
    if dataset is None:
        return None
    lines = (folder / "corpus.jsonl").read_text("utf-8").splitlines()
    rows = (json.loads(line) for line in lines)
    return BM25Retriever({"text": r["text"], "title": r.get("title")} for r in rows if r["dataset"] == dataset)


def measured(found: list[Case], generator: Generator, calls: int, *, short: bool) -> Iterator[str]:
    """The rows of one table: of the answers that the poison changed, how often it is named first."""
    attacked = []
    for case in found:
        reply = Vanilla(generator=generator).answer(case.question, case.passages).text
        wrong = next((w for w in case.wrong if says(case.question, reply, w)), None)
        if wrong is None or any(says(case.question, reply, right) for right in case.right):
            continue
        clean = [p for i, p in enumerate(case.passages) if i != case.guilty]
        if not says(case.question, Vanilla(generator=generator).answer(case.question, clean).text, wrong):
            attacked.append((case, wrong if short else reply))
    for method in METHODS:
        tracer = Tracer(None if method == "matching" else generator, method=method, calls=max(calls, 0))
        if method in ("leave-one-out", "judge"):
            tracer = Tracer(generator, method=method, calls=64)
        traces = [(case, tracer.trace(case.question, answer, case.passages)) for case, answer in attacked]
        first = sum(trace.culprits[:1] == (case.guilty,) for case, trace in traces)
        others = sum(len(set(trace.culprits) - {case.guilty}) for case, trace in traces)
        asked = [trace.asked for _, trace in traces]
        n = len(traces)
        share = wilson(first, n)
        yield (
            f"| {method} | {n} | {100 * share.value:.0f} [{100 * share.low:.0f}, {100 * share.high:.0f}] "
            f"| {others / max(n, 1):.2f} | {np.mean(asked or [0]):.1f} | {max(asked, default=0)} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--generators", default="reader,extractive")
    parser.add_argument("--files", default=",".join(FILES))
    parser.add_argument("--calls", type=int, default=5, help="what `groups` may ask")
    parser.add_argument("--each", type=int, default=2, help="poisons of every question, each in a set of its own")
    parser.add_argument("--short", action="store_true", help="the answer is the wrong one in short, not the reply")
    parser.add_argument("--plain", action="store_true", help="the question does not stand in front of the poison")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for name in args.files.split(","):
        found = list(cases(args.folder, name, front=not args.plain, seed=args.seed, each=args.each))
        for spec in args.generators.split(","):
            print(f"\n{name}, -g {spec}, {len(found)} sets\n")
            print("| method | wrong answers | guilty named first, % | innocents named | calls, mean | most |")
            print("|---|---|---|---|---|---|")
            for row in measured(found, load_generator(spec), args.calls, short=args.short):
                print(row, flush=True)


if __name__ == "__main__":
    main()
