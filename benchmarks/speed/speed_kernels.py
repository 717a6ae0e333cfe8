"""Each kernel alone, beside what the libraries that the papers used take for the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed import naive
from benchmarks.speed.inputs import Case, graph
from benchmarks.speed.speed_defenses import needed
from benchmarks.speed.timing import Results, measure
from unpoison.algorithms.bm25 import bm25
from unpoison.algorithms.centrality import eigenvector_centrality, pagerank
from unpoison.algorithms.clusters import agglomerative, two_means
from unpoison.algorithms.concentration import concentration, tfidf, top_pair_frequency, top_terms
from unpoison.algorithms.cosine import cosine
from unpoison.algorithms.mincut import min_cut
from unpoison.text.rouge import rouge_l
from unpoison.text.tokens import ENGLISH_33, stems, words

__all__ = ["KERNELS", "measure_kernels"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the kernels take, made beforehand."""

    texts: list[str]
    tokens: list[list[str]]
    vectors: NDArray[np.float32]
    similarity: NDArray[np.float64]
    weights: NDArray[np.float64]
    pulls: tuple[NDArray[np.float64], NDArray[np.float64]]
    agreement: NDArray[np.float64]


def _prepared(case: Case) -> Prepared:
    tokens = [words(text, ENGLISH_33) for text in case.texts]
    weights = bm25(tokens, tokens)
    np.fill_diagonal(weights, 0)
    k = len(tokens)
    ties = graph(k)
    support = eigenvector_centrality(ties.agreement) * np.exp(-np.arange(1, k + 1) / k)
    return Prepared(
        list(case.texts),
        tokens,
        case.vectors,
        cosine(case.vectors),
        weights + weights.T,
        (support, ties.conflict.mean(axis=1)),
        ties.agreement,
    )


KERNELS: dict[str, Callable[[Prepared], object]] = {
    "words": lambda p: [words(text, ENGLISH_33) for text in p.texts],
    "stems": lambda p: [stems(text) for text in p.texts],
    "bm25, single": lambda p: bm25(p.tokens, p.tokens),
    "bm25, candidates": lambda p: bm25(p.tokens, p.tokens, statistics="candidates"),
    "cosine": lambda p: cosine(p.vectors),
    "rouge_l": lambda p: rouge_l(p.texts),
    "tfidf": lambda p: tfidf(p.tokens),
    "top_terms": lambda p: top_terms(p.tokens, 5),
    "pagerank": lambda p: pagerank(p.weights),
    "agglomerative": lambda p: agglomerative(p.vectors),
    "two_means": lambda p: two_means(p.vectors),
    "concentration": lambda p: concentration(p.similarity, "reference"),
    "top_pair_frequency": lambda p: top_pair_frequency(p.similarity, len(p.texts) // 2),
    "eigenvector_centrality": lambda p: eigenvector_centrality(p.agreement),
    "min_cut": lambda p: min_cut(*p.pulls, p.agreement),
}


def _libraries() -> dict[str, dict[str, Callable[[Prepared], Any]]]:
    found: dict[str, dict[str, Callable[[Prepared], Any]]] = {}
    if needed("bm25s"):
        found["bm25, single"] = {
            "bm25s": lambda p: [naive.bm25_by_index(left, right) for left in p.texts for right in p.texts]
        }
    if needed("rouge_score"):
        from rouge_score.rouge_scorer import RougeScorer

        rouge = RougeScorer(["rougeL"], use_stemmer=True)
        found["rouge_l"] = {"rouge-score": lambda p: [rouge.score(*pair) for pair in combinations(p.texts, 2)]}
    if needed("networkx"):
        import networkx

        found["pagerank"] = {"networkx": lambda p: networkx.pagerank(networkx.from_numpy_array(p.weights))}
    if needed("sklearn"):
        from sklearn.cluster import AgglomerativeClustering, KMeans
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.metrics.pairwise import cosine_similarity

        found["cosine"] = {"scikit-learn": lambda p: cosine_similarity(p.vectors)}
        found["tfidf"] = {"scikit-learn": lambda p: TfidfVectorizer().fit_transform(p.texts)}
        found["agglomerative"] = {"scikit-learn": lambda p: AgglomerativeClustering(2).fit_predict(p.vectors)}
        found["two_means"] = {"scikit-learn": lambda p: KMeans(2, n_init=10, random_state=0).fit_predict(p.vectors)}
    return found


def measure_kernels(results: Results, inputs: Mapping[int, Sequence[Case]], only: str, seconds: float) -> list[str]:
    prepared = {k: [_prepared(case) for case in found] for k, found in inputs.items()}
    libraries = _libraries()
    rows = [name for name in KERNELS if only in name]
    for name in rows:
        contenders = {"unpoison": KERNELS[name], **libraries.get(name, {})}
        measure(results, name, contenders, prepared, seconds)
    return rows
