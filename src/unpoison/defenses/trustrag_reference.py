"""Stage 1 of TrustRAG as its released code decides it, case by case.

It differs from the paper's purpose: it may drop a singleton that is like nothing else, may return nothing, and
removes near-duplicates entirely. It stands here so that the published numbers can be reproduced; the order of the
input is kept, which the released code does not do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpoison.core.reasons import Reason

__all__ = ["group_filter", "reference_filter"]

Matrix = NDArray[np.float64]


def reference_filter(
    labels: NDArray[np.int64], similarity: Matrix, overlaps: Matrix, threshold: float, overlap: float
) -> tuple[list[int], list[Reason]]:
    """Which passages the released code keeps, and why.

    Args:
        labels: Cluster of each passage, 0 or 1, shape (k,).
        similarity: Cosine of the raw embeddings, shape (k, k).
        overlaps: ROUGE-L F1 of each pair, shape (k, k).
        threshold: Cosine above which a cluster is dense (0.88 there).
        overlap: ROUGE-L above which two passages share wording (0.25).

    Returns:
        Kept positions in input order, and a reason for every passage.
    """
    k = len(labels)
    first, second = (np.flatnonzero(labels == label) for label in (0, 1))
    if not (np.triu(overlaps, 1) > overlap).any():
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
    """The lone passage survives only beside a dense group that it is not like.

    Two lone passages are no dense group. Then the cluster that K-means numbers first stays, which with the seed of the
    released code is the second passage's, whatever the vectors: the better ranked one is dropped.
    """
    alone, group = (first, second) if len(first) == 1 else (second, first)
    if len(group) == 1 or not _density(group, similarity) > threshold:
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
    denser, looser = (first, second)
    if _density(second, similarity) > _density(first, similarity):
        denser, looser = second, first
    if _density(looser, similarity) > threshold:
        return [], [Reason.of("trustrag.both_dense")] * k
    surviving = [looser] if _density(denser, similarity) >= threshold else [first, second]
    kept = [i for group in surviving for i in group_filter(group.tolist(), overlaps, overlap)]
    note = Reason.of("trustrag.dense_or_shared")
    return _add_reasons(kept, note, k)


def group_filter(members: list[int], overlaps: Matrix, overlap: float) -> list[int]:
    """Remove, inside one cluster, every passage that shares wording with another: both, not just the copy.

    Scanning stops at the first match of each passage, so that a chain 0-1-2 whose ends differ keeps 2.
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


def _density(members: NDArray[np.intp], similarity: Matrix) -> float:
    """Mean cosine over all pairs of different members."""
    n = len(members)
    inner = similarity[np.ix_(members, members)]
    return float((inner.sum() - np.trace(inner)) / (n * (n - 1)))


def _add_reasons(kept: list[int], note: Reason, k: int) -> tuple[list[int], list[Reason]]:
    return sorted(kept), [Reason.of("trustrag.passed") if i in kept else note for i in range(k)]
