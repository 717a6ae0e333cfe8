"""What of Guard's clean test sets its fit has seen: questions are held out, passages come back under other questions.

python benchmarks/guard_seen.py ../shared/data --encoder lexical

A passage is seen where a training sample has it as clean, cut to a snippet or whole. Kept shares are of passages, each
in every set that it is measured in; questions are counted once, however many sets they have. Behind the sets of Guard's
own tables stand the folder's files of clean retrievals, which nobody looked at when Guard was fitted.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from guard_data import Sample, measured_samples, training_samples
from unpoison import Guard
from unpoison.evaluation import load, wilson
from unpoison.evaluation.contexts import text_key
from unpoison.models import load_encoder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--encoder", default="lexical")
    arguments = parser.parse_args()
    guard = Guard(encoder=load_encoder(arguments.encoder))
    seen = fitted(training_samples(arguments.folder))
    print(
        "| clean set | questions | sets | clean passages | of them seen | "
        "seen: kept % | unseen: kept % | sets touched % |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, samples in {**clean_sets(measured_samples(arguments.folder)), **clean_files(arguments.folder)}.items():
        print(f"| {name} | {row(guard, samples, seen)} |", flush=True)


def fitted(samples: Iterable[Sample]) -> frozenset[str]:
    """The clean texts of the training."""
    return frozenset(text_key(text) for one in samples for text, bad in zip(one.texts, one.poison) if not bad)


def clean_sets(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    found = defaultdict(list)
    for one in samples:
        if one.attack == "none":
            found[one.domain].append(one)
    return found


def clean_files(folder: Path) -> dict[str, list[Sample]]:
    """The first ten passages of every question of `clean_*.jsonl`."""
    found = {}
    for path in sorted(folder.glob("clean_*.jsonl")):
        sets = [
            (e.question, [p.passage.text for p in e.labelled("clean", "gold", "noise")][:10])
            for e in load(path).examples
        ]
        found[path.stem] = [
            Sample(path.stem, "none", question, tuple(texts), (False,) * len(texts), (False,) * len(texts))
            for question, texts in sets
            if texts
        ]
    return found


def row(guard: Guard, samples: list[Sample], seen: frozenset[str]) -> str:
    kept: dict[bool, list[bool]] = {True: [], False: []}
    touched = []
    for one in samples:
        verdicts = guard.screen(one.question, one.passages).verdicts
        for text, verdict in zip(one.texts, verdicts, strict=True):
            kept[text_key(text) in seen].append(verdict.kept)
        touched.append(not all(verdict.kept for verdict in verdicts))
    questions = len({one.question for one in samples})
    total = len(kept[True]) + len(kept[False])
    shares = " | ".join(percent(kept[known]) for known in (True, False))
    return f"{questions} | {len(samples)} | {total:,} | {len(kept[True]):,} | {shares} | {percent(touched)}"


def percent(hits: list[bool]) -> str:
    if not hits:
        return "-"
    found = wilson(sum(hits), len(hits))
    return f"{100 * found.value:.1f} [{100 * found.low:.0f}, {100 * found.high:.0f}]"


if __name__ == "__main__":
    main()
