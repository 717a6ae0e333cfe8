"""Time of whole screenings beside the published procedures: `python -m benchmarks speed`.

Markdown goes to stdout, progress to stderr. Everything runs on one thread, contenders take turns on the same texts, and
what counts is the processor's time: the median of some calls. "First sight" has texts that no cache has seen, "seen
before" the same ones again. Vectors are given, so that no encoder counts. The published procedures are those of
`published_rules.py`; they take part where their libraries are installed.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy is imported
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import gc
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from statistics import median

from benchmarks.quality import published_rules
from benchmarks.speed.inputs import Case, cases
from unpoison import Grada, Guard, Query, RagDefender, TrustRag, __version__
from unpoison.defenses.base import Defense

SIZES = (10, 49)
"""Passages of a question."""

LONG = 0.5
"""Seconds of one call from which a contender has only `FEW` of them."""

FEW = 1

Call = Callable[[Case], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20, help="questions of each size")
    parser.add_argument("--only", default="", metavar="NAME", help="rows that hold this text")
    given = parser.parse_args()
    rows = {row: named for row, named in contenders().items() if given.only.lower() in row.lower()}
    taken = {}
    for k in SIZES:
        inputs = cases(k, given.calls + 1)
        for row, named in rows.items():
            print(f"k = {k}: {row}", file=sys.stderr, flush=True)
            taken[row, k] = measured(named, inputs)
    print(f"unpoison {__version__}, Python {platform.python_version()}, {platform.machine()}, one thread.\n")
    print(f"| milliseconds of the processor | | {' | '.join(f'k = {k}' for k in SIZES)} |")
    print(f"|---|---|{'---:|' * len(SIZES)}")
    for row, named in rows.items():
        for place, name in enumerate(named):
            cells = [cell(taken[row, k], name) for k in SIZES]
            print(f"| {'' if place else row} | {name} | {' | '.join(cells)} |")


def contenders() -> dict[str, dict[str, Call]]:
    """By row: ours first, then who does the same."""
    found: dict[str, dict[str, Call]] = {
        "Guard": _plain(Guard()),
        "GRADA": _plain(Grada()),
        "RAGDefender, single-hop": {"ours": _with_vectors(RagDefender())},
        "RAGDefender, multi-hop": {"ours": _with_vectors(RagDefender("multi"))},
        "TrustRAG, stage 1": {"ours": _with_vectors(TrustRag(stages=1, mode="reference"))},
    }
    if installed("networkx", "bm25s"):
        found["GRADA"]["as published"] = lambda case: published_rules.grada(
            case.question, case.texts, case.vectors, "hrsim"
        )
    if installed("ragdefender", "torch"):
        for hops in ("single", "multi"):
            found[f"RAGDefender, {hops}-hop"]["package ragdefender"] = lambda case, hops=hops: (
                published_rules.ragdefender(case.texts, case.vectors, hops)
            )
    if installed("sklearn", "rouge_score"):
        found["TrustRAG, stage 1"]["as published"] = lambda case: published_rules.trustrag(case.texts, case.vectors)
    return found


def installed(*modules: str) -> bool:
    """Whether what a comparison needs is installed."""
    return all(find_spec(module) is not None for module in modules)


def _plain(defense: Defense) -> dict[str, Call]:
    def call(case: Case) -> object:
        return defense.screen(case.question, list(case.texts))

    return {"first sight": call, "seen before": call}


def _with_vectors(defense: Defense) -> Call:
    return lambda case: defense.screen(
        Query(case.question),
        [{"text": text, "embedding": vector} for text, vector in zip(case.texts, case.vectors)],
    )


def measured(named: Mapping[str, Call], inputs: Sequence[Case]) -> dict[str, float]:
    """The median seconds of each contender, after one call to warm up."""
    taken: dict[str, list[float]] = {name: [] for name in named}
    for number, case in enumerate(inputs):
        new = replace(case, texts=tuple(f"{text} {number}" for text in case.texts))  # no cache has seen it
        for name, call in named.items():
            if number <= FEW or median(taken[name]) < LONG:
                gc.collect()
                begin = time.process_time()
                call(new)
                taken[name].append(time.process_time() - begin)
    return {name: median(seconds[1:]) for name, seconds in taken.items()}


def cell(taken: Mapping[str, float], name: str) -> str:
    """Milliseconds; of a contender that is not ours, in brackets, how many times the first row's."""
    first = next(iter(taken.values()))
    ours = name in ("ours", "first sight", "seen before")
    return f"{1000 * taken[name]:.3g}" + ("" if ours else f" ({taken[name] / first:.3g} times)")


if __name__ == "__main__":
    main()
