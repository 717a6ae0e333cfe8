"""Certified accuracy with the small reader: what is answered rightly and proved to stay so, and what attacks leave.

    python benchmarks/certified.py ../shared/data > docs/results/certified.md

NQ, RealtimeQA and MS MARCO with 10 and 50 passages. A run that was interrupted goes on where it stopped (`--folder`).
Published texts are the attack of the data sets; corruptrag needs no language model.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from unpoison import __version__
from unpoison.evaluation.grids import Grid
from unpoison.evaluation.report import Report
from unpoison.evaluation.report.exports import markdown_table
from unpoison.evaluation.report.guarantees import certified_tables
from unpoison.evaluation.runner import Runner

SETS = ("nq_poisoned", "realtimeqa", "msmarco_poisoned")
DEFENSES = (
    "vote",
    "vote:same=meaning",
    "vote:copies=once",
    "guard:answer=guaranteed",
    "robustrag",
    "robustrag:beta=100",
)
ATTACKS = ("published", "corruptrag")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("data", type=Path)
    options.add_argument("--folder", type=Path, default=Path("build/certified"))
    options.add_argument("--generator", default="reader")
    options.add_argument("--k", default="10,50")
    options.add_argument("--sets", default=",".join(SETS))
    options.add_argument("--limit", type=int)
    given = options.parse_args()
    print("# Certified accuracy\n")
    print(f"`python benchmarks/certified.py ../shared/data`, unpoison {__version__}, generator {given.generator}.")
    for name in given.sets.split(","):
        grid = Grid.of(
            {
                "data": [str(given.data / f"{name}.jsonl")],
                "defense": list(DEFENSES),
                "attack": list(ATTACKS),
                "poisons": ["1,3"],
                "k": given.k.split(","),
                "generator": [given.generator],
                "limit": given.limit,
            }
        )
        started = time.monotonic()

        def told(done: int, total: int, doing: str, name: str = name, started: float = started) -> None:
            if done % 50 == 0 or done == total:
                left = (time.monotonic() - started) * (total - done) / max(done, 1)
                print(f"{name}: {done:,} of {total:,}, {doing}, {left:.0f} s left", file=sys.stderr, flush=True)

        run = Runner(given.folder / name, grid.scenarios(), progress=told, command=sys.argv).run()
        for table in certified_tables(Report.of(run)):
            print(f"\n{markdown_table(table)}")


if __name__ == "__main__":
    main()
