"""The published procedures, written for reading: one step after the other, by the libraries that the papers used.

They measure what the package saves, and check it: written apart from it, they must come to the same decisions. They
need the packages of the parity group.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb, exp, log
from re import findall
from statistics import fmean, median_low

import numpy as np
from numpy.typing import NDArray

__all__ = ["bm25_by_hand", "bm25_by_index", "grada", "radar_cut", "ragdefender_multi", "ragdefender_single", "trustrag"]

Vectors = NDArray[np.floating]
Matrix = NDArray[np.float64]

LUCENE_STOP_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
    "this to was will with"
)

logging.getLogger("bm25s").disabled = True  # it reports every index that is built


def bm25_by_hand(query: str, document: str) -> float:
    """BM25 where the document is the whole collection, so that one idf and one length hold for all tokens."""
    held = Counter(_words(document))
    return sum(log(1 + 0.5 / 1.5) * held[word] / (held[word] + 1.5) for word in _words(query))


def _words(text: str) -> list[str]:
    stop_words = LUCENE_STOP_WORDS.split()
    return [word for word in findall(r"\b\w\w+\b", text.lower()) if word not in stop_words]


def bm25_by_index(query: str, document: str) -> float:
    """The same as the published code has it: an index of bm25s for the one document."""
    import bm25s

    asked = bm25s.tokenize(query, show_progress=False, return_ids=False)[0]
    held = bm25s.tokenize(document, show_progress=False, return_ids=False)
    if not asked or not held[0]:
        return 0.0
    index = bm25s.BM25()
    index.index(held, show_progress=False)
    return float(index.get_scores(asked)[0])


def grada(
    question: str,
    texts: Sequence[str],
    *,
    alpha: float = 0.4,
    keep: int = 5,
    bm25: Callable[[str, str], float] = bm25_by_index,
) -> list[int]:
    """GRADA with HRSIM (`alpha` 0: with BM25 alone): the kept positions, best first."""
    import networkx

    to_question = [bm25(text, question) for text in texts]
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(texts)))
    for i, j in combinations(range(len(texts)), 2):
        alike = (bm25(texts[i], texts[j]) + bm25(texts[j], texts[i])) / 2
        weight = alike - alpha * (to_question[i] + to_question[j])
        if weight > 1e-12:  # not what rounding leaves of 0
            graph.add_edge(i, j, weight=weight)
    if not graph.edges:
        return list(range(len(texts)))[:keep]
    scores = networkx.pagerank(graph, alpha=0.85, tol=1e-13, max_iter=1000)
    return sorted(scores, key=lambda i: (-round(scores[i], 10), i))[:keep]


def ragdefender_single(texts: Sequence[str], vectors: Vectors) -> list[int]:
    """RAGDefender for single-hop questions: the kept positions."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.feature_extraction.text import TfidfVectorizer

    labels = AgglomerativeClustering(n_clusters=2, linkage="ward").fit_predict(vectors)
    smaller = min(Counter(labels.tolist()).values())
    vectoriser = TfidfVectorizer(stop_words="english")
    sums = np.asarray(vectoriser.fit_transform(texts).sum(axis=0)).ravel()
    weight = dict(zip(vectoriser.get_feature_names_out(), sums))
    heaviest = sorted(weight, key=lambda term: (-round(weight[term], 10), term))[:5]
    analyse = vectoriser.build_analyzer()
    votes = sum(sum(term in set(analyse(text)) for term in heaviest) > 5 / 2 for text in texts)
    adversarial = len(texts) - smaller if votes > len(texts) / 2 else smaller
    return _without_the_most_alike(vectors, adversarial)


