"""Who made the model say that: one of ten passages is guilty. Prints the tables of docs/results.md, "Trace".

    python -m benchmarks trace evaluation-data
    python -m benchmarks trace evaluation-data --poisons 1,2,3,4,5

For every question nine clean passages (its own, then BM25 from the corpus of its data set) and one published poison at
a random place. The generator answers from all ten without a defense; where its reply holds the wrong answer and no
right one, and its reply to the nine does not, the poison is guilty. Each method is told the question and the answer.
With `--poisons` there are so many poisons of one attack among the nine, and the measures are those of RAGForensics and
RAGOrigin: of all passages those judged rightly, of the clean ones those named, of the poisons those not named.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
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
from unpoison.scan.trace import Method, Trace, Tracer

FILES = ("nq_poisoned", "hotpotqa_poisoned", "msmarco_poisoned", "realtimeqa")
SETS = {"nq_poisoned": "nq", "hotpotqa_poisoned": "hotpotqa", "msmarco_poisoned": "msmarco"}
LEFT_OUT = ("garag", "tan")
"""They state no wrong answer: garag is the gold passage with typos, tan mostly leads to an abstention."""
METHODS: tuple[Method, ...] = ("matching", "groups", "leave-one-out", "judge")
CLEAN = 9


class Case(NamedTuple):
    """A question, its answers, its passages, and which of them are planted."""

    question: str
    right: list[str]
    wrong: list[str]
    passages: list[dict[str, Any]]
    guilty: frozenset[int]


def cases(folder: Path, name: str, *, front: bool, seed: int, each: int, poisons: int = 1) -> Iterator[Case]:
    """`each` attacks on every question with so many poisons, different attacks as far as there are any."""
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
        kinds = Counter(p["attack"] for p in poison)
        enough = sorted(kind for kind, count in kinds.items() if count >= poisons)
        if len(clean) < CLEAN or not enough or not row["incorrect_answers"]:
            continue
        for kind in rng.permutation(enough).tolist()[:each]:
            passages = [{"text": p["text"], "title": p.get("title")} for p in clean[:CLEAN]]
            lies = list[dict[str, Any]]()
            for planted in [p for p in poison if p["attack"] == kind][:poisons]:
                text = f"{row['question']}. {planted['text']}" if front else planted["text"]
                lies.append({"text": text, "title": planted.get("title")})
                passages.insert(int(rng.integers(len(passages) + 1)), lies[-1])
            guilty = frozenset(i for i, passage in enumerate(passages) if any(passage is lie for lie in lies))
            yield Case(row["question"], row["correct_answers"], row["incorrect_answers"], passages, guilty)


def corpus(folder: Path, dataset: str | None) -> BM25Retriever | None:
    if dataset is None:
        return None
    lines = (folder / "corpus.jsonl").read_text("utf-8").splitlines()
    rows = (json.loads(line) for line in lines)
    return BM25Retriever({"text": r["text"], "title": r.get("title")} for r in rows if r["dataset"] == dataset)


def attacked(found: list[Case], generator: Generator, *, short: bool) -> list[tuple[Case, str]]:
    """Those whose answer the poisons changed, each with the wrong answer."""
    cases = []
    for case in found:
        reply = Vanilla(generator=generator).answer(case.question, case.passages).text
        wrong = next((w for w in case.wrong if says(case.question, reply, w)), None)
        if wrong is None or any(says(case.question, reply, right) for right in case.right):
            continue
        clean = [p for i, p in enumerate(case.passages) if i not in case.guilty]
        if not says(case.question, Vanilla(generator=generator).answer(case.question, clean).text, wrong):
            cases.append((case, wrong if short else reply))
    return cases


def trace_all(cases: list[tuple[Case, str]], generator: Generator, method: Method, calls: int) -> list[Trace]:
    tracer = Tracer(None if method == "matching" else generator, method=method, calls=calls)
    return [tracer.trace(case.question, answer, case.passages) for case, answer in cases]


def measured(found: list[Case], generator: Generator, calls: int, *, short: bool) -> Iterator[str]:
    """The rows of one table: of the answers that the poison changed, how often it is named first."""
    wrong = attacked(found, generator, short=short)
    for method in METHODS:
        some = 64 if method in ("leave-one-out", "judge") else max(calls, 0)
        traces = trace_all(wrong, generator, method, some)
        first = sum(trace.culprits[:1] == tuple(case.guilty) for (case, _), trace in zip(wrong, traces, strict=True))
        others = sum(len(set(t.culprits) - case.guilty) for (case, _), t in zip(wrong, traces, strict=True))
        asked = [trace.asked for trace in traces]
        n = len(traces)
        yield (
            f"| {method} | {n} | {_share(first, n)} "
            f"| {others / max(n, 1):.2f} | {np.mean(asked or [0]):.1f} | {max(asked, default=0)} |"
        )


def by_number(folder: Path, numbers: list[int], generator: Generator, args: argparse.Namespace) -> Iterator[str]:
    """The rows of the table by the number of poisons: answers of all files together."""
    for number in numbers:
        wrong = list[tuple[Case, str]]()
        for name in args.files.split(","):
            found = cases(folder, name, front=not args.plain, seed=args.seed, each=args.each, poisons=number)
            wrong += attacked(list(found), generator, short=args.short)
        wrong = [wrong[i] for i in np.random.default_rng(args.seed).permutation(len(wrong))[: args.answers]]
        for method in METHODS:
            traces = trace_all(wrong, generator, method, 64)
            pairs = [(set(trace.culprits), case) for (case, _), trace in zip(wrong, traces, strict=True)]
            first = sum(bool(c.guilty & set(t.culprits[:1])) for (c, _), t in zip(wrong, traces, strict=True))
            clean = sum(len(named - case.guilty) for named, case in pairs)
            missed = sum(len(case.guilty - named) for named, case in pairs)
            n = len(pairs)
            yield (
                f"| {number} | {method} | {n} | {_share(first, n)} | {clean / max(n, 1):.2f} "
                f"| {100 - 100 * (clean + missed) / max(n * (CLEAN + number), 1):.1f} "
                f"| {100 * clean / max(n * CLEAN, 1):.1f} | {100 * missed / max(n * number, 1):.1f} "
                f"| {np.mean([t.asked for t in traces] or [0]):.1f} |"
            )


def _share(count: int, n: int) -> str:
    share = wilson(count, n)
    return f"{100 * share.value:.0f} [{100 * share.low:.0f}, {100 * share.high:.0f}]"


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
    parser.add_argument(
        "--poisons", help="numbers of poisons, such as 1,2,5: one table over all files for each generator"
    )
    parser.add_argument("--answers", type=int, default=40, help="with --poisons: wrong answers of each number at most")
    args = parser.parse_args()
    if args.poisons:
        for spec in args.generators.split(","):
            print(f"\n-g {spec}\n")
            print(
                "| poisons | method | answers | a poison first, % | clean named | DACC, % | FPR, % | FNR, % | calls |"
            )
            print("|---|---|---|---|---|---|---|---|---|")
            for row in by_number(args.folder, [int(n) for n in args.poisons.split(",")], load_generator(spec), args):
                print(row, flush=True)
        return
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
