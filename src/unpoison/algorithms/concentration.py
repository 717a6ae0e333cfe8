"""Concentration of passages, the most similar pairs, and the heaviest TF-IDF terms (RAGDefender, Section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["concentration", "top_pair_frequency", "top_terms"]

TOLERANCE = 1e-6
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
        flagged = (mean > mean.mean() + TOLERANCE) & (median > np.median(median) + TOLERANCE)
        return Concentration(mean, median, flagged, int(flagged.sum()), False)
    mean, median = matrix.mean(axis=1), _lower_median(matrix)
    mean_bar, median_bar = mean.mean(), _lower_median(median)
    flagged = (mean > mean_bar + TOLERANCE) | (median > (median_bar + mean_bar) / 2 + TOLERANCE)
    count = int(flagged.sum())
    flipped = count == 0 or not mean_bar < median_bar - TOLERANCE
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