def ragdefender_multi(texts: Sequence[str], vectors: Vectors) -> list[int]:
    """RAGDefender for multi-hop questions, counting as its published code does: the kept positions."""
    del texts
    alike = _cosines(vectors)
    k = len(alike)
    means, medians = [fmean(row) for row in alike], [median_low(row) for row in alike]
    mean_bar, median_bar = fmean(means), median_low(medians)
    bar = (mean_bar + median_bar) / 2
    adversarial = sum(mean > mean_bar or median > bar for mean, median in zip(means, medians))
    if adversarial == 0 or mean_bar >= median_bar:
        adversarial = k - adversarial
    return _without_the_most_alike(vectors, adversarial if adversarial < k else 0)


def _without_the_most_alike(vectors: Vectors, count: int) -> list[int]:
    alike = _cosines(vectors)
    pairs = sorted(combinations(range(len(alike)), 2), key=lambda pair: (-round(alike[pair[0]][pair[1]], 12), pair))
    score = dict.fromkeys(range(len(alike)), 0.0)
    for i, j in pairs[: max(1, comb(count, 2))]:
        gain = alike[i][j] * abs(alike[i][j])
        score[i] += gain
        score[j] += gain
    suspects = sorted(score, key=lambda i: (-round(score[i], 12), i))[:count]
    return [i for i in range(len(alike)) if i not in suspects]


def trustrag(texts: Sequence[str], vectors: Vectors, *, starts: int = 10) -> list[int]:
    """Stage 1 of TrustRAG as the paper describes it, K-means from `starts` random starts: the kept positions."""
    from rouge_score.rouge_scorer import RougeScorer
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import StandardScaler, normalize

    points = normalize(StandardScaler().fit_transform(np.asarray(vectors, float)))
    labels = KMeans(n_clusters=2, n_init=starts, max_iter=500, random_state=0).fit_predict(points)
    alike = _cosines(vectors)
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    members = [[i for i in range(len(texts)) if labels[i] == label] for label in (0, 1)]
    malicious = []
    for cluster in members:
        pairs = list(combinations(cluster, 2))
        malicious.append(
            bool(pairs)
            and fmean(alike[i][j] for i, j in pairs) >= 0.85
            and fmean(scorer.score(texts[i], texts[j])["rougeL"].fmeasure for i, j in pairs) > 0.25
        )
    dropped: set[int] = set()
    for cluster, other, bad, other_bad in zip(members, members[::-1], malicious, malicious[::-1]):
        lone_and_close = len(cluster) == 1 and other_bad and fmean(alike[cluster[0]][j] for j in other) >= 0.85
        if bad or lone_and_close:
            dropped.update(cluster)
    return [i for i in range(len(texts)) if i not in dropped]


def _cosines(vectors: Vectors) -> list[list[float]]:
    from sklearn.metrics.pairwise import cosine_similarity

    found: list[list[float]] = cosine_similarity(np.asarray(vectors, float)).tolist()
    return found


def radar_cut(agreement: Matrix, conflict: Matrix) -> list[int]:
    """RADAR's centrality, support, conflict and minimum cut: the trusted positions."""
    import networkx

    k = len(agreement)
    rows = (agreement + 0.01 * np.eye(k)).tolist()
    central = [1 / k] * k
    for _ in range(10):
        central = [sum(weight * value for weight, value in zip(row, central)) for row in rows]
        length = sum(value * value for value in central) ** 0.5
        central = [value / (length + 1e-8) for value in central]
    low, high = min(central), max(central)
    central = [(value - low) / (high - low + 1e-8) for value in central]
    graph = networkx.DiGraph()
    for i in range(k):
        others = [j for j in range(k) if j != i]
        against = sum(conflict[i, j] * central[j] for j in others) / sum(central[j] for j in others)
        graph.add_edge("source", i, capacity=central[i] * exp(-(i + 1) / k))
        graph.add_edge(i, "sink", capacity=against)
        for j in others:
            graph.add_edge(i, j, capacity=agreement[i, j])
    _, (trusted, _) = networkx.minimum_cut(graph, "source", "sink")
    return sorted(trusted - {"source"})
