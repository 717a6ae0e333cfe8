"""Measure defenses: data sets, contexts with poison in them, scenarios, metrics, intervals.

run = Runner("unpoison-runs/first", Grid.of({"data": "sample", "defense": "grada"}).scenarios()).run()
for summary in summarise(run.cells):
    print(summary.scenario.defense, summary["poisoned"])
"""

from __future__ import annotations

from unpoison.algorithms.intervals import Difference, Estimate, mcnemar_exact, paired_bootstrap, wilson
from unpoison.bench.evaluation.contexts import Candidate, Context, clean_contexts, context_from_labels
from unpoison.bench.evaluation.datasets import load, load_passages
from unpoison.bench.evaluation.examples import Example, LabelledPassage, Loaded, Problem
from unpoison.bench.evaluation.grids import Grid
from unpoison.bench.evaluation.injection import (
    middle,
    poison_candidates,
    pool,
    prepend,
    replace_at,
    replace_last,
    retrieve,
    retrieve_corpus,
)
from unpoison.bench.evaluation.matchers import MATCHERS, Matcher, matcher
from unpoison.bench.evaluation.records import Cell, Record, Tally, auroc, tally
from unpoison.bench.evaluation.runner import Runner
from unpoison.bench.evaluation.runs import Run, open_run
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.evaluation.summary import Comparison, Summary, compare, summarise

__all__ = [
    "MATCHERS",
    "Candidate",
    "Cell",
    "Comparison",
    "Context",
    "Difference",
    "Estimate",
    "Example",
    "Grid",
    "LabelledPassage",
    "Loaded",
    "Matcher",
    "Problem",
    "Record",
    "Run",
    "Runner",
    "Scenario",
    "Summary",
    "Tally",
    "auroc",
    "clean_contexts",
    "compare",
    "context_from_labels",
    "load",
    "load_passages",
    "matcher",
    "mcnemar_exact",
    "middle",
    "open_run",
    "paired_bootstrap",
    "poison_candidates",
    "pool",
    "prepend",
    "replace_at",
    "replace_last",
    "retrieve",
    "retrieve_corpus",
    "summarise",
    "tally",
    "wilson",
]
