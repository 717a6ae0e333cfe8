"""Certified accuracy with the small reader: what is answered rightly and proved to stay so, and what attacks leave.

    python -m benchmarks certified evaluation-data > docs/results/certified.md

NQ, RealtimeQA and MS MARCO with 10 and 50 passages; the first questions that the reader has not learnt from. A run that
was interrupted goes on where it stopped (`--folder`). Published texts are the attack of the data sets; corruptrag needs
no language model.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.training.reader_data import unseen
from unpoison import __version__
from unpoison.bench.evaluation.grids import Grid
from unpoison.bench.evaluation.runner import Runner
from unpoison.bench.report import Report
from unpoison.bench.report.certification import guarantee_tables
from unpoison.report.files import markdown_table

SETS = ("nq_large_poisoned", "realtimeqa", "msmarco_poisoned")
DEFENSES = (
    "vote",
    "guard:answer=guaranteed",
    "robustrag",
    "robustrag:beta=100",
)
ATTACKS = ("published", "benchmarks.attacks:CorruptRag")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("data", type=Path)
    options.add_argument("--folder", type=Path, default=Path("build/certified"))
    options.add_argument("--generator", default="reader")
    options.add_argument("--k", default="10,50")
    options.add_argument("--sets", default=",".join(SETS))
    options.add_argument("--limit", type=int, default=62, help="questions of a set")
    given = options.parse_args()
    print("# Certified accuracy\n")
    print("**Same setting as a paper's?** No: this is in none of the four papers' tables.\n")
    print(f"`python -m benchmarks certified evaluation-data`, unpoison {__version__}, generator {given.generator}.")
    print("Questions that the reader has not learnt from; percent, with 95 % intervals; `certified, m`: right, and")
    print("proved to stay right whatever any m passages become.")
    for name in given.sets.split(","):
        grid = Grid.of(
            {
                "data": [str(questions(given.data, name, given.folder, given.limit))],
                "corpus": [str(given.data / "corpus.jsonl")],
                "defense": list(DEFENSES),
                "attack": list(ATTACKS),
                "poisons": ["1,3"],
                "k": given.k.split(","),
                "generator": [given.generator],
            }
        )
        started = time.monotonic()

        def told(done: int, total: int, doing: str, name: str = name, started: float = started) -> None:
            if done % 50 == 0 or done == total:
                left = (time.monotonic() - started) * (total - done) / max(done, 1)
                print(f"{name}: {done:,} of {total:,}, {doing}, {left:.0f} s left", file=sys.stderr, flush=True)

        run = Runner(given.folder / name, grid.scenarios(), progress=told, command=sys.argv).run()
        for table in guarantee_tables(Report.of(run)):
            print(f"\n{markdown_table(table)}")


def questions(data: Path, name: str, folder: Path, limit: int) -> Path:
    """A file of the first questions that the reader has not learnt from."""
    lines = (data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    chosen = [line for line in lines if unseen(data, json.loads(line)["question"])][:limit]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(chosen) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
