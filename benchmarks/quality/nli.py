"""How well an NLI model judges: accuracy and recall per class on labelled pairs, beside always saying the commonest.

    python -m benchmarks nli                                      # the built-in judge
    python -m benchmarks nli evaluation-data --nli cross:PATH --limit 500

Reads every `nli_*.jsonl` of a folder: rows {"premise", "hypothesis", "label"}.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

import numpy as np

from unpoison.models import load_nli

LABELS = ("entailment", "neutral", "contradiction")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nli", default="lexical", help="lexical, cross:NAME_OR_PATH or onnx:PATH")
    parser.add_argument("folder", type=Path, help="a folder with nli_*.jsonl")
    parser.add_argument("--limit", type=int, default=None, help="the first rows of each file only")
    arguments = parser.parse_args()
    model = load_nli(arguments.nli)
    print(f"judge: {model.name}\n")
    print("| pairs | n | accuracy | majority class | entailment | neutral | contradiction | macro F1 | pairs/s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for file in sorted(arguments.folder.glob("nli_*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines][: arguments.limit]
        began = time.perf_counter()
        judged = model.judge([(row["premise"], row["hypothesis"]) for row in rows]).argmax(axis=1)
        seconds = time.perf_counter() - began
        truth = np.array([LABELS.index(row["label"]) for row in rows])
        commonest, times = Counter(truth.tolist()).most_common(1)[0]
        recalls = " | ".join(recall(truth == i, judged == i) for i in range(3))
        print(
            f"| {file.stem.removeprefix('nli_')} | {len(rows):,} | {(judged == truth).mean():.3f} "
            f"| {times / len(rows):.3f} ({LABELS[commonest]}) | {recalls} | {macro_f1(truth, judged):.3f} "
            f"| {len(rows) / seconds:,.0f} |"
        )


def recall(truly: np.ndarray, judged: np.ndarray) -> str:
    return f"{(truly & judged).sum() / truly.sum():.3f}" if truly.any() else "-"


def macro_f1(truth: np.ndarray, judged: np.ndarray) -> float:
    """The mean F1 over the classes that occur."""
    present = [i for i in range(3) if (truth == i).any()]
    return float(
        np.mean(
            [2 * ((truth == i) & (judged == i)).sum() / ((truth == i).sum() + (judged == i).sum()) for i in present]
        )
    )


if __name__ == "__main__":
    main()
