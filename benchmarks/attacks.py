"""Every attack that needs no model against the defenses that need none, one poison among ten passages.

python benchmarks/attacks.py ../shared/data
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

from unpoison.evaluation.report import Report
from unpoison.evaluation.runner import Runner
from unpoison.evaluation.scenarios import Scenario

ATTACKS = (
    *("published", "poisonedrag", "pia", "phantom", "garag", "tan", "adversarial-decoding", "jamming:mode=proxy"),
    *("synonym", "paraphrase", "disperse", "mixed", "ambiguous", "conditional", "multi-cluster", "diverse"),
    *("orders", "swap", "suppress", "corruptrag", "authchain", "defense-aware"),
)
DEFENSES = ("vanilla", "guard", "grada", "ragdefender", "trustrag:stages=1")
FILE = "msmarco_poisoned.jsonl"
"""Guard was fitted on no question of it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder of data sets")
    parser.add_argument("--limit", type=int, default=30, help="questions")
    parser.add_argument("--only", default="", help="attacks, separated by blanks")
    arguments = parser.parse_args()
    attacks = tuple(arguments.only.split()) or ATTACKS
    data = str(arguments.data / FILE)
    scenarios = [
        Scenario(
            data,
            corpus=str(arguments.data / "corpus.jsonl"),
            attack=attack,
            poisons=1,
            generator="extractive",
            defense=defense,
            limit=arguments.limit,
        )
        for attack in attacks
        for defense in DEFENSES
    ]
    with tempfile.TemporaryDirectory() as folder:
        summaries = Report.of(Runner(Path(folder), scenarios).run()).summaries
    found = {(summary.scenario.attack, summary.scenario.defense): summary for summary in summaries}
    print("| attack | n | guard | grada | ragdefender | trustrag:stages=1 | ASR, vanilla | ASR, guard |")
    print("|---|---|---|---|---|---|---|---|")
    for attack in attacks:
        shares = [found[attack, defense]["poisoned"] for defense in DEFENSES[1:]]
        shares += [found[attack, defense]["asr"] for defense in DEFENSES[:2]]
        cells = [str(found[attack, "vanilla"].expected), *map(text, shares)]
        print(f"| `{attack}` | {' | '.join(cells)} |")


def text(share: object) -> str:
    value, low, high = (getattr(share, name) for name in ("value", "low", "high"))
    return "-" if math.isnan(value) else f"{100 * value:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


if __name__ == "__main__":
    main()
