"""How well a scan finds planted documents, and what it flags of clean collections; of files by their type.

    python -m benchmarks scan
    python -m benchmarks scan quality evaluation-data --sets msmarco --attacks poisonedrag
    python -m benchmarks scan first evaluation-data --attacks poisonedrag,poisonedrag-gemini
    python -m benchmarks scan clean evaluation-data

`train_scan.py` fits the weights of `scan.signs`, and says what it sets aside.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from hashlib import md5
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.scan import Scan, scan

CLEAN = ("faq_answers", "faq_pairs", "science", "software_docs", "wiki_en", "wiki_de", "wiki_es", "wiki_zh")

CELLS = ((5, 20, True), (1, 60, True), (5, 20, False), (1, 60, False))
"""Poisons a question, questions, whether the question stands in front."""


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").split("\n") if line]


def aside(question: str) -> bool:
    """Whether a question was set aside while the weights were fitted."""
    return int(md5(question.encode(), usedforsecurity=False).hexdigest(), 16) % 2 == 1


def corpus_of(folder: Path, name: str) -> list[dict[str, Any]]:
    """The clean passages of a collection, each once."""
    if name == "realtimeqa":
        found = [
            p for file in ("realtimeqa", "realtimeqa_weekly") for row in rows(folder, file) for p in row["passages"]
        ]
        texts = dict.fromkeys(p["text"] for p in found if p["label"] == "clean")
        return [{"id": f"result-{i}", "text": text} for i, text in enumerate(texts)]
    passages = [row for row in rows(folder, "corpus") if row["dataset"] == name or name == "all"]
    return [{key: row[key] for key in ("id", "text", "title") if row.get(key)} for row in passages]


def poisons_of(
    folder: Path,
    file: str,
    attack: str,
    per: int,
    count: int,
    front: bool,
    *,
    fitted: bool | None = None,
    wanted: Callable[[str], bool] = lambda question: True,
) -> list[dict[str, Any]]:
    """Documents that were planted.

    Args:
        folder: The data.
        file: Whose questions.
        attack: Whose poisons.
        per: Poisons for each question.
        count: Questions, those that were set aside first.
        front: Whether the question stands in front of its poisons.
        fitted: Only the questions that weights may be fitted on, or only the others; None for all.
        wanted: Whether a question may be used at all.
    """
    found = list[dict[str, Any]]()
    for row in sorted(rows(folder, file), key=lambda row: not aside(row["question"])):
        question = row["question"].rstrip()
        texts = [p["text"] for p in row["passages"] if p.get("attack") == attack][:per]
        if len(texts) < per or fitted == aside(row["question"]) or not wanted(row["question"]):
            continue
        before = f"{question}{'' if question.endswith('?') else '.'} " if front else ""
        found += [{"id": f"poison-{row['id']}-{i}", "text": before + text} for i, text in enumerate(texts)]
        if len(found) == per * count:
            break
    return found


def shuffled(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [documents[i] for i in np.random.default_rng(0).permutation(len(documents))]


def among_first(found: Scan, poisons: set[str]) -> tuple[float, float]:
    """The share of the poisons among the first n and the first 2n, n being how many there are."""
    n = len(poisons)
    return tuple(sum(f.id in poisons for f in found.findings[: k * n]) / n for k in (1, 2))  # type: ignore[return-value]


def quality(folder: Path, sets: list[str], attacks: list[str]) -> None:
    print("| passages | attack | poisons | question in front | first n | first 2n | flagged poisons | flagged clean |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in sets:
        for attack in attacks:
            for per, count, front in CELLS:
                planted = poisons_of(
                    folder, f"{name}_poisoned" if name != "realtimeqa" else name, attack, per, count, front
                )
                documents, poisons = shuffled([*corpus_of(folder, name), *planted]), {row["id"] for row in planted}
                found = scan(documents)
                first, double = among_first(found, poisons)
                caught = sum(f.id in poisons for f in found.flagged)
                wrong = (len(found.flagged) - caught) / (len(documents) - len(poisons))
                cells = (
                    f"{name}, {len(documents) - len(poisons):,}", attack, f"{len(poisons)} ({per} each)",
                    "yes" if front else "no", f"{first:.0%}", f"{double:.0%}", f"{caught / len(poisons):.0%}",
                    f"{wrong:.2%}",
                )  # fmt: skip
                print(f"| {' | '.join(cells)} |", flush=True)


AMONG, PLANTED, LOOKED_AT, DRAWS = 1_000, 30, 10, 1_000


def first(folder: Path, sets: list[str], attacks: list[str]) -> None:
    """Of ten single poisons among a thousand passages, how many are among the first ten.

    Thirty are planted, of questions that were set aside, and ten of them drawn a thousand times: the others are taken
    out of the list.
    """
    print("| 1,000 passages | attack | planted | of the first ten | flagged poisons | flagged clean |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in sets:
        passages = corpus_of(folder, name)
        some = [passages[i] for i in np.random.default_rng(1).permutation(len(passages))[:AMONG]]
        for attack in attacks:
            file = f"{name}_poisoned" if name != "realtimeqa" else name
            planted = poisons_of(folder, file, attack, 1, PLANTED, front=False, fitted=False)
            if len(planted) < LOOKED_AT:
                continue
            found = scan(shuffled([*some, *planted])).findings
            bad = np.array([one.id.startswith("poison-") for one in found])
            flagged = np.array([one.flagged for one in found])
            rng, places = np.random.default_rng(0), np.flatnonzero(bad)
            hits = []
            for _ in range(DRAWS):
                kept = ~bad
                kept[rng.choice(places, LOOKED_AT, replace=False)] = True
                hits.append(bad[kept][:LOOKED_AT].sum())
            cells = (name, attack, len(planted), f"{np.mean(hits):.1f}", f"{flagged[bad].mean():.0%}",
                     f"{flagged[~bad].mean():.2%}")  # fmt: skip
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


def clean(folder: Path) -> None:
    print("| clean collection | documents | flagged | share |\n| --- | --- | --- | --- |")
    for name in CLEAN:
        texts = dict.fromkeys(p["text"] for row in rows(folder, f"clean_{name}") for p in row["passages"])
        found = scan([{"id": str(i), "text": text} for i, text in enumerate(texts)])
        print(f"| {name} | {len(found):,} | {len(found.flagged)} | {len(found.flagged) / len(found):.2%} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("files", "quality", "first", "clean"), nargs="?", default="files")
    parser.add_argument("folder", type=Path, nargs="?", help="the evaluation data; files need none")
    parser.add_argument("--sets", default="nq,hotpotqa,msmarco")
    parser.add_argument("--attacks", default="poisonedrag")
    given = parser.parse_args()
    if given.table == "files":
        from benchmarks.quality.scan_files import by_type

        by_type()
    elif given.folder is None:
        parser.error("name the folder of the evaluation data")
    elif given.table == "quality":
        quality(given.folder, given.sets.split(","), given.attacks.split(","))
    elif given.table == "first":
        first(given.folder, given.sets.split(","), given.attacks.split(","))
    else:
        clean(given.folder)


if __name__ == "__main__":
    main()
