"""The scripts that measure costs and perplexities: what they count, and that the papers' numbers are the papers'."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest

from unpoison.bench.evaluation import load
from unpoison.core.registry import names, parse
from unpoison.models import FakeLanguageModel, ScriptedGenerator
from unpoison.models.prompts import Prompt

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
import costs
import perplexity


def test_what_passes_to_a_model_is_counted() -> None:
    counted = costs.Counted(ScriptedGenerator("three words here"))
    prompt = Prompt("free", "say something", "to me")
    counted.generate(prompt)
    counted.generate(prompt)
    assert (counted.calls, counted.replied) == (2, 6)
    assert counted.asked == 2 * len(prompt.text().split())


def test_every_defense_of_the_table_exists_and_is_written_in_its_row() -> None:
    assert {parse(spec)[0] for spec in costs.DEFENSES} <= set(names("defenses"))
    numbers = {"calls": 1.0, "asked": 5.0, "replied": 2.0, "seconds": 0.5, "processor": 0.1, "screening": None}
    assert costs.row("radar", {**numbers, "memory": 3.0, "gpu": None}) == (
        "| radar | 1.0 | 5 | 2.0 | 0.5000 | 0.1000 | - | 3 | - |"
    )


def test_published_costs_are_the_papers() -> None:
    """Spot checks by hand against the papers' tables."""
    lines = list(costs.published())
    assert "| GRADA, Table 4 | grada | GPT-3.5-Turbo | s per question, wall | 1.05 | 0.05 | - |" in lines
    assert "| RAGDefender, Table 3 | discern | FiD | MB of a GPU | 4,742 | - | - |" in lines
    assert "| TrustRAG, Table 3 | robustrag | Llama 3.1 8B | s for 100 questions, NQ | 107.7 | - | 11 |" in lines
    assert "| RADAR, Table 8 | radar | DeepSeek | s per question, wall, k = 10 | 21 | - | - |" in lines


def test_perplexities_are_grouped_by_attack_and_compared_with_the_clean_texts() -> None:
    groups = perplexity.texts(load("sample").examples[:3])
    assert next(iter(groups)) == "clean"
    assert len(groups) > 1
    assert all(len(set(members)) == len(members) for members in groups.values())
    assert perplexity.measured(groups["clean"], FakeLanguageModel()).shape == (len(groups["clean"]),)
    clean, soup = np.array([10.0, 20.0, 30.0]), np.array([100.0, 200.0])
    _, _, first, second = perplexity.table({"clean": clean, "soup": soup})
    assert first == "| clean | 3 | 11.0 | 15.0 | 20.0 | 25.0 | 29.0 | - |"
    assert second.endswith("| 1.000 |")
    _, _, _, same = perplexity.table({"clean": clean, "same": clean})
    assert same.endswith("| 0.500 |")


def test_a_group_without_texts_has_no_figures() -> None:
    _, _, only = perplexity.table({"clean": np.zeros(0)})
    assert only.startswith("| clean | 0 | - |")


@pytest.mark.parametrize("spec", ["vanilla", "grada"])
def test_a_defense_is_measured_on_the_sample(spec: str) -> None:
    given = argparse.Namespace(data="sample", limit=2, generator="extractive", encoder="lexical")
    costs_found = costs.costs(spec, given)
    assert costs_found["calls"] == 1
    assert costs_found["screening"] is not None
    assert 0 <= costs_found["screening"] <= (costs_found["seconds"] or 0)
