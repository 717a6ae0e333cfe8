"""Clusters of points, concentration of passages, the most similar pairs, and the heaviest TF-IDF terms.

Two clusters: hierarchical, 2-means, and scikit-learn's K-means as in the released code. Concentration, pairs
and terms are those of RAGDefender, Section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.utils.extras import require

__all__ = ["agglomerative", "concentration", "kmeans", "top_pair_frequency", "top_terms", "two_means"]

STARTS = 300
"""Maximum number of starts: every pair of 25 points."""

START_CELLS = 100_000_000
"""Maximum of starts times points squared, which bounds the time of one iteration."""

MIN_STARTS = 10
"""Minimum number of starts, for any number of points."""

STEPS = 100
"""Maximum iterations; a start that has not converged then counts as it is."""

TOLERANCE = 1e-12
"""Relative to the total inertia: of starts that differ by less the first wins, and a point whose distances to both
means differ by less belongs to the first."""


def agglomerative(
    points: ArrayLike, linkage: Literal["ward", "average", "complete", "single"] = "ward", *, split_equal: bool = False
) -> NDArray[np.intp]:
    """Two clusters by hierarchical merging, Euclidean: the children of the last merge.

    Args:
        points: Shape (k, d).
        linkage: The distance of two clusters.
        split_equal: Split equal points too, the last of them from the rest, as scikit-learn does.

    Returns:
        Shape (k,), labels 0 and 1, 0 being the cluster of point 0. All 0 if all points are equal.

    Raises:
        ValueError: The shape is wrong or the linkage unknown.

    Complexity: O(k^2 d) time, O(k^2) memory.
    """
    vectors = _check_points(points)
    if linkage not in ("ward", "average", "complete", "single"):
        raise ValueError(f"linkage must be ward, average, complete or single, got {linkage!r}")
    size = len(vectors)
    if size < 2 or (not split_equal and (vectors == vectors[0]).all()):
        return np.zeros(size, np.intp)
    from scipy.cluster import hierarchy

    merges = hierarchy.linkage(vectors, linkage)[:, :2].astype(int).tolist()
    labels = [0] * (2 * size - 1)
    labels[merges[-1][1]] = 1
    for step in range(size - 3, -1, -1):
        for child in merges[step]:
            labels[child] = labels[size + step]
    return _from_first(np.array(labels[:size], np.intp))


def two_means(points: ArrayLike) -> NDArray[np.intp]:
    """Two clusters of minimum inertia by Lloyd's iteration (K-means with K = 2), deterministic.

    The iteration starts from every pair of points if there are few, else from pairs spread evenly over all pairs; all
    starts are computed together from inner products only. The best wins, among equals the first.

    Args:
        points: Shape (k, d).

    Returns:
        Shape (k,), labels 0 and 1, 0 being the cluster of point 0. All 0 if all points are equal.

    Raises:
        ValueError: The shape is wrong.

    Complexity: O(k^2 d + steps * starts * k^2) time, with starts * k^2 bounded; O(k * (k + starts)) memory.
    """
    vectors = _check_points(points)
    size = len(vectors)
    if size < 2 or (vectors == vectors[0]).all():
        return np.zeros(size, np.intp)
    vectors = vectors / np.abs(vectors).max()
    vectors -= vectors.mean(axis=0)
    gram = vectors @ vectors.T
    slack = TOLERANCE * np.trace(gram)
    first, second = _pairs(size)
    # Squared distance to the first point minus that to the second, over 2.
    lead = gram[second] - gram[first] - (np.diag(gram)[second] - np.diag(gram)[first])[:, None] / 2
    member = (lead > slack).astype(np.float64)
    between = np.zeros(len(member))
    open_starts = np.arange(len(member))
    for _ in range(STEPS):
        inner = member[open_starts]
        count = inner.sum(axis=1)
        sums = inner @ gram
        square = (inner * sums).sum(axis=1)
        # The points are centred, so the two cluster sums are opposite and one inner product gives both distances.
        both = np.maximum(count * (size - count), 1)
        between[open_starts] = square * size / both
        bar = square * (size - 2 * count) / (2 * both)
        moved = (sums > bar[:, None] + slack).astype(np.float64)
        changed = (moved != inner).any(axis=1) & (count > 0)
        open_starts = open_starts[changed]
        if not open_starts.size:
            break
        member[open_starts] = moved[changed]
    best = np.argmax(between >= between.max() - slack)
    return _from_first(member[best].astype(np.intp))


def _pairs(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The pairs of points to start from, in lexicographic order: all, or the allowed number, evenly spread."""
    total = size * (size - 1) // 2
    allowed = max(MIN_STARTS, min(STARTS, START_CELLS // size**2))
    if total <= allowed:
        return np.triu_indices(size, 1)
    numbers = np.arange(allowed) * total // allowed
    begins = np.concatenate([[0], np.cumsum(np.arange(size - 1, 1, -1))])
    first = np.searchsorted(begins, numbers, side="right") - 1
    return first, numbers - begins[first] + first + 1


def _from_first(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.asarray(labels ^ labels[0], np.intp)


def _check_points(points: ArrayLike) -> NDArray[np.float64]:
    vectors = np.asarray(points, np.float64)
    if vectors.ndim != 2:
        raise ValueError(f"points must have shape (k, d), got shape {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise ValueError("points must be finite numbers; encode the texts again")
    return vectors


def kmeans(points: ArrayLike, *, steps: int = 300) -> NDArray[np.intp]:
    """Two clusters by scikit-learn's K-means (10 starts, seed 0).

    Args:
        points: Shape (k, d).
        steps: Maximum iterations of a start.

    Returns:
        Shape (k,), labels 0 and 1; all 0 for fewer than 2 different points.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    cluster = require("sklearn.cluster", "the K-means of the reference")
    vectors = np.asarray(points)
    if len(np.unique(vectors, axis=0)) < 2:
        return np.zeros(len(vectors), np.intp)
    labels = cluster.KMeans(n_clusters=2, n_init=10, max_iter=steps, random_state=0).fit(vectors).labels_
    return np.asarray(labels, np.intp)


ROUNDING = 1e-6
"""Smaller differences are rounding errors of float32 embeddings, which must decide nothing."""


class Concentration(NamedTuple):
    """The result of `concentration`.

    Attributes:
        mean: Shape (k,), mean similarity of each passage to the others.
        median: Shape (k,), median similarity of each passage to the others.
        flagged: Shape (k,), which passages the rule flags.
        count: The estimated number of adversarial passages, N_adv.
        flipped: Whether `count` is the number of passages that are not flagged.
    """

    mean: NDArray[np.float64]
    median: NDArray[np.float64]
    flagged: NDArray[np.bool_]
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not needed here
    flipped: bool


def concentration(similarity: ArrayLike, rule: Literal["paper", "reference"]) -> Concentration:
    """Concentration factors and the estimate of N_adv (RAGDefender, Section 4.1, Eq. 3).

    "paper" flags passages whose mean similarity to the others is above the mean of these means and whose median is
    above the median of the medians. At most half of the passages can be above a median, so no majority is ever flagged.

    "reference" follows the published code: factors include the passage itself, the median of an even number is the
    lower of the middle two, and a passage is flagged if its mean is above the mean of means or its median above the
    average of the two global thresholds. If none is flagged, or the mean of means is not below the median of medians,
    the count is that of the passages that are not flagged.

    Args:
        similarity: Shape (k, k), symmetric, each passage's similarity to itself on the diagonal.
        rule: One of the two.

    Raises:
        ValueError: The shape or the rule is wrong.

    Complexity: O(k^2) time and memory.
    """
    matrix = np.asarray(similarity, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"similarity must have shape (k, k), got shape {matrix.shape}")
    if rule not in ("paper", "reference"):
        raise ValueError(f"rule must be 'paper' or 'reference', got {rule!r}")
    size = len(matrix)
    if size == 0 or (size == 1 and rule == "paper"):
        return Concentration(np.zeros(size), np.zeros(size), np.zeros(size, bool), 0, False)
    if rule == "paper":
        others = matrix[~np.eye(size, dtype=bool)].reshape(size, size - 1)
        mean, median = others.mean(axis=1), np.median(others, axis=1)
        flagged = (mean > mean.mean() + ROUNDING) & (median > np.median(median) + ROUNDING)
        return Concentration(mean, median, flagged, int(flagged.sum()), False)
    mean, median = matrix.mean(axis=1), _lower_median(matrix)
    mean_bar, median_bar = mean.mean(), _lower_median(median)
    flagged = (mean > mean_bar + ROUNDING) | (median > (median_bar + mean_bar) / 2 + ROUNDING)
    count = int(flagged.sum())
    flipped = count == 0 or not mean_bar < median_bar - ROUNDING
    return Concentration(mean, median, flagged, size - count if flipped else count, flipped)


def _lower_median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median along the last axis, for an even number the lower of the middle two, as in `torch.median`."""
    middle = (values.shape[-1] - 1) // 2
    return np.asarray(np.partition(values, middle, axis=-1)[..., middle])


DECIMALS = 12
"""Decimals of similarities, scores and sums, so that equal ones tie and the lower index or letter decides."""


def top_pair_frequency(
    similarity: ArrayLike, count: int, exponent: float = 2.0
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The most similar pairs and each passage's frequency score in them (RAGDefender, Section 4.2, Eqs. 4-6).

    The p = max(1, count * (count - 1) / 2) most similar pairs each add sgn(sim) * |sim|^exponent to both members.

    Args:
        similarity: Shape (k, k), symmetric; the diagonal is ignored.
        count: The estimated number of adversarial passages, N_adv.
        exponent: The weighting exponent of Eq. 6.

    Returns:
        Frequency scores of shape (k,), and the pairs of shape (p, 2), each with the lower index first, the most similar
        pair first, ties by index. p is at most k * (k - 1) / 2.

    Raises:
        ValueError: The shape is wrong or `count` is negative.

    Complexity: O(k^2 + p log p) time, O(k^2) memory.
    """
    matrix = np.asarray(similarity, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"similarity must have shape (k, k), got shape {matrix.shape}")
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    size = len(matrix)
    first, second = np.triu_indices(size, 1)
    values = np.round(matrix[first, second], DECIMALS)
    wanted = min(max(1, comb(count, 2)), len(values))
    if wanted == 0:
        return np.zeros(size), np.zeros((0, 2), np.intp)
    bar = np.partition(values, -wanted)[-wanted]
    above, level = np.flatnonzero(values > bar), np.flatnonzero(values == bar)
    chosen = np.concatenate([above, level[: wanted - len(above)]])
    chosen = chosen[np.lexsort((chosen, -values[chosen]))]
    pairs = np.stack([first[chosen], second[chosen]], axis=1)
    best = values[chosen]
    gains = np.repeat(np.sign(best) * np.abs(best) ** exponent, 2)
    return np.round(np.bincount(pairs.ravel(), gains, minlength=size), DECIMALS), pairs


def top_terms(documents: Sequence[Sequence[str]], count: int) -> list[str]:
    """The terms of the highest TF-IDF weight, summed over all documents (RAGDefender, Section 4.1).

    As scikit-learn's `TfidfVectorizer` with its defaults: counts times idf = ln((1 + n) / (1 + df)) + 1, each document
    then scaled to Euclidean length 1.

    Args:
        documents: k token lists without stop words.
        count: Maximum number of terms.

    Returns:
        Up to `count` terms, the heaviest first, ties in alphabetical order.

    Complexity: O(t log t) time and O(t) memory for t tokens.
    """
    vocabulary: dict[str, int] = {}
    number = vocabulary.setdefault
    tokens = np.array([number(token, len(vocabulary)) for document in documents for token in document], np.intp)
    owners = np.repeat(np.arange(len(documents)), [len(document) for document in documents])
    cells, counts = np.unique(owners * len(vocabulary) + tokens, return_counts=True)
    rows, columns = np.divmod(cells, max(len(vocabulary), 1))
    rarity = np.log((1 + len(documents)) / (1 + np.bincount(columns, minlength=len(vocabulary)))) + 1
    weights = counts * rarity[columns]
    lengths = np.sqrt(np.bincount(rows, weights**2, minlength=len(documents)))
    sums = np.round(np.bincount(columns, weights / lengths[rows], minlength=len(vocabulary)), DECIMALS)
    bar = np.partition(sums, -count)[-count] if 0 < count < len(sums) else 0.0
    terms, ranked = list(vocabulary), np.flatnonzero(sums >= bar).tolist()
    ranked.sort(key=lambda index: (-sums[index], terms[index]))
    return [terms[index] for index in ranked[:count]]
