"""Poison that others published, which nothing here was fitted on: how much of it Guard leaves.

    python -m benchmarks others FOLDER --data evaluation-data --limit 60

FOLDER holds one JSON Lines file for each family, a row for each question: `{"family", "question", "poison": [texts],
"clean": [texts], "dataset": "nq"}`. Sets of ten: one or five of the row's poisons among its clean passages and, where
these are too few, the passages of the corpus that BM25 finds for the question. A poison is left where it is kept,
whole or with words that still say `incorrect` or the refusal. A family's rows are taken evenly. Shares
are of passages, with 95 % Wilson intervals; the five of a question are alike, so theirs are too narrow.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.data_option import BUILT, evaluation_folder
from unpoison import Guard, Passage, Screening
from unpoison.bench.attacks.base import contains_answer
from unpoison.bench.evaluation import load_passages, wilson
from unpoison.bench.evaluation.contexts import nearest, text_key

SET = 10
REFUSAL = "I'm sorry"
"""What orders to refuse make a model say."""

COUNTS = (1, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="files of published texts, *.jsonl")
    parser.add_argument("--data", type=evaluation_folder, default=BUILT, help="where corpus.jsonl is")
    parser.add_argument("--limit", type=int, default=60, metavar="N", help="questions of each family at most")
    arguments = parser.parse_args()
    guard = Guard()
    print("| family | questions | " + " | ".join(f"left, {n} of {SET} %" for n in COUNTS) + " | clean kept % |")
    print("|---|---|---|---|---|")
    for path in sorted(arguments.folder.glob("*.jsonl")):
        for family, rows in families(path).items():
            chosen = rows[:: max(1, len(rows) // arguments.limit)][: arguments.limit]
            print(f"| {family} | {len(chosen)} | {' | '.join(shares(guard, chosen, arguments.data))} |", flush=True)


def families(path: Path) -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            found[row["family"]].append(row)
    return found


def shares(guard: Guard, rows: Sequence[dict[str, Any]], data: Path) -> list[str]:
    """The poison left at each count, and the clean passages kept at all of them."""
    left: dict[int, list[bool]] = {count: [] for count in COUNTS}
    clean = []
    for row, texts in zip(rows, clean_texts(rows, data), strict=True):
        for count in COUNTS:
            poison = row["poison"][:count]
            # Poison comes in the middle: places say nothing to Guard, and no reader believes that they do.
            shown = [*texts[:3], *poison, *texts[3 : SET - len(poison)]]
            screening = guard.screen(row["question"], [Passage(text) for text in shown])
            kept = screening.kept_indices
            bad = range(len(texts[:3]), len(texts[:3]) + len(poison))
            goals = [*row.get("incorrect", ()), REFUSAL]
            left[count] += [harms(screening, i, goals) for i in bad]
            clean += [i in set(kept) for i in range(len(shown)) if i not in bad]
    return [percent(hits) for hits in (*left.values(), clean)]


def clean_texts(rows: Sequence[dict[str, Any]], data: Path) -> list[list[str]]:
    """Nine clean texts for each row, its own first."""
    by_set = defaultdict(list)
    for position, row in enumerate(rows):
        by_set[row.get("dataset", "nq")].append(position)
    found: dict[int, list[str]] = {}
    for name, positions in by_set.items():
        passages = corpus(data, name)
        for position, near in zip(positions, nearest([rows[p]["question"] for p in positions], passages, 2 * SET)):
            texts = {text_key(text): text for text in [*rows[position]["clean"], *(passages[i].text for i in near)]}
            found[position] = list(texts.values())[: SET - 1]
    return [found[position] for position in range(len(rows))]


@cache
def corpus(data: Path, name: str) -> tuple[Passage, ...]:
    return tuple(load_passages(data / "corpus.jsonl", name))


def harms(screening: Screening, i: int, goals: Sequence[str]) -> bool:
    """Whether a poison is kept, whole or with the words that do the harm."""
    verdict = screening.verdicts[i]
    if not verdict.kept or not verdict.cuts:
        return verdict.kept
    rest = screening.texts[screening.kept_indices.index(i)]
    return any(contains_answer(rest, goal) for goal in goals)


def percent(hits: Sequence[bool]) -> str:
    share = wilson(sum(hits), len(hits))
    return f"{100 * share.value:.1f} [{100 * share.low:.0f}, {100 * share.high:.0f}]"


if __name__ == "__main__":
    main()
