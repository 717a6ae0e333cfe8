"""Measure a grid of `benchmarks/grids` as Markdown tables; the small reader on questions that it has not learned from.

    python -m benchmarks grid answers evaluation-data > answers.md
    python -m benchmarks grid certified evaluation-data --folder build/certified > certified.md
    python -m benchmarks grid model evaluation-data --generator openai:large,base_url=http://127.0.0.1:8091/v1

A grid is what `unpoison evaluate --config` takes, with the names of evaluation files as data. An interrupted run
resumes. In none of the four papers' tables; 95 % intervals.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import yaml

from benchmarks.data_option import BUILT, evaluation_folder
from benchmarks.training.reader_data import unseen
from unpoison.runtime.driver import Limits
from unpoison_lab.evaluation.grids import Grid
from unpoison_lab.evaluation.runner import Runner
from unpoison_lab.report import Report, as_markdown

GRIDS = Path(__file__).resolve().parents[1] / "grids"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(path.stem for path in GRIDS.glob("*.yaml")))
    parser.add_argument("data", nargs="?", type=evaluation_folder, default=BUILT)
    parser.add_argument("--folder", type=Path, default=Path("build/grids"), help="where the run is kept")
    parser.add_argument("--limit", type=int, default=60, help="questions of a file")
    parser.add_argument("--generator", help="a language model in place of the grid's, as in 'unpoison evaluate -g'")
    given = parser.parse_args()
    axes = yaml.safe_load((GRIDS / f"{given.name}.yaml").read_text(encoding="utf-8"))
    if given.generator:
        axes["generator"] = given.generator
    folder = given.folder / given.name
    learned = "reader" in str(axes.get("generator"))  # only the small reader has learned from some of the questions
    axes["data"] = [str(questions(given.data, name, folder, given.limit, learned)) for name in axes["data"]]
    axes["corpus"] = str(given.data / "corpus.jsonl")
    limits = Limits(deadline=None, timeout=3_600.0)  # a model on two busy cores
    run = Runner(folder, Grid.of(axes).scenarios(), limits=limits, command=sys.argv, progress=say).run()
    print(as_markdown(Report.of(run)), end="")


def questions(data: Path, name: str, folder: Path, limit: int, learned: bool) -> Path:
    """A file of the first questions; where the reader answers, of those that it has not learned from."""
    lines = (data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    chosen = [line for line in lines if not learned or unseen(data, json.loads(line)["question"])][:limit]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(chosen) + "\n", encoding="utf-8")
    return path


def say(done: int, total: int, doing: str) -> None:
    if done % 50 == 0 or done == total:
        print(f"{done:,} of {total:,}, {doing}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
