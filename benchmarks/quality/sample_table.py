"""The built-in sample, screened without any model or data folder: a table that every test run measures again.

python -m benchmarks sample_table             # print it
python -m benchmarks sample_table --write     # put it into docs/results.md
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path

from unpoison_lab.evaluation.runner import Runner
from unpoison_lab.evaluation.scenarios import NO_ATTACK, Scenario
from unpoison_lab.evaluation.summary import summarise

DEFENSES = ("vanilla:keep=5", "guard", "grada", "ragdefender", "trustrag:stages=1", "trustrag:stages=1,mode=reference")
COUNTS = (1, 3)
QUESTIONS = 12

ATTACKS = {"poisonedrag": "poisonedrag (our wording)", "published": "the sample's own (`published`)"}
"""Templates with the question in front, and what an author wrote for the sample as prose."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "results.md"
PLACE = re.compile(r"(?<=<!-- table sample -->\n\n).*?(?=\n\n<!-- end sample -->)", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    table = measured()
    if parser.parse_args().write:
        PAGE.write_text(PLACE.sub(lambda _: table, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(table)


def shown() -> str:
    """The table as it stands in the page."""
    return PLACE.findall(PAGE.read_text(encoding="utf-8"))[0]


def measured() -> str:
    """The table as it is now, in Markdown."""
    scenarios = [
        Scenario("sample", attack=attack, poisons=count, policy="retrieve", defense=defense, limit=QUESTIONS)
        for attack in ATTACKS
        for defense in DEFENSES
        for count in (0, *COUNTS)
    ]
    with tempfile.TemporaryDirectory() as folder:
        found = summarise(Runner(Path(folder), scenarios).run().cells)
    by = {(one.scenario.attack, one.scenario.defense, one.scenario.poisons): one for one in found}
    columns = [*(f"poison left, {count} %" for count in COUNTS), *(f"clean kept, {count} %" for count in (0, *COUNTS))]
    lines = [f"| attack | defense | {' | '.join(columns)} |", "|---|---|---|---|---|---|---|"]
    for attack, name in ATTACKS.items():
        for defense in DEFENSES:
            left = [by[attack, defense, count]["poisoned"].value for count in COUNTS]
            kept = [by[attack if count else NO_ATTACK, defense, count]["clean_kept"].value for count in (0, *COUNTS)]
            figures = " | ".join(f"{100 * value:.0f}" for value in (*left, *kept))
            lines.append(f"| {name} | {defense} | {figures} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
