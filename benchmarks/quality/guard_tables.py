"""Guard's tables: each check by itself, every clean set and every attack.

    python -m benchmarks guard_tables evaluation-data > guard.md

Everything goes through `Guard().screen`; questions that nothing was fitted on.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.data_option import BUILT, evaluation_folder
from benchmarks.quality.headlines import Screened, screen_all
from benchmarks.training.guard_data import measured_samples
from unpoison import Guard
from unpoison.algorithms.intervals import wilson
from unpoison_lab.attacks.base import contains_answer
from unpoison_lab.evaluation.datasets import load

CHECKS = ("hidden", "prompt_injection", "gibberish", "crafted")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=evaluation_folder, default=BUILT)
    parser.add_argument("--damage", type=float, default=0.02)
    arguments = parser.parse_args()

    guard = Guard(damage=arguments.damage)
    found = screen_all(guard, measured_samples(arguments.folder))
    print(f"## Guard, damage {arguments.damage}: threshold {guard.threshold:.3f}\n")
    checks(found, answers(arguments.folder))
    clean_table([one for one in found if one.sample.attack == "none"])
    attack_table([one for one in found if one.sample.attack not in ("none", "5 clean + many")])


Found = Sequence[Screened]


def rate(hits: int, total: int) -> str:
    if not total:
        return "-"
    estimate = wilson(hits, total)
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


ASKED = ("nq_poisoned", "hotpotqa_poisoned", "msmarco_poisoned", "nq_large_poisoned", "nq_retrieved", "realtimeqa",
         "msmarco_retrieved", "hotpotqa_distractor", "realtimeqa_weekly", "timeqa", "rgb_counterfactual",
         "ramdocs")  # fmt: skip
"""Files with annotated answers."""


def keeps_gold(one: Screened) -> bool:
    return bool((np.array(one.sample.gold) & one.kept).any())


def answers(folder: Path) -> dict[str, tuple[str, ...]]:
    """The right answers of every question of the folder."""
    every = (
        example for path in sorted(folder.glob("*.jsonl")) if path.stem in ASKED for example in load(path).examples
    )
    return {example.question: example.correct_answers for example in every if example.correct_answers}


def checks(found: Found, right: dict[str, tuple[str, ...]]) -> None:
    """What each check takes: clean passages, questions, passages that hold the answer, poison."""
    print("| check | poison dropped % | clean passages dropped or cut % | questions touched % | with the answer % |")
    print("|---|---|---|---|---|")
    for name in (*CHECKS, "all"):
        poison, clean, touched, answering = [], [], [], []
        for one in found:
            by = np.array([name in ("all", of_check(v.reason.codes)) for v in one.screening.verdicts])
            changed = by & np.array([not v.kept or bool(v.spans) for v in one.screening.verdicts])
            poison.extend((by & ~one.kept)[one.poison])
            if one.sample.attack == "none":
                clean.extend(changed)
                touched.append(changed.any())
                wanted = right.get(one.sample.question, ())
                holds = [any(contains_answer(text, answer) for answer in wanted) for text in one.sample.texts]
                answering.extend(changed[np.array(holds, dtype=bool)])
        cells = (rate(int(np.sum(values)), len(values)) for values in (poison, clean, touched, answering))
        print(f"| `{name}` | {' | '.join(cells)} |")
    print()


def of_check(codes: Sequence[str]) -> str:
    """The check that a reason is of."""
    return next((name for code in codes for name in CHECKS if code == name or code.startswith(f"{name}.")), "")


def clean_table(found: Found) -> None:
    print(
        "| clean set | questions | clean passages kept % | questions that keep a gold passage % | questions touched % |"
    )
    print("|---|---|---|---|---|")
    for name, rows in grouped(found, lambda one: one.sample.domain).items():
        kept = sum(one.tally.clean_kept for one in rows)
        gold = [keeps_gold(one) for one in rows if any(one.sample.gold)]
        touched = sum(one.tally.damaged for one in rows)
        whole = sum(len(one.sample.texts) for one in rows)
        shares = rate(kept, whole), rate(sum(gold), len(gold)), rate(touched, len(rows))
        print(f"| {name} | {len(rows)} | {' | '.join(shares)} |")
    print()


def attack_table(found: Found) -> None:
    print("Contexts with any poison left, %, by number of poisons among ten passages:\n")
    print("| set | attack | 1 | 2 | 3 | 5 | clean kept % |\n|---|---|---|---|---|---|---|")
    for (name, attack), rows in grouped(found, lambda one: (one.sample.domain, one.sample.attack)).items():
        if attack == "as published":
            left = [one.tally.poisoned for one in rows if any(one.sample.poison)]
            line = [rate(sum(left), len(left)), "", "", ""]
        else:
            by = grouped(rows, lambda one: sum(one.sample.poison))
            line = []
            for count in (1, 2, 3, 5):
                left = [one.tally.poisoned for one in by.get(count, ())]
                line.append(rate(sum(left), len(left)))
        kept = sum(one.tally.clean_kept for one in rows)
        clean = sum(one.tally.clean_kept + one.tally.clean_dropped for one in rows)
        print(f"| {name} | {attack} | {' | '.join(line)} | {100 * kept / max(clean, 1):.1f} |")
    print()


def grouped(found: Found, key: Callable[[Screened], object]) -> dict:
    made = defaultdict(list)
    for one in found:
        made[key(one)].append(one)
    return dict(made)


if __name__ == "__main__":
    main()
