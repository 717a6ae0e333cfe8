"""What Guard says of the built-in questions, number by number: nothing drifts unseen.

`UNPOISON_WRITE_GOLDEN=1 python -m pytest tests/defenses/test_guard_golden.py` writes the file anew, after a refit or a
change that is meant; the difference is then to be read.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from unpoison import Guard
from unpoison.core.registry import create
from unpoison_lab.attacks.base import Target

GOLDEN = Path(__file__).with_name("guard_golden.json")
SAMPLE = Path(__file__).parents[2] / "src" / "unpoison" / "data" / "sample.jsonl"
QUESTIONS = 10


def sets():
    """Ten questions with their passages and two poisons, the second without the question in front."""
    for line in SAMPLE.read_text(encoding="utf-8").splitlines()[:QUESTIONS]:
        row = json.loads(line)
        passages = [p["text"] for p in row["passages"] if p.get("label") != "poison"][:8]
        target = Target(row["id"], row["question"], tuple(row["correct_answers"]), row["incorrect_answers"][0], ())
        attack = create("attacks", "poisonedrag:mode=template,prefix=false", seed=1)
        texts = [poison.text for poison in attack.craft(target, 2)]
        yield row["question"], [f"{row['question']}.{texts[0]}", *passages, texts[1]]


def numbers(values):
    return [float(f"{value:.9g}") for value in values]


def verdicts():
    lines = []
    for question, texts in sets():
        screening = Guard(prompt_injection="keep").screen(question, texts)
        lines.append({
            **{name: numbers(screening.evidence[name]) for name in ("crafted", "gibberish")},
            "codes": [" ".join(verdict.reason.codes) for verdict in screening.verdicts],
        })  # fmt: skip
    return lines


@pytest.mark.seeded
def test_every_number_and_reason_is_what_it_was() -> None:
    lines = verdicts()
    if os.environ.get("UNPOISON_WRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps(lines, indent=0) + "\n", encoding="utf-8")
    expected = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert len(lines) == len(expected) == QUESTIONS
    for now, before in zip(lines, expected, strict=True):
        assert now["codes"] == before["codes"]
        for name in ("crafted", "gibberish"):
            assert now[name] == pytest.approx(before[name], abs=1e-6)
