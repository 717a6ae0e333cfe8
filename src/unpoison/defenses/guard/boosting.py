"""How Guard's trees are fitted: scikit-learn's histogram boosting, and its trees as lists of numbers.

The shipped coefficients and those of a Guard of one's own are fitted by the same functions, which need the extra `fit`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard.model import STEEPEST
from unpoison.extras import require

__all__ = ["Scale", "balanced", "boosted", "cross_fitted", "exported", "scaled"]

Matrix = NDArray[np.float64]

TREES: Final = 120
"""Trees of one classifier."""
DEPTH: Final = 3
"""The shape that `kernels.trees` evaluates: 7 nodes and 8 leaves a tree."""
RATE: Final = 0.1
"""How much each tree counts; the library's default."""
SEED: Final = 0
"""The same rows give the same trees."""


def boosted(
    rows: Matrix, y: NDArray[np.bool_], w: Matrix, *, trees: int = TREES, rising: Sequence[int] | None = None
) -> Any:
    """A classifier of small trees.

    Args:
        rows: Evidence, shape (n, columns).
        y: Which rows are poison, shape (n,).
        w: What each row weighs, shape (n,).
        trees: How many.
        rising: For each column 1 where more of it never means less suspicion, else 0.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    ensemble = require("sklearn.ensemble", "fitting a Guard", "fit")
    return ensemble.HistGradientBoostingClassifier(
        max_iter=trees, learning_rate=RATE, max_depth=DEPTH, l2_regularization=5, min_samples_leaf=60, max_bins=64,
        monotonic_cst=rising, early_stopping=False, random_state=SEED,
    ).fit(rows, y, w)  # fmt: skip


def cross_fitted(rows: Matrix, y: NDArray[np.bool_], w: Matrix, folds: NDArray[np.int64]) -> Matrix:
    """The sum that a classifier fitted on the other folds gives each row, shape (n,)."""
    sums = np.zeros(len(y))
    for fold in sorted(set(folds.tolist())):
        here = folds == fold
        sums[here] = boosted(rows[~here], y[~here], w[~here]).decision_function(rows[here])
    return sums


class Scale(NamedTuple):
    """How sums become probabilities.

    Attributes:
        numbers: `slope`, `alone`, `context` and `base`, as `GuardModel.odds` uses them.
        probability: What becomes of the sums that it was fitted on, shape (n,).
    """

    numbers: dict[str, Any]
    probability: Matrix


def scaled(sums: Matrix, alone: Matrix, where: Matrix, y: NDArray[np.bool_], w: Matrix) -> Scale:
    """A logistic regression with hardly any penalty.

    Args:
        sums: Of the second step, shape (n,).
        alone: Of the trees that look at one passage, shape (n,).
        where: The settings of the sets (`guard_model.setting`), shape (n, 3).
        y: Which rows are poison, shape (n,).
        w: What each row weighs, shape (n,).

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    linear = require("sklearn.linear_model", "fitting a Guard", "fit")
    bounded = np.clip(np.column_stack([sums, alone]), -STEEPEST, STEEPEST)
    rows = np.hstack([bounded, where])
    fitted = linear.LogisticRegression(C=1e3, max_iter=1000).fit(rows, y, w)
    slope, by_itself, *context = (float(f"{value:.6g}") for value in fitted.coef_[0])
    numbers = {"slope": slope, "alone": by_itself, "context": context, "base": float(fitted.intercept_[0])}
    return Scale(numbers, np.asarray(fitted.predict_proba(rows)[:, 1]))


def balanced(keys: Sequence[tuple[str, str, bool]]) -> Matrix:
    """What each row weighs, given its (domain, attack, whether it is poison), with mean 1.

    Clean and poison weigh the same; among clean rows each domain, among poisons each domain and attack.
    """
    sizes = Counter(keys)
    groups = Counter(poison for _, _, poison in sizes)
    weights = np.array([1 / (sizes[key] * groups[key[2]]) for key in keys])
    return np.asarray(weights * len(keys) / weights.sum())


def exported(model: Any, columns: Sequence[int] | None = None) -> dict[str, Any]:
    """The trees as full trees of depth 3, breadth first; a leaf above the bottom is repeated below.

    Args:
        model: Of `boosted`.
        columns: The places of its columns in a broader table, where it was fitted on some of them.
    """
    inner, outer = 2**DEPTH - 1, 2**DEPTH
    trees: dict[str, Any] = {
        "features": [],
        "thresholds": [],
        "leaves": [],
        "base": float(model._baseline_prediction.ravel()[0]),
    }
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        features, thresholds, leaves = [0] * inner, [0.0] * inner, [0.0] * outer
        pending = [(0, 0)]
        while pending:
            position, index = pending.pop()
            node = nodes[index]
            if position >= inner:
                leaves[position - inner] = round(float(node["value"]), 5)
            elif node["is_leaf"]:
                pending += [(2 * position + 1, index), (2 * position + 2, index)]
            else:
                column = int(node["feature_idx"])
                features[position] = column if columns is None else columns[column]
                thresholds[position] = float(f"{node['num_threshold']:.7g}")
                pending += [(2 * position + 1, int(node["left"])), (2 * position + 2, int(node["right"]))]
        for name, values in (("features", features), ("thresholds", thresholds), ("leaves", leaves)):
            trees[name].append(values)
    return trees
