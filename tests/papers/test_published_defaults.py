"""Every default is the one that its paper, or where the paper is silent its released code, gives.

The numbers stand here a second time, on purpose: two thresholds that are taken for each other fail a test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unpoison import Grada, Passage, Radar, RagDefender, TrustRag
from unpoison.core.registry import create
from unpoison.defenses.robustrag import RobustRag
from unpoison.defenses.robustrag_decoding import RobustRagDecoding
from unpoison.models import FakeNLI, ScriptedGenerator
from unpoison_lab.attacks.adversarial_decoding import AdversarialDecoding
from unpoison_lab.attacks.garag import Garag
from unpoison_lab.attacks.hotflip import HotFlip
from unpoison_lab.attacks.jamming import Jamming
from unpoison_lab.attacks.phantom import Phantom
from unpoison_lab.attacks.poisonedrag import PoisonedRag
from unpoison_lab.baselines.perplexity import Perplexity
from unpoison_lab.baselines.reliabilityrag import ReliabilityRag, SampledReliabilityRag

SILENT = ScriptedGenerator(lambda prompt: "I don't know")

PUBLISHED: list[Any] = [
    # GRADA, Section 4.1: M = 10 passages to n = 5, penalty 0.4, damping 0.85.
    ("grada", {}, {"variant": "hrsim", "alpha": 0.4, "damping": 0.85, "keep": 5, "start": "uniform"}),
    # RAGDefender, Section 5.1 and Appendix: m = 5 terms, exponent p = 2, Ward linkage.
    ("ragdefender-ablation", {}, {"terms": 5, "exponent": 2.0, "linkage": "ward", "clustering": "agglomerative",
                         "rule": "reference", "hops": "single", "eps": 0.5, "min_samples": 5}),
    # TrustRAG, implementation details: cosine 0.85 and ROUGE-L 0.25; its released code has 0.88.
    ("trustrag", {}, {"threshold": 0.85, "overlap": 0.25, "stages": 2}),
    pytest.param("trustrag", {"mode": "reference"}, {"threshold": 0.88, "overlap": 0.25},
                 marks=pytest.mark.needs("sklearn", "nltk")),
    # RADAR: answers below a mean cosine of 0.3 are outliers; its code cuts agreement at a contradiction of 0.8.
    ("radar", {"generator": SILENT}, {"outlier": 0.3, "contradiction_cut": 1.0, "fallback": "previous",
                                      "lenient_below": 0}),
    ("radar", {"generator": SILENT, "mode": "reference"}, {"outlier": 0.3, "contradiction_cut": 0.8}),
    # RobustRAG: alpha 0.3 and beta 3 for short answers, 0.4 and 4 for long ones.
    ("robustrag", {"generator": SILENT}, {"alpha": 0.3, "beta": 3.0, "gamma": 1.0, "least": 1}),
    ("robustrag", {"generator": SILENT, "form": "long"}, {"alpha": 0.4, "beta": 4.0}),
    # ReliabilityRAG: an edge from a contradiction of 0.5 on; T = 20 samples of m = 2, gamma 0.9.
    ("reliabilityrag", {"generator": SILENT}, {"contradiction": 0.5}),
    ("reliabilityrag-sampled", {"generator": SILENT}, {"samples": 20, "size": 2, "gamma": 0.9, "contradiction": 0.5}),
    # MADAM-RAG: at most three rounds. Discern-and-Answer: perturbed from one half on.
    ("madam", {"generator": SILENT}, {"rounds": 3}),
]  # fmt: skip

CRAFTED: list[tuple[type, dict[str, Any]]] = [
    # PoisonedRAG: L = 50 trials for a text of V = 30 words, the question in front.
    (PoisonedRag, {"trials": 50, "words": 30, "prefix": True}),
    # Its white-box form: 30 steps, 100 candidates, dot product, 128 tokens.
    (HotFlip, {"iterations": 30, "candidates": 100, "similarity": "dot", "max_tokens": 128}),
    # GARAG: a fifth of the words, 25 individuals, 25 generations, crossover 0.2, mutation 0.4, 10 parents.
    (Garag, {"share": 0.2, "population": 25, "iterations": 25, "crossover": 0.2, "mutation": 0.4, "parents": 10}),
    (Phantom, {"iterations": 30, "candidates": 100, "length": 30}),
    # Jamming: 50 tokens, 32 candidates a step, 100 steps without gain.
    (Jamming, {"tokens": 50, "candidates": 32, "patience": 100}),
    # Adversarial decoding: ten beams of ten tokens.
    (AdversarialDecoding, {"beams": 10, "top_k": 10, "top_p": 1.0}),
]


@pytest.mark.parametrize(("name", "options", "published"), PUBLISHED, ids=lambda value: str(value)[:40])
def test_a_defense_as_it_comes_is_the_papers(name: str, options: dict[str, Any], published: dict[str, Any]) -> None:
    defense = create("defenses", name, **options)
    assert {option: getattr(defense, option) for option in published} == published


def test_token_by_token_aggregation_is_the_papers() -> None:
    import inspect

    given = {name: parameter.default for name, parameter in inspect.signature(RobustRagDecoding).parameters.items()}
    assert (given["eta"], given["temperature"], given["refusal"]) == (0.0, 1.0, 0.99)


@pytest.mark.parametrize(("attack", "published"), CRAFTED, ids=lambda value: getattr(value, "__name__", ""))
def test_an_attack_as_it_comes_is_the_papers(attack: type, published: dict[str, Any]) -> None:
    import inspect

    given = inspect.signature(attack).parameters
    assert {option: given[option].default for option in published} == published


def dense(cosine: float, count: int = 3) -> list[Passage]:
    """`count` texts of the same words whose embeddings have this cosine to each other, and two of other matters."""
    square = np.eye(count + 2)
    square[:count, :count] += cosine * (1 - np.eye(count))
    vectors = np.linalg.cholesky(square)
    texts = [f"the sharks play at the stadium in santa clara {word}" for word in ("now", "today", "again")[:count]]
    others = ["bread is baked of flour", "copper conducts electricity"]
    return [Passage(text, embedding=vector) for text, vector in zip([*texts, *others], vectors, strict=True)]


@pytest.mark.needs("sklearn", "nltk")
@pytest.mark.parametrize(("cosine", "paper", "reference"), [(0.84, 0, 0), (0.865, 3, 0), (0.9, 3, 3)])
def test_trustrags_two_thresholds_are_not_swapped(cosine: float, paper: int, reference: int) -> None:
    passages = dense(cosine)
    assert len(TrustRag(stages=1).screen("q", passages).dropped) == paper
    dropped = TrustRag(stages=1, mode="reference").screen("q", passages).dropped_indices
    assert (set(dropped) >= {0, 1, 2}) is (reference == 3) or reference == 0


def test_the_names_are_those_of_the_registry() -> None:
    kinds = {
        "grada": Grada, "ragdefender": RagDefender, "trustrag": TrustRag, "radar": Radar, "robustrag": RobustRag,
        "reliabilityrag": ReliabilityRag, "reliabilityrag-sampled": SampledReliabilityRag,
    }  # fmt: skip
    for name, kind in kinds.items():
        options = {} if name in ("grada", "ragdefender", "trustrag") else {"generator": SILENT}
        assert type(create("defenses", name, **options)) is kind
    assert Perplexity.name == "perplexity"


@pytest.mark.parametrize(("contradiction", "kept"), [(0.79, True), (0.81, False)])
def test_radars_released_code_lets_no_agreement_stand_above_a_contradiction_of_eight_tenths(
    contradiction: float, kept: bool
) -> None:
    answers = {"first": "a", "second": "b"}
    generator = ScriptedGenerator(lambda prompt: answers.get(prompt.passages[0], "a") if prompt.passages else "a")
    nli = FakeNLI(lambda premise, hypothesis: (1 - contradiction, 0.0, contradiction))
    for mode in ("paper", "reference"):
        agreement = Radar(generator, nli, mode=mode).screen("q", list(answers)).evidence["agreement"]  # type: ignore[arg-type]
        assert bool(agreement[0, 1] > 0) is (kept or mode == "paper")
