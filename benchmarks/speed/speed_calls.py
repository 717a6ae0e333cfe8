"""Whole answers against a server on this machine that takes 200 ms for every reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.speed.inputs import Case
from benchmarks.speed.latency import LATENCY, LIMITS, serving
from benchmarks.speed.timing import Results, measure
from unpoison import Radar, TrustRag
from unpoison.models import OpenAIGenerator

__all__ = ["LATENCY", "measure_answers"]


def measure_answers(results: Results, inputs: Mapping[int, Sequence[Case]], only: str, seconds: float) -> list[str]:
    """RADAR and TrustRAG from question to answer."""
    rows = []
    with serving() as url:
        model = OpenAIGenerator(f"answers/{LATENCY}", f"{url}/v1")
        defenses: dict[str, Radar | TrustRag] = {
            "RADAR, answer": Radar(model, limits=LIMITS),
            "TrustRAG, answer": TrustRag(model, limits=LIMITS),
        }
        for name, defense in defenses.items():
            if only in name.lower():
                contenders = {"unpoison": lambda case, d=defense: d.answer(case.question, list(case.texts))}
                measure(results, name, contenders, inputs, seconds, growth=0)
                rows.append(name)
    return rows
