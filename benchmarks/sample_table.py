"""The built-in sample, screened without any model or data folder: a table that every test run measures again.

python benchmarks/sample_table.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from unpoison.evaluation.report import Report
from unpoison.evaluation.runner import Runner
from unpoison.evaluation.scenarios import Scenario

DEFENSES = ("vanilla:keep=5", "guard", "grada", "ragdefender", "trustrag:stages=1", "trustrag:stages=1,mode=reference")
COUNTS = (1, 3)
QUESTIONS = 12


def main() -> None:
    scenarios = [
        Scenario("sample", attack="poisonedrag", poisons=count, policy="retrieve", defense=defense, limit=QUESTIONS)
        for defense in DEFENSES
        for count in (0, *COUNTS)
    ]
    with tempfile.TemporaryDirectory() as folder:
        found = Report.of(Runner(Path(folder), scenarios).run()).summaries
    by = {(summary.scenario.defense, summary.scenario.poisons): summary for summary in found}
    print("| defense | poison left, 1 % | poison left, 3 % | clean kept, 0 % | clean kept, 1 % | clean kept, 3 % |")
    print("|---|---|---|---|---|---|")
    for defense in DEFENSES:
        left = [by[defense, count]["poisoned"].value for count in COUNTS]
        kept = [by[defense, count]["clean_kept"].value for count in (0, *COUNTS)]
        print(f"| {defense} | {' | '.join(f'{100 * value:.0f}' for value in (*left, *kept))} |")


if __name__ == "__main__":
    main()
