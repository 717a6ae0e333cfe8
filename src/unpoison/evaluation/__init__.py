"""Measure defenses: data sets, contexts with poison in them, metrics, intervals.

from unpoison.evaluation import clean_contexts, load, planted, prepend, tally
"""

from __future__ import annotations

from unpoison.evaluation.contexts import Candidate, Context, clean_contexts, labelled_context
from unpoison.evaluation.datasets import load, load_passages
from unpoison.evaluation.examples import Example, LabelledPassage, Loaded, Problem
from unpoison.evaluation.injection import (
    inject,
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
from unpoison.evaluation.metrics import Detection, Tally, auroc, detection, tally
from unpoison.evaluation.rates import PoisonRate

__all__ = [
    "MATCHERS",
    "Candidate",
    "Context",
    "Detection",
    "Difference",
    "Estimate",
    "Example",
    "LabelledPassage",
    "Loaded",
    "Matcher",
    "PoisonRate",
    "Problem",
    "Tally",
    "auroc",
    "clean_contexts",
    "detection",
    "inject",
    "labelled_context",
    "load",
    "load_passages",
    "matcher",
    "mcnemar_exact",
    "middle",
    "paired_bootstrap",
    "planted",
    "pool",
    "prepend",
    "replace_at",
    "replace_last",
    "retrieve",
    "retrieve_corpus",
    "tally",
    "wilson",
]
