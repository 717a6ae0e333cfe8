"""Our decisions beside those of `naive.py`, on made cases."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from benchmarks.speed import naive
from benchmarks.speed.inputs import Case, cases, graph
from unpoison import Grada, Passage, Radar, RagDefender, Screening, TrustRag
from unpoison.algorithms.mincut import min_cut
from unpoison.defenses.base import Defense
from unpoison.models import ScriptedGenerator

__all__ = ["disagreements"]

SIZES = (3, 5, 10, 20)

STARTS = 50
"""Of K-means: ten random starts, as published, miss the best clusters now and then; ours are always the best."""


def disagreements(seeds: Iterable[int] = range(5)) -> list[str]:
    """One line for every case that unpoison and the naive procedures decide differently."""
    found = []
    for seed in seeds:
        for k in SIZES:
            for poisons in (0, 1, k // 2):
                (case,) = cases(k, 1, poisons=poisons, seed=seed)
                where = f"k = {k}, poisons = {poisons}, seed = {seed}"
                found += [
                    f"{name}, {where}: {ours} and {theirs}" for name, ours, theirs in _both(case) if ours != theirs
                ]
            ours, theirs = _cuts(k, seed)
            if ours != theirs:
                found.append(f"RADAR's cut, k = {k}, seed = {seed}: {ours} and {theirs}")
    return found


def _both(case: Case) -> Iterable[tuple[str, list[int], list[int]]]:
    texts, vectors = case.texts, case.vectors
    by_hand, by_index = naive.bm25_by_hand, naive.bm25_by_index
    yield "GRADA HRSIM", _kept(Grada(), case), naive.grada(case.question, texts, bm25=by_hand)
    yield "GRADA BM25", _kept(Grada("bm25"), case), naive.grada(case.question, texts, alpha=0, bm25=by_index)
    yield "RAGDefender single-hop", _kept(RagDefender(), case), naive.ragdefender_single(texts, vectors)
    yield "RAGDefender multi-hop", _kept(RagDefender("multi"), case), naive.ragdefender_multi(texts, vectors)
    yield "TrustRAG stage 1", _kept(TrustRag(stages=1), case), naive.trustrag(texts, vectors, starts=STARTS)


def _kept(defense: Defense, case: Case) -> list[int]:
    passages = [Passage(text, embedding=vector) for text, vector in zip(case.texts, case.vectors)]
    screening: Screening = defense.screen(case.question, passages)
    return list(screening.kept_indices)


def _cuts(k: int, seed: int) -> tuple[list[int], list[int]]:
    ties = graph(k, seed=seed)
    made = Radar(ScriptedGenerator(""))._graph(ties.agreement, ties.conflict, np.arange(k), k)
    ours = np.flatnonzero(min_cut(made.source, made.sink, made.agreement)).tolist()
    return ours, naive.radar_cut(ties.agreement, ties.conflict)
