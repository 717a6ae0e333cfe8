"""How often Guard reports a swapped answer as contested, and how often it does so where nobody swapped anything.

For questions with the right answer in two clean passages or more, the answer in the last of these is replaced by the
data set's wrong one: in its place (a reader has to see it), or in a copy beside it (near-copies are found without).
Everything is kept, so that only the report is measured.

    python -m benchmarks guard_contested evaluation-data/nq_poisoned.jsonl --limit 200 --reader
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from itertools import islice
from pathlib import Path

from unpoison import Guard

PASSAGES = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="rows with question, correct_answers, incorrect_answers, passages")
    parser.add_argument("--limit", type=int, default=200, help="rows that are looked at")
    parser.add_argument("--reader", action="store_true", help="with the small reader as generator")
    chosen = parser.parse_args()
    guard = Guard(generator="reader" if chosen.reader else None, threshold=1.0)
    told: Counter[str] = Counter()
    with chosen.file.open(encoding="utf-8") as file:
        for row in map(json.loads, islice(file, chosen.limit)):
            clean = [p["text"] for p in row["passages"] if p["label"] != "poison"][:PASSAGES]
            right = [i for i, text in enumerate(clean) if any(a in text for a in row["correct_answers"])]
            if len(right) < 2 or not row["incorrect_answers"]:
                continue
            last = right[-1]
            answer = next(a for a in row["correct_answers"] if a in clean[last])
            swapped = clean[last].replace(answer, row["incorrect_answers"][0])
            sets = {
                "nobody swapped": (clean, None),
                "swapped in its place": ([*clean[:last], swapped, *clean[last + 1 :]], last),
                "swapped in a copy": ([*clean, swapped], len(clean)),
            }
            told["questions"] += 1
            for name, (passages, suspect) in sets.items():
                contested = guard.screen(row["question"], passages).contested
                told[name] += any(suspect is None or suspect in contest.passages for contest in contested)
            for name in (*sets, "questions"):
                told.setdefault(name, 0)
    for name, count in told.items():
        print(f"{name:<22}{count:>5}")


if __name__ == "__main__":
    main()
