"""Fit Guard's coefficients, and say how it does on questions, data sets and attacks that it was not fitted on.

    python benchmarks/train_guard.py ../shared/data --encoder minilm --output src/unpoison/data/guard-minilm.json

Seven tenths of the questions of the freely licensed sets are fitted, the other three tenths and all other sets are
measured on (`guard_data.py`). The threshold for each level of damage is the highest that any clean data set needs when
the coefficients are fitted without its family.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from embeddings import Embeddings
from guard_data import Sample, training_samples
from unpoison.defenses.guard_model import WIDEST, GuardModel, company, table
from unpoison.kernels.evidence import Signs, signs
from unpoison.kernels.trees import evaluate
from unpoison.models import load_encoder

SEED = 0
FOLDS = 5
DAMAGE = (0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1)
TREES, DEPTH, RATE = 120, 3, 0.1


@dataclass
class Case:
    """A sample with its evidence."""

    sample: Sample
    found: Signs

    @property
    def poison(self) -> np.ndarray:
        return np.array(self.sample.poison)


class Vectors:
    """Embeddings of a sample's passages and question."""

    def __init__(self, spec: str, cache: Path, samples: Sequence[Sample]) -> None:
        self.encoder = load_encoder(spec)
        self.kept = None if getattr(self.encoder, "per_set", False) else Embeddings(self.encoder, cache)
        if self.kept is not None:
            texts = {text for s in samples for text in (s.question, *s.texts)}
            self.kept.add(sorted(texts), lambda done, total: None)

    def __call__(self, sample: Sample) -> tuple[np.ndarray, np.ndarray]:
        if self.kept is None:
            made = self.encoder.encode([*sample.texts, sample.question])
            return made[:-1], made[-1]
        return np.stack([self.kept[text] for text in sample.texts]), self.kept[sample.question]


def cases(samples: Sequence[Sample], vectors: Vectors) -> list[Case]:
    return [Case(s, signs(s.question, s.texts, *vectors(s))) for s in samples]


def fold(question: str) -> int:
    return int.from_bytes(blake2b(question.encode(), digest_size=4).digest(), "little") % FOLDS


def weights(found: Sequence[Case]) -> np.ndarray:
    """Clean and poison weigh the same; among clean passages each domain, among poisons each domain and attack."""
    keys = [(c.sample.domain, c.sample.attack if p else "", p) for c in found for p in c.sample.poison]
    sizes = Counter(keys)
    groups = Counter(p for _, _, p in sizes)
    return len(keys) / 2 * np.array([1 / (sizes[key] * groups[key[2]]) for key in keys])


def fit(found: Sequence[Case], columns: tuple[str, ...]) -> tuple[dict, list[np.ndarray]]:
    """Coefficients, and the cross-fitted sums of the second pass for each case."""
    y = np.concatenate([c.poison for c in found])
    w = weights(found)
    sizes = [len(c.poison) for c in found]
    folds = np.repeat([fold(c.sample.question) for c in found], sizes)
    ends = np.cumsum(sizes)[:-1]

    habits = np.concatenate([c.found.habits for c in found])
    mean, scale = habits.mean(axis=0), habits.std(axis=0) + 1e-6
    deviations = np.clip((habits - mean) / scale, -WIDEST, WIDEST)

    def linear(rows: np.ndarray) -> LogisticRegression:
        return LogisticRegression(C=0.01, max_iter=300).fit(deviations[rows], y[rows], w[rows])

    wording = np.zeros(len(y))
    for one in range(FOLDS):
        wording[folds == one] = linear(folds != one).decision_function(deviations[folds == one])
    rows = np.concatenate([table(c.found, columns, part) for c, part in zip(found, np.split(wording, ends))])
    score = linear(np.ones(len(y), bool))

    sums = cross_fitted(rows, y, w, folds)
    around = np.concatenate([company(part, c.found) for c, part in zip(found, np.split(sums, ends))])
    both = np.hstack([rows, around])
    outcome = cross_fitted(both, y, w, folds)
    calibration = LogisticRegression(C=1e6).fit(outcome[:, None], y, w)
    first, second = boosted(rows, y, w), boosted(both, y, w)
    return {
        "columns": list(columns),
        "wording": {
            "mean": rounded(mean),
            "scale": rounded(scale),
            "weights": rounded(score.coef_[0]),
            "base": float(score.intercept_[0]),
        },
        "first": exported(first),
        "second": exported(second),
        "calibration": {"slope": float(calibration.coef_[0, 0]), "base": float(calibration.intercept_[0])},
    }, np.split(outcome, ends)


