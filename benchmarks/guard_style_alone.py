"""How far style alone tells invented claims from other texts: single texts, no question, no neighbours.

    python benchmarks/guard_style_alone.py ../shared/data

Fitted on the training's texts, all or without one attack; measured on questions that were not fitted. "Found" is the
share of the poison above the score that 5 % of the same set's clean passages reach.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from guard_data import PUBLISHED, Sample, measured_samples, training_samples
from guard_style import styled
from unpoison.defenses.guard.model import GuardModel
from unpoison.kernels.style import Style, known_to, resemblance, runs
from unpoison.kernels.tokenized import tokenize

TARGETS = (
    ("nq_large", "poisonedrag-revprag"),
    *(("msmarco", attack) for attack in ("poisonedrag", "tan", "paraphrase", "synonym")),
    *((domain, "radar-incorrect-context") for domain in ("realtimeqa", "biogen")),
)
LOST = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    training = [s for s in training_samples(arguments.folder) if s.attack != "garag"]
    measured = measured_samples(arguments.folder)
    names = [f"{attack}, {domain}" for domain, attack in TARGETS]
    print(f"| style fitted on | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for left_out in (None, *PUBLISHED[:-1]):
        style = GuardModel.style_of(styled([s for s in training if s.attack != left_out]))
        cells = [told_apart(style, *texts(measured, domain, attack)) for domain, attack in TARGETS]
        print(f"| {'all' if left_out is None else f'all but {left_out}'} | {' | '.join(cells)} |", flush=True)


def texts(samples: Sequence[Sample], domain: str, attack: str) -> tuple[list[str], list[str]]:
    """Distinct poison of an attack and distinct clean passages of the same set."""
    inside = [s for s in samples if s.domain == domain]
    poison = {t for s in inside if s.attack == attack for t, p in zip(s.texts, s.poison) if p}
    return sorted(poison), sorted({t for s in inside for t, p in zip(s.texts, s.poison) if not p})


def told_apart(style: Style, poison: list[str], clean: list[str]) -> str:
    """Share found at 5 % of the clean lost, and the area under the curve."""
    scores = [scored(style, found) for found in (poison, clean)]
    found = np.mean(scores[0] > np.quantile(scores[1], 1 - LOST))
    area = roc_auc_score([1] * len(poison) + [0] * len(clean), np.concatenate(scores))
    return f"{100 * found:.0f} ({area:.3f})"


def scored(style: Style, found: Sequence[str]) -> np.ndarray:
    tokenized = tokenize(found)
    known = known_to(style, runs(tokenized))
    return resemblance(style, known.code, tokenized.sentence_owner[known.sentence], len(found))


if __name__ == "__main__":
    main()
