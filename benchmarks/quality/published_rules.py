"""The published rules of the four methods, written again from the papers and their released code with other libraries.

Nothing here imports our defenses, so that `fidelity` and the parity tests compare two implementations. Each function
returns positions of the passages in input order, unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[Any]
Judge = Callable[[str, str], Sequence[float]]
"""Premise and hypothesis to P(entailment), P(neutral), P(contradiction)."""
IGNORANT = "I don't know"


def cosines(vectors: Matrix) -> Matrix:
    """Of each pair; 0 for a row of zeros."""
    lengths = np.linalg.norm(vectors, axis=1)
    scale = np.where(lengths > 0, lengths, 1)
    return np.asarray(vectors @ vectors.T / scale[:, None] / scale[None, :], float)


# GRADA (agrzheng/GRADA), with bm25s and networkx


@cache
def bm25_score(query: str, document: str) -> float:
    """The released code builds an index of one passage alone."""
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize([document], show_progress=False), show_progress=False)
    (tokens,) = bm25s.tokenize([query], show_progress=False, return_ids=False)
    return float(index.get_scores(tokens)[0]) if tokens else 0.0


def grada(question: str, texts: Sequence[str], vectors: Matrix, variant: str, keep: int = 5) -> list[int]:
    """The kept positions, best first; equal scores in retrieval order."""
    import networkx

    if variant == "ebd":
        alike = np.maximum(cosines(vectors), 0)
    else:
        each_way = np.array([[bm25_score(left, right) for right in texts] for left in texts])
        alike = (each_way + each_way.T) / 2
    alpha = 0.4 if variant == "hrsim" else 0.0
    to_query = np.array([bm25_score(text, question) for text in texts]) if alpha else np.zeros(len(texts))
    edges = np.maximum(alike - alpha * (to_query[:, None] + to_query[None, :]), 0)
    edges[edges < 1e-9] = 0
    np.fill_diagonal(edges, 0)
    ranks = networkx.pagerank(networkx.from_numpy_array(edges), alpha=0.85, tol=1e-12, max_iter=1000)
    return sorted(range(len(texts)), key=lambda i: (-round(ranks[i], 9), i))[:keep]


# RAGDefender, by its authors' package


def ragdefender(texts: Sequence[str], vectors: Matrix, hops: str) -> list[int]:
    """The kept positions by the package `ragdefender` 0.2.0."""
    import torch
    from ragdefender.grouping.clustering import ClusteringBasedGrouping
    from ragdefender.grouping.concentration import ConcentrationBasedGrouping
    from ragdefender.identification.topk import IdentifyAdversarial

    tensor = torch.from_numpy(np.asarray(vectors, np.float32))
    stage = {"single": ClusteringBasedGrouping, "multi": ConcentrationBasedGrouping}[hops](embedder=None)
    count = stage.estimate_n_adv(list(texts), embeddings=tensor)
    dropped = set(IdentifyAdversarial(embedder=None).select(list(texts), count, embeddings=tensor))
    return [i for i in range(len(texts)) if i not in dropped]


# TrustRAG (HuichiZhou/TrustRAG, `k_mean_filtering`), with scikit-learn and rouge-score


@cache
def overlaps(texts: tuple[str, ...]) -> Matrix:
    """ROUGE-L F1 of each pair."""
    from rouge_score.rouge_scorer import RougeScorer

    rouge = RougeScorer(["rougeL"], use_stemmer=True)
    shared = np.eye(len(texts))
    for i, j in combinations(range(len(texts)), 2):
        shared[i, j] = shared[j, i] = rouge.score(texts[i], texts[j])["rougeL"].fmeasure
    return shared


def trustrag(texts: Sequence[str], vectors: Matrix, *, gate: bool = True) -> list[int]:
    """Stage 1: `removal_method=kmeans_ngram`, or `kmeans` without the gate."""
    from sklearn import cluster, preprocessing

    shared = overlaps(tuple(texts))
    pairs = list(combinations(range(len(texts)), 2))
    if gate and not any(shared[pair] > 0.25 for pair in pairs):
        return list(range(len(texts)))
    points = preprocessing.StandardScaler().fit_transform(np.asarray(vectors, np.float32))
    points = points / np.sqrt((points**2).sum(axis=1))[:, None]
    labels = cluster.KMeans(n_clusters=2, n_init=10, max_iter=500, random_state=0).fit(points).labels_
    zero, one = (np.flatnonzero(labels == label).tolist() for label in (0, 1))
    alike = cosines(vectors)

    def density(group: list[int]) -> float:
        return float(np.mean([alike[pair] for pair in combinations(group, 2)])) if len(group) > 1 else float("nan")

    for alone, group in ((one, zero), (zero, one)):
        if len(alone) == 1:
            if density(group) > 0.88:
                return [] if alike[group[0], alone[0]] > 0.88 else alone
            return group
    dense, loose = (one, zero) if density(one) > density(zero) else (zero, one)
    if density(loose) > 0.88:
        return []
    staying = [one, zero] if density(dense) < 0.88 else [loose]
    return sorted(i for group in staying for i in without_shared_wording(group, shared))


def without_shared_wording(group: Sequence[int], shared: Matrix) -> list[int]:
    """`group_n_gram_filtering`: both of a pair go, and whatever is like the first that went."""
    gone, saved = set[int](), list[int]()
    for place, i in enumerate(group):
        if i in gone:
            continue
        match = next((j for j in group[place + 1 :] if shared[i, j] > 0.25), None)
        if match is not None:
            gone |= {i, match}
            saved.append(i)
        if saved and shared[i, saved[0]] > 0.25:
            gone.add(i)
    return [i for i in group if i not in gone]


# RADAR (Etherealllllll/RADAR_code), with networkx


class Models(NamedTuple):
    """What RADAR asks. `synthesize` and `answer` get the texts that the prompt shows."""

    read: Callable[[str], str]
    judge: Judge
    encode: Callable[[Sequence[str]], Matrix]
    synthesize: Callable[[Sequence[str]], str]
    answer: Callable[[Sequence[str]], str]


def radar(question: str, texts: Sequence[str], models: Models) -> tuple[list[int], str]:
    """`MinCutRRAG.query`: the selected positions and the final answer."""
    replies = [models.read(text) for text in texts]
    valid = [i for i, reply in enumerate(replies) if IGNORANT not in reply]
    if not valid:
        return [], models.answer(texts)
    said = [replies[i] for i in valid]
    agree, conflict = _matrices(question, said, models.judge)
    support, against = _capacities(agree, conflict, valid, len(texts))
    selected = [valid[m] for m in _selected(support, against, agree, said, models.encode)]
    return selected, models.answer([texts[i] for i in selected])


class Memory(NamedTuple):
    """What `dynamic_query` hands to the next step."""

    answer: str
    support: float
    conflict: float


def radar_step(question: str, texts: Sequence[str], memory: Memory | None, models: Models) -> Memory:
    """`DynamicMinCutRRAG.dynamic_query`."""
    previous, priors = (None, (1.0, 0.0)) if memory is None else (memory.answer, memory[1:])
    said, shown, valid = list[str](), list[str](), list[int]()
    for i, text in enumerate(texts):
        reply = models.read(text)
        if IGNORANT not in reply:
            said.append(reply)
            shown.append(text)
            valid.append(i)
    remembered = bool(previous) and IGNORANT not in str(previous)
    if remembered:
        said.append(str(previous))
        shown.append(f"Previous reliable conclusion: {previous}")
        valid.append(len(texts))
    if not said:
        return Memory(models.answer(texts), *priors)
    agree, conflict = _matrices(question, said, models.judge)
    support, against = _capacities(agree, conflict, valid, len(texts) + (1 if previous else 0))
    if remembered:
        likely = (agree[-1, :-1].mean(), conflict[-1, :-1].mean()) if len(said) > 1 else (1.0, 0.0)
        support[-1], against[-1] = (_bayes(prior, one) for prior, one in zip(priors, likely, strict=True))
    chosen = _selected(support, against, agree, said, models.encode)
    final = models.synthesize([said[m] for m in chosen] or shown)
    agree, conflict = _matrices(question, [*said, final], models.judge)
    return Memory(final, float(agree[-1, :-1].mean()), float(conflict[-1, :-1].mean()))


def _matrices(question: str, said: Sequence[str], judge: Judge) -> tuple[Matrix, Matrix]:
    agree, conflict = np.eye(len(said)), np.zeros((len(said), len(said)))
    statements = [f"Question: {question} Answer: {one}" for one in said]
    for i, j in combinations(range(len(said)), 2):
        if IGNORANT in said[i] or IGNORANT in said[j]:
            continue
        there, back = judge(statements[i], statements[j]), judge(statements[j], statements[i])
        conflict[i, j] = conflict[j, i] = np.sqrt(there[2] * back[2])
        agree[i, j] = agree[j, i] = 0.0 if conflict[i, j] > 0.8 else np.sqrt(there[0] * back[0])
    return agree, conflict


def _capacities(agree: Matrix, conflict: Matrix, ranks: Sequence[int], places: int) -> tuple[Matrix, Matrix]:
    """`compute_scores_balanced`: S and F, rescaled and clipped."""
    count = len(ranks)
    if count == 1:
        return np.array([0.9]), np.array([0.1])
    v = np.ones(count) / count
    for _ in range(10):
        v = (agree + np.eye(count) * 0.01) @ v
        v /= np.linalg.norm(v) + 1e-8
    v = np.round(v, 12)  # without it the machine's rounding is all that tells equal centralities apart
    central = (v - v.min()) / (v.max() - v.min() + 1e-8)
    decay = np.exp(-np.array(ranks) / places)
    against = np.array(
        [
            sum(conflict[i, j] * central[j] for j in range(count) if j != i) / (central.sum() - central[i] + 1e-8)
            for i in range(count)
        ]
    )
    return _rescaled((central + 1e-8) * decay), _rescaled(against)


def _rescaled(values: Matrix) -> Matrix:
    if np.ptp(values) < 1e-12:
        return np.full(len(values), 0.5)
    return np.clip((values - values.min()) / (np.ptp(values) + 1e-12), 0.01, 0.99)


def _bayes(prior: float, likelihood: float) -> float:
    prior = float(np.clip(prior, 0.01, 0.99))
    return likelihood * prior / (likelihood * prior + (1 - likelihood) * (1 - prior) + 1e-9)


def _selected(
    support: Matrix, against: Matrix, agree: Matrix, said: Sequence[str], encode: Callable[[Sequence[str]], Matrix]
) -> list[int]:
    """The source side of the cut, without those whose mean cosine to the others is below 0.3."""
    import networkx

    graph = networkx.DiGraph()
    for i in range(len(said)):
        graph.add_edge("source", i, capacity=float(support[i]))
        graph.add_edge(i, "sink", capacity=float(against[i]))
        for j in range(i + 1, len(said)):
            graph.add_edge(i, j, capacity=float(agree[i, j]))
            graph.add_edge(j, i, capacity=float(agree[i, j]))
    reachable = networkx.minimum_cut(graph, "source", "sink")[1][0]
    chosen = sorted(node for node in reachable if isinstance(node, int))
    if len(chosen) < 2:
        return chosen
    alike = cosines(encode([said[i] for i in chosen]))
    means = (alike.sum(axis=1) - np.diag(alike)) / (len(chosen) - 1)
    return [i for i, mean in zip(chosen, means, strict=True) if mean >= 0.3]
