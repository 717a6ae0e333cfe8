"""TrustRAG's stage 1 as in the released code (`k_mean_filtering` of its `defend_module.py`).

Needs the extra `[reference]`: scikit-learn for K-means, NLTK for the stems of ROUGE-L. It deviates from the paper's
intent: it may drop a singleton that resembles nothing else, may return nothing, and removes all near-duplicates. One
difference remains: the input order is kept, while the released code concatenates the clusters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.clusters import kmeans
from unpoison.core.reasons import Reason
from unpoison.text.tokens import nltk_stems, rouge_l
from unpoison.utils.extras import require

__all__ = ["density", "group_filter", "reference_clusters", "reference_filter", "reference_overlaps"]

Matrix = NDArray[np.float64]


def reference_clusters(vectors: NDArray[np.float32]) -> NDArray[np.int64]:
    """scikit-learn's K-means on standardised vectors of length 1: ten starts, 500 steps, seed 0.

    Args:
        vectors: Shape (k, d).

    Returns:
        Labels 0 and 1, shape (k,); all 0 for equal vectors, for which the released code fails.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    scaler = require("sklearn.preprocessing", "mode=reference of TrustRAG").StandardScaler()
    points = scaler.fit_transform(vectors)
    length = np.linalg.norm(points, axis=1, keepdims=True)
    return kmeans(points / np.where(length > 0, length, 1), steps=500)


def reference_overlaps(texts: Sequence[str]) -> Matrix:
    """ROUGE-L F1 of each pair as in `rouge-score` with its stemmer, shape (k, k)."""
    return rouge_l(texts, nltk_stems)


def density(members: NDArray[np.intp], similarity: Matrix) -> float:
    """The mean over all pairs of different members; NaN without a pair."""
    n, inner = len(members), similarity[np.ix_(members, members)]
    return float((inner.sum() - np.trace(inner)) / (n * (n - 1))) if n > 1 else float("nan")


def reference_filter(
    labels: NDArray[np.int64],
    similarity: Matrix,
    overlaps: Matrix,
    threshold: float,
    overlap: float,
    *,
    gate: bool = True,
) -> tuple[list[int], list[Reason]]:
    """The passages that the released code keeps, and the reasons.

    Args:
        labels: Cluster of each passage, 0 or 1, shape (k,).
        similarity: Cosine of the raw embeddings, shape (k, k).
        overlaps: ROUGE-L F1 of each pair, shape (k, k).
        threshold: Cosine above which a cluster is dense (0.88 in the released code).
        overlap: ROUGE-L above which two passages share wording (0.25).
        gate: Keep all passages if no two share wording (`removal_method=kmeans_ngram`). Without the gate
            (`removal_method=kmeans`) the clusters are judged anyway, and passages are still removed by ROUGE-L.

    Returns:
        Kept positions in input order, and a reason for every passage.
    """
    k = len(labels)
    first, second = (np.flatnonzero(labels == label) for label in (0, 1))
    if gate and not (np.triu(overlaps, 1) > overlap).any():
        return list(range(k)), [Reason.of("trustrag.no_shared_wording", overlap=overlap)] * k
    if len(second) == 0:  # one cluster: all embeddings are equal
        return [], [Reason.of("trustrag.one_cluster")] * k
    if len(first) == 1 or len(second) == 1:
        kept, note = _with_a_singleton(first, second, similarity, threshold)
        return _add_reasons(kept, note, k)
    return _with_two_groups(first, second, similarity, overlaps, threshold, overlap)


def _with_a_singleton(
    first: NDArray[np.intp], second: NDArray[np.intp], similarity: Matrix, threshold: float
) -> tuple[list[int], Reason]:
    """The lone passage is kept only beside a dense group that it does not resemble.

    Two lone passages are not a dense group: then cluster 0 is kept.
    """
    alone, group = (second, first) if len(second) == 1 else (first, second)
    if len(group) == 1 or not density(group, similarity) > threshold:
        return group.tolist(), Reason.of("trustrag.lone_dropped")
    if similarity[group[0], alone[0]] > threshold:
        return [], Reason.of("trustrag.lone_like_dense")
    return alone.tolist(), Reason.of("trustrag.lone_unlike_dense")


def _with_two_groups(
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    similarity: Matrix,
    overlaps: Matrix,
    threshold: float,
    overlap: float,
) -> tuple[list[int], list[Reason]]:
    k = len(similarity)
    looser, denser = sorted((second, first), key=lambda group: density(group, similarity))
    if density(looser, similarity) > threshold:
        return [], [Reason.of("trustrag.both_dense")] * k
    surviving = [looser] if density(denser, similarity) >= threshold else [first, second]
    kept = [i for group in surviving for i in group_filter(group.tolist(), overlaps, overlap)]
    note = Reason.of("trustrag.dense_or_shared")
    return _add_reasons(kept, note, k)


def group_filter(members: list[int], overlaps: Matrix, overlap: float) -> list[int]:
    """Remove, within one cluster, every passage that shares wording with another: both, not only the copy.

    The scan stops at the first match of each passage, so that a chain 0-1-2 with different ends keeps 2.
    """
    deleted: set[int] = set()
    anchor: int | None = None
    for position, i in enumerate(members):
        if i in deleted:
            continue
        match = next((j for j in members[position + 1 :] if overlaps[i, j] > overlap), None)
        if match is not None:
            deleted.update((i, match))
            anchor = i if anchor is None else anchor
        if anchor is not None and overlaps[i, anchor] > overlap:
            deleted.add(i)
    return [i for i in members if i not in deleted]


def _add_reasons(kept: list[int], note: Reason, k: int) -> tuple[list[int], list[Reason]]:
    return sorted(kept), [Reason.of("trustrag.passed") if i in kept else note for i in range(k)]
