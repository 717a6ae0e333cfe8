"""Chooses the questions of the arena's tasks, once for each version: those that nothing shipped was fitted on.

    python -m benchmarks arena_questions evaluation-data src/unpoison/data/arena.json

Of every file the questions in the order of a hash; of files that Guard or the reader learnt from, only those that both
set aside.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.training.reader_data import FREE_FILES, TEST_SHARE
from benchmarks.training.split import held_out, share_of
from unpoison.bench.arena.tasks import CLEAN, PUBLISHED, TARGETED, VERSION
from unpoison.bench.attacks.claims import statement
from unpoison.bench.evaluation import Example, load

MOST = 60
"""Questions of a file in a task."""

LEARNT = {*FREE_FILES, "nq_retrieved", "clean_faq_answers", "clean_science", "clean_wiki_en"}

MIN_CLEAN = 4
"""Passages that a clean case has at least."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    tasks: dict[str, dict[str, list[str]]] = {}

    def choose(task: str, files: tuple[str, ...], wanted: Callable[[Example], bool]) -> None:
        tasks[task] = {name: ids(given.data, name, wanted) for name in files}
        tasks[task] = {name: some for name, some in tasks[task].items() if some}
        print(task, {name: len(some) for name, some in tasks[task].items()})

    for name, files in CLEAN.items():
        choose(f"clean, {name}", files, lambda e: len(e.passages_by_label("clean", "gold", "noise")) >= MIN_CLEAN)
    for name, family in PUBLISHED.items():
        if family.attack is None:
            choose(name, family.files, lambda e: bool(e.passages_by_label("misinfo", "poison")))
        else:
            choose(name, family.files, lambda e, attack=family.attack: bool(e.poisons(attack)))
    choose("crafted", TARGETED, lambda e: bool(e.incorrect_answers and e.correct_answers))
    choose("twins", (*TARGETED, "nq_large_poisoned"), is_plain)
    choose("answers", ("realtimeqa",), lambda e: bool(e.poisons() and e.incorrect_answers))
    choose("at-rest", ("nq_poisoned", "msmarco_poisoned"), lambda e: len(e.poisons("poisonedrag")) >= 5)
    given.output.write_text(json.dumps({"version": VERSION, "tasks": tasks}, indent=1) + "\n", encoding="utf-8")


def is_plain(example: Example) -> bool:
    """Whether its answers make a sentence of the question, and not only a mention of it."""
    if not (example.incorrect_answers and example.correct_answers):
        return False
    answers = (example.incorrect_answers[0], example.correct_answers[0])
    return all(not statement(example.question, a).startswith("The answer to") and len(a.split()) <= 6 for a in answers)


def ids(folder: Path, name: str, wanted: Callable[[Example], bool]) -> list[str]:
    chosen = [
        example.id
        for example in load(folder / f"{name}.jsonl").examples
        if wanted(example) and (name not in LEARNT or held_out(folder, example.question, TEST_SHARE))
    ]
    return sorted(chosen, key=share_of)[:MOST]


if __name__ == "__main__":
    main()