def boosted(rows: np.ndarray, y: np.ndarray, w: np.ndarray) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        max_iter=TREES, learning_rate=RATE, max_depth=DEPTH, l2_regularization=5, min_samples_leaf=60, max_bins=64,
        early_stopping=False, random_state=SEED,
    ).fit(rows, y, w)  # fmt: skip


def cross_fitted(rows: np.ndarray, y: np.ndarray, w: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """The sum that a model fitted on the other questions gives each row."""
    sums = np.zeros(len(y))
    for one in range(FOLDS):
        sums[folds == one] = boosted(rows[folds != one], y[folds != one], w[folds != one]).decision_function(
            rows[folds == one]
        )
    return sums


def exported(model: HistGradientBoostingClassifier) -> dict:
    """The trees as full trees of depth 3, breadth first; a leaf above the bottom is repeated below."""
    inner, outer = 2**DEPTH - 1, 2**DEPTH
    made = {"features": [], "thresholds": [], "leaves": [], "base": float(model._baseline_prediction.ravel()[0])}
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        features, thresholds, leaves = [0] * inner, [0.0] * inner, [0.0] * outer
        places = [(0, 0)]
        while places:
            place, index = places.pop()
            node = nodes[index]
            if place >= inner:
                leaves[place - inner] = round(float(node["value"]), 5)
            elif node["is_leaf"]:
                places += [(2 * place + 1, index), (2 * place + 2, index)]
            else:
                features[place] = int(node["feature_idx"])
                thresholds[place] = float(f"{node['num_threshold']:.7g}")
                places += [(2 * place + 1, int(node["left"])), (2 * place + 2, int(node["right"]))]
        for name, values in (("features", features), ("thresholds", thresholds), ("leaves", leaves)):
            made[name].append(values)
    return made


def rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def thresholds(found: Sequence[Case], sums: Sequence[np.ndarray], calibration: dict) -> list[float]:
    """For each level of damage the highest probability that any clean data set needs."""
    by = defaultdict(list)
    for case, part in zip(found, sums):
        if not case.poison.any():
            by[case.sample.domain].append(part)
    needed = [max(np.quantile(np.concatenate(parts), 1 - share) for parts in by.values()) for share in DAMAGE]
    values = 1 / (1 + np.exp(-(calibration["slope"] * np.array(needed) + calibration["base"])))
    return [round(float(value), 5) for value in values]


FAMILIES = {"nq": ("nq_poisoned", "nq_large_poisoned", "nq_retrieved"), "hotpotqa": ("hotpotqa",),
            "timeqa": ("timeqa",), "ramdocs": ("ramdocs",)}  # fmt: skip
"""Data sets by where their passages come from, and how the names of their domains begin."""


def foreign_thresholds(found: Sequence[Case], columns: tuple[str, ...]) -> list[float]:
    """For each level of damage the highest probability that a clean data set needs which the fit has never seen.

    Retrievals unlike those of the training lose more than cross-fitting over questions would promise, so each family
    of data sets is judged by coefficients that were fitted without it.
    """
    needed = np.zeros(len(DAMAGE))
    for starts in FAMILIES.values():
        data, _ = fit([case for case in found if not case.sample.domain.startswith(starts)], columns)
        model, by = GuardModel.of({**data, "damage": [], "thresholds": []}), defaultdict(list)
        for case in found:
            if case.sample.domain.startswith(starts) and not case.poison.any():
                by[case.sample.domain].append(score(model, case))
        for parts in by.values():
            needed = np.maximum(needed, np.quantile(np.concatenate(parts), 1 - np.array(DAMAGE)))
    return [round(float(value), 5) for value in needed]


def score(model: GuardModel, case: Case) -> np.ndarray:
    rows = model.table(case.found)
    return model.judged(rows, company(evaluate(model.first, rows), case.found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--cache", type=Path, default=Path("build/guard"), help="folder for embeddings")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()

    samples = [s for s in training_samples(arguments.folder) if s.attack != "garag"]
    digest = sha256("\n".join(repr(s) for s in samples).encode("utf-8", "surrogatepass")).hexdigest()
    found = cases(samples, Vectors(arguments.encoder, arguments.cache, samples))
    columns = tuple(found[0].found.columns)
    data, _ = fit(found, columns)
    data |= {"damage": list(DAMAGE), "thresholds": foreign_thresholds(found, columns)}
    head = {"encoder": arguments.encoder, "seed": SEED, "samples": len(samples), "sha256": digest}
    print(head, data["thresholds"])
    if arguments.output:
        arguments.output.write_text(json.dumps({**head, **data}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
