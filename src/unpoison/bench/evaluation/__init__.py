"""Measure defenses: data sets, contexts with poison in them, scenarios, metrics, intervals.

run = Runner("unpoison-runs/first", Grid.of({"data": "sample", "defense": "grada"}).scenarios()).run()
for summary in summarise(run.cells):
    print(summary.scenario.defense, summary["poisoned"])
"""

from __future__ import annotations

from unpoison.algorithms.intervals import Estimate, wilson
from unpoison.bench.evaluation.contexts import Context, clean_contexts, context_from_labels
from unpoison.bench.evaluation.datasets import load, load_passages
from unpoison.bench.evaluation.examples import Example
from unpoison.bench.evaluation.grids import Grid
from unpoison.bench.evaluation.injection import poison_candidates, prepend, replace_at
from unpoison.bench.evaluation.matchers import matcher
from unpoison.bench.evaluation.records import CellTally, auroc, tally
from unpoison.bench.evaluation.runner import Runner
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.evaluation.summary import summarise

__all__ = [
    "CellTally",
    "Context",
    "Estimate",
    "Example",
    "Grid",
    "Runner",
    "Scenario",
    "auroc",
    "clean_contexts",
    "context_from_labels",
    "load",
    "load_passages",
    "matcher",
    "poison_candidates",
    "prepend",
    "replace_at",
    "summarise",
    "tally",
    "wilson",
]
