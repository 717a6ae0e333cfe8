"""The built-in sample, screened without any model or data folder: a table that every test run measures again.

python -m benchmarks sample_table
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from unpoison.bench.evaluation.runner import Runner
from unpoison.bench.evaluation.scenarios import NO_ATTACK, Scenario
from unpoison.bench.report import Report

DEFENSES = ("vanilla:keep=5", "guard", "grada", "ragdefender", "trustrag:stages=1", "trustrag:stages=1,mode=reference")
COUNTS = (1, 3)
QUESTIONS = 12


ATTACKS = {"poisonedrag": "poisonedrag (our wording)", "published": "the sample's own (`published`)"}
"""Templates with the question in front, and what an author wrote for the sample as prose."""


def main() -> None:
    scenarios = [
        Scenario("sample", attack=attack, poisons=count, policy="retrieve", defense=defense, limit=QUESTIONS)
        for attack in ATTACKS
        for defense in DEFENSES
        for count in (0, *COUNTS)
    ]
    with tempfile.TemporaryDirectory() as folder:
        found = Report.of(Runner(Path(folder), list(dict.fromkeys(scenarios))).run()).summaries
    by = {(one.scenario.attack, one.scenario.defense, one.scenario.poisons): one for one in found}
    columns = [*(f"poison left, {count} %" for count in COUNTS), *(f"clean kept, {count} %" for count in (0, *COUNTS))]
    print(f"| attack | defense | {' | '.join(columns)} |")
    print("|---|---|---|---|---|---|---|")
    for attack, name in ATTACKS.items():
        for defense in DEFENSES:
            left = [by[attack, defense, count]["poisoned"].value for count in COUNTS]
            kept = [by[attack if count else NO_ATTACK, defense, count]["clean_kept"].value for count in (0, *COUNTS)]
            print(f"| {name} | {defense} | {' | '.join(f'{100 * value:.0f}' for value in (*left, *kept))} |")


if __name__ == "__main__":
    main()
