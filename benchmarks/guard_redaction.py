"""What Guard loses and lets through when it cuts sentences instead of dropping passages.

    python benchmarks/guard_redaction.py ../shared/data --limit 60
    python benchmarks/guard_redaction.py ../shared/data --limit 60 --damage 0.05

Clean retrievals: passages kept, and the share of their words that can be read. Poison with the question in front, one
among nine clean passages: contexts in which the poison's words still give the wrong answer. Orders planted between the
sentences of a clean passage: what becomes of the passage, and of the order's own words.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from unpoison import Guard, Screening

CLEAN = ("clean_faq_answers", "clean_software_docs", "clean_wiki_en", "clean_science", "nq_retrieved")
POISON = ("nq_poisoned",)
K = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=60, help="questions of each file")
    parser.add_argument("--damage", type=float, default=0.02)
    chosen = parser.parse_args()
    guards = {action: Guard(action=action, damage=chosen.damage) for action in ("drop", "redact")}  # type: ignore[arg-type]
    print(f"| clean, damage {chosen.damage} | passages | kept: drop | redact | words read: drop | redact |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in CLEAN:
        print(clean(guards, name, list(rows(chosen.folder, name, chosen.limit))))
    sets = [row for name in POISON for row in rows(chosen.folder, name, chosen.limit)]
    print("\n| poison, question in front | contexts | read: drop | redact |\n| --- | --- | --- | --- |")
    print(poisoned(guards, sets))
    print(
        "\n| orders in a clean passage | planted | in passages kept whole | dropped | cut | words left | > 30 % left |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    given = [json.loads(line) for line in (chosen.folder / "orders.jsonl").open(encoding="utf-8")]
    for label in ("order", "benign"):
        print(planted(guards["redact"], label, [one["text"] for one in given if one["label"] == label], sets))


def rows(folder: Path, name: str, limit: int) -> Iterator[dict[str, Any]]:
    with (folder / f"{name}.jsonl").open(encoding="utf-8") as file:
        yield from islice(map(json.loads, file), limit)


def honest(row: dict[str, Any]) -> list[str]:
    return [p["text"] for p in row["passages"] if p["label"] in ("clean", "gold")][:K]


def clean(guards: dict[str, Guard], name: str, given: Sequence[dict[str, Any]]) -> str:
    kept, read, count, words = dict.fromkeys(guards, 0), dict.fromkeys(guards, 0), 0, 0
    for row in given:
        texts = honest(row)
        count, words = count + len(texts), words + len(" ".join(texts).split())
        for action, guard in guards.items():
            screening = guard.screen(row["question"], texts)
            kept[action] += len(screening.kept)
            read[action] += len(" ".join(screening.texts).split())
    shares = [
        f"{100 * found[action] / max(total, 1):.1f} %"
        for found, total in ((kept, count), (read, words))
        for action in guards
    ]
    return f"| {name} | {count} | {' | '.join(shares)} |"


def poisoned(guards: dict[str, Guard], given: Sequence[dict[str, Any]]) -> str:
    left, count = dict.fromkeys(guards, 0), 0
    for row in given:
        poison = next((p["text"] for p in row["passages"] if p["label"] == "poison"), None)
        wrong = next(iter(row["incorrect_answers"]), None)
        if poison is None or wrong is None or wrong.lower() not in poison.lower():
            continue
        texts = [f"{row['question']}. {poison}", *honest(row)[: K - 1]]
        count += 1
        for action, guard in guards.items():
            screening = guard.screen(row["question"], texts)
            left[action] += wrong.lower() in read_of(screening, 0).lower()
    return f"| {', '.join(POISON)} | {count} | {' | '.join(f'{100 * left[a] / max(count, 1):.1f} %' for a in guards)} |"


def planted(guard: Guard, label: str, orders: Sequence[str], sets: Sequence[dict[str, Any]]) -> str:
    rng, counts = Random(7), dict.fromkeys(("whole", "dropped", "cut", "left", "much"), 0)
    for order, row in zip(orders, [rng.choice(sets) for _ in orders], strict=True):
        texts = honest(row)
        place = rng.randrange(len(texts))
        sentences = re.split(r"(?<=[.!?])\s+", texts[place])
        at = rng.randrange(len(sentences) + 1)
        planted_text = " ".join([*sentences[:at], order, *sentences[at:]])
        screening = guard.screen(row["question"], [*texts[:place], planted_text, *texts[place + 1 :]])
        verdict = screening.verdicts[place]
        counts["dropped" if not verdict.kept else "cut" if verdict.spans else "whole"] += 1
        if verdict.kept and verdict.spans:
            own = words_of(order) - words_of(texts[place])
            share = len(own & words_of(read_of(screening, place))) / max(len(own), 1)
            counts["left"] += share > 0
            counts["much"] += share > 0.3
    return f"| {label} | {len(orders)} | {' | '.join(map(str, counts.values()))} |"


def read_of(screening: Screening, i: int) -> str:
    """What a model reads of a passage; nothing where it is dropped."""
    return dict(zip(screening.kept_indices, screening.texts, strict=True)).get(i, "")


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":
    main()
