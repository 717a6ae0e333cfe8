"""Measure defenses: data sets, contexts with poison in them, scenarios, metrics, intervals.

run = Runner("unpoison-runs/first", Grid.of({"data": "sample", "defense": "grada"}).scenarios()).run()
for summary in summarise(run.cells):
    print(summary.scenario.defense, summary["poisoned"])
"""

from __future__ import annotations

from unpoison.evaluation.contexts import Candidate, Context, clean_contexts, labelled_context
from unpoison.evaluation.datasets import load, load_passages
from unpoison.evaluation.examples import Example, LabelledPassage, Loaded, Problem
from unpoison.evaluation.grids import Grid
from unpoison.evaluation.injection import (
    middle,
    planted,
    pool,
    prepend,
    replace_at,
    replace_last,
    retrieve,
    retrieve_corpus,
)
from unpoison.evaluation.intervals import Difference, Estimate, mcnemar_exact, paired_bootstrap, wilson
from unpoison.evaluation.matching import MATCHERS, Matcher, matcher
from unpoison.evaluation.records import Cell, Record
from unpoison.evaluation.runner import Runner
from unpoison.evaluation.runs import Run, open_run
from unpoison.evaluation.scenarios import Scenario
from unpoison.evaluation.summary import Comparison, Summary, compare, summarise
from unpoison.evaluation.tallies import Tally, auroc, tally

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
    "labelled_context",
    "load",
    "load_passages",
    "matcher",
    "mcnemar_exact",
    "middle",
    "open_run",
    "paired_bootstrap",
    "planted",
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
