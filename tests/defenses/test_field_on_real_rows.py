"""Every baseline that needs no checkpoint answers real questions with the extractive reader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unpoison.core import registry
from unpoison.io.rows import Row

FIELD = {
    "robustrag": lambda k: {k + 1},
    "reliabilityrag": lambda k: {k + 1},
    "reliabilityrag-sampled": lambda k: range(2, 22),
    "astuterag": lambda k: {2},
    "astuterag:merged=false": lambda k: {3},
    "instructrag": lambda k: {1},
    "instructrag:extract=call": lambda k: {2},
    "discern": lambda k: {1},
    "madam": lambda k: {2 * k + 1},
    "paraphrase": lambda k: {2},
}


@pytest.mark.shared_data
@pytest.mark.parametrize("spec", FIELD)
def test_ten_passages_of_three_questions(spec: str, shared_data: Path) -> None:
    defense = registry.create("defenses", spec, generator="extractive")
    with (shared_data / "realtimeqa.jsonl").open(encoding="utf-8") as file:
        rows = [Row.of(json.loads(next(file))) for _ in range(3)]
    for row in rows:
        passages = list({passage.text: passage for passage in row.passages}.values())[:10]
        answer = defense.answer(row.query, passages)
        generated = [call for call in answer.calls if call.kind == "generate"]
        assert len(generated) in FIELD[spec](len(passages))
        assert len(answer.screening.verdicts) == len(passages)
        assert answer.text or answer.abstained
