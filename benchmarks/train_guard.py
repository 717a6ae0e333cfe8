"""Fit Guard's coefficients, and say how it does on questions, data sets and attacks that it was not fitted on.

    python benchmarks/train_guard.py ../shared/data --output src/unpoison/data

Seven tenths of the questions of the freely licensed sets are fitted, the other three tenths and all other sets are
measured on (`guard_data.py`). The threshold for each level of damage is the highest that any clean data set needs when
the coefficients are fitted without its family; a third of the damage is left to the judgement of windows
(`guard_windows.py`), which is the same for every encoder.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from embeddings import Embeddings
from guard_data import Sample, training_samples
from guard_style import worded
from guard_windows import bags, fit_trees, style_of_windows
from unpoison.defenses.guard.boosting import balanced, boosted, cross_fitted, exported, scaled
from unpoison.defenses.guard.fit import COMPANY_BOUND, DAMAGE, WHOLE_SHARE, WINDOWS_SHARE, on_average
from unpoison.defenses.guard.looking import look
from unpoison.defenses.guard.model import WORDING, WORDING_ALONE, GuardModel, company, setting
from unpoison.defenses.guard.windows import WindowModel, lowest
from unpoison.kernels.evidence import Signs, signs
from unpoison.models import load_encoder

SEED = 0
FOLDS = 5
FEWEST_QUESTIONS = 20
"""Of a data set, for its level."""
FOLDS_OF_STRANGERS = 2
"""Where a family is left out; only thresholds come of it."""
SET_COLUMNS = ("similarity_", "support", "nearest_", "mates", "centrality", "coverage_c", "density_c", "words", "novel",
               "phrases", "claim_share", "claim_votes", "claim_alone", "claim_contrast", "set_", "size")  # fmt: skip
"""How the names of columns begin that depend on the other passages; those that end in `_contrast` do too."""


@dataclass
class Case:
    """A sample with its vectors, of the passages and of the question, and its evidence."""

    sample: Sample
    vectors: tuple[np.ndarray, np.ndarray]
    signs: Signs

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
    made = [(s, vectors(s)) for s in samples]
    return [Case(s, both, signs(s.question, s.texts, *both)) for s, both in made]


def fold(question: str) -> int:
    return int.from_bytes(blake2b(question.encode(), digest_size=4).digest(), "little") % FOLDS


def weights(found: Sequence[Case]) -> np.ndarray:
    """Clean and poison weigh the same; among clean passages each domain, among poisons each domain and attack."""
    return balanced([(*c.sample.kind(p), p) for c in found for p in c.sample.poison])


def fit(
    found: Sequence[Case], columns: tuple[str, ...], worded: Sequence[np.ndarray], *, per_set: bool, count: int = FOLDS
) -> tuple[dict, list[np.ndarray]]:
    """Coefficients, and cross-fitted probabilities for each case.

    `worded` are the cases' columns of wording, each by a style that was fitted on other questions (`guard_style.py`).
    """
    y = np.concatenate([c.poison for c in found])
    w = weights(found)
    sizes = [len(c.poison) for c in found]
    folds = np.repeat([fold(c.sample.question) % count for c in found], sizes)
    ends = np.cumsum(sizes)[:-1]
    rows = np.hstack([np.concatenate([evidence(c.signs, columns) for c in found]), np.concatenate(worded)])

    sums = cross_fitted(rows, y, w, folds)
    around = np.concatenate([company(part, c.signs) for c, part in zip(found, np.split(sums, ends))])
    both = np.hstack([rows, around])
    outcome = cross_fitted(both, y, w, folds)
    where = [setting(part, c.signs) for c, part in zip(found, np.split(outcome, ends))]
    names = (*columns, *WORDING)
    own = [name for name in names if alone(name) and not (per_set and name == "similarity")]
    by_itself = rows[:, [names.index(name) for name in own]]
    scale = scaled(outcome, cross_fitted(by_itself, y, w, folds), np.repeat(where, sizes, axis=0), y, w)
    first, second = boosted(rows, y, w), boosted(both, y, w)
    return {
        "columns": list(columns),
        "first": exported(first),
        "second": exported(second),
        "alone_columns": own,
        "alone": exported(boosted(by_itself, y, w)),
        "calibration": scale.numbers,
    }, np.split(scale.probability, ends)


def alone(column: str) -> bool:
    """Whether a column looks at a passage and the question only."""
    if column in WORDING:
        return column in WORDING_ALONE
    return not column.startswith(SET_COLUMNS) and not column.endswith("_contrast")


def evidence(found: Signs, columns: tuple[str, ...]) -> np.ndarray:
    return np.column_stack([found.columns[name] for name in columns])


def thresholds(found: Sequence[Case], probabilities: Sequence[np.ndarray], share: float) -> list[float]:
    """For each level of damage the highest probability that any clean data set needs, with a margin."""
    by = defaultdict(list)
    for case, part in zip(found, probabilities):
        if not case.poison.any():
            by[case.sample.domain.partition("-")[0]].append(part)
    return [round(value, 5) for value in needed(by, share)]


def needed(by: dict[str, list[np.ndarray]], part: float) -> list[float]:
    """For each level of damage what the clean data set that needs most needs, where `part` of it may be done."""
    values = [np.concatenate(parts) for parts in by.values()]
    return [float(max(np.quantile(v, 1 - part * share) for v in values)) for share in DAMAGE]


FAMILIES = {"nq": ("nq_poisoned", "nq_large_poisoned", "nq_retrieved"), "hotpotqa": ("hotpotqa",),
            "timeqa": ("timeqa",), "ramdocs": ("ramdocs",), "faq": ("clean_faq",), "science": ("clean_science",),
            "wiki": ("clean_wiki",), "documentation": ("documentation",)}  # fmt: skip
"""Data sets by where their passages come from, and how the names of their domains begin."""

KNOWN = ("documentation",)
"""Families that are judged by coefficients which saw other questions on them: no other family is like these at all."""


def family(domain: str) -> str:
    return next(name for name, starts in FAMILIES.items() if domain.startswith(starts))


def foreign(
    found: Sequence[Case], columns: tuple[str, ...], written: Written, own: Sequence[np.ndarray], *, per_set: bool
) -> list[np.ndarray]:
    """For each case its probabilities by coefficients that were fitted without its family of data sets.

    Retrievals unlike those of the training lose more than cross-fitting over questions would promise. Of the families
    `KNOWN` it is those by cross-fitting, `own`.
    """
    made = {i: part for i, (case, part) in enumerate(zip(found, own)) if family(case.sample.domain) in KNOWN}
    for name in FAMILIES:
        if name in KNOWN:
            continue
        rest = [case for case in found if family(case.sample.domain) != name]
        style, columns_of_wording = written(name, rest)
        data, _ = fit(rest, columns, columns_of_wording, per_set=per_set, count=FOLDS_OF_STRANGERS)
        model = GuardModel.of({**data, "bound": 0.0, "ordinary": 0.0, "damage": [], "thresholds": []}, style)
        for i, case in enumerate(found):
            if family(case.sample.domain) == name:
                made[i] = model.judge(case.signs).probability
    return [made[i] for i in range(len(found))]


class Written:
    """Styles, which depend on texts alone and so are the same for every encoder, fitted once."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[dict, list[np.ndarray]]] = {}

    def __call__(self, without: str, found: Sequence[Case]) -> tuple[dict, list[np.ndarray]]:
        if without not in self.made:
            samples = [c.sample for c in found]
            self.made[without] = worded(samples, [c.signs for c in found], fold, family)
        return self.made[without]


def score(model: GuardModel, case: Case) -> np.ndarray:
    """The passages' probabilities by coefficients that no Guard ships; what is shipped, `guard_screens` measures."""
    sample = case.sample
    return look(model, WindowModel.load(), sample.question, sample.texts, *case.vectors).probability


def ordinary(samples: Sequence[Sample], windows: WindowModel, values: Sequence[float]) -> float:
    """The level that thresholds belong to: of the clean data set whose innocent passages look most like claims.

    It is the one that needs the highest thresholds; all others are judged more strictly.
    """
    scale: Any = SimpleNamespace(thresholds=tuple(values))
    levels: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        if not any(sample.poison) and family(sample.domain) not in KNOWN:
            own = windows.on_scale_of(scale, windows.judge(sample.question, sample.texts).passages)
            levels[sample.domain].append(lowest(own))
    return round(max(float(np.median(found)) for found in levels.values() if len(found) >= FEWEST_QUESTIONS), 3)


def fit_windows(samples: Sequence[Sample]) -> dict:
    """The judgement of windows, with the thresholds that clean families need when it is fitted without them."""
    style, collected = bags(samples, fold, family)
    clean: dict[str, list[np.ndarray]] = defaultdict(list)
    for name in FAMILIES:
        rest = [s for s in samples if family(s.domain) != name]
        stranger = {
            "style": style_of_windows(rest),
            "trees": exported(fit_trees([bag for bag in collected if family(bag.sample.domain) != name])),
            "damage": [],
            "thresholds": [],
        }
        model = WindowModel.of(stranger)
        for s in samples:
            if family(s.domain) == name and not any(s.poison):
                clean[s.domain.partition("-")[0]].append(model.judge(s.question, s.texts).passages)
    return {
        "style": style,
        "trees": exported(fit_trees(collected)),
        "damage": list(DAMAGE),
        "thresholds": [round(on_average(clean, WINDOWS_SHARE * share), 4) for share in DAMAGE],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--encoders", default="lexical,minilm", help="empty for none")
    parser.add_argument("--windows", action=argparse.BooleanOptionalAction, default=True, help="fit the windows too")
    parser.add_argument("--cache", type=Path, default=Path("build/guard"), help="folder for embeddings")
    parser.add_argument("--output", type=Path, help="folder for the coefficients; src/unpoison/data ships them")
    arguments = parser.parse_args()

    samples = [s for s in training_samples(arguments.folder) if s.attack != "garag"]
    digest = sha256("\n".join(repr(s) for s in samples).encode("utf-8", "surrogatepass")).hexdigest()
    head = {"seed": SEED, "samples": len(samples), "sha256": digest}
    windows = WindowModel.load()
    if arguments.windows:
        data = fit_windows(samples)
        windows = WindowModel.of(data)
        print("windows", head, "thresholds:", data["thresholds"], flush=True)
        if arguments.output:
            save(arguments.output / "guard-windows.json", {**head, **data})
    written = Written()
    for encoder in filter(None, arguments.encoders.split(",")):
        vectors = Vectors(encoder, arguments.cache, samples)
        per_set = vectors.kept is None
        found = cases(samples, vectors)
        columns = tuple(found[0].signs.columns)
        style, worded_columns = written("nothing", found)
        data, own = fit(found, columns, worded_columns, per_set=per_set)
        strangers = thresholds(found, foreign(found, columns, written, own, per_set=per_set), WHOLE_SHARE[encoder])
        print(
            encoder,
            head,
            "thresholds:",
            thresholds(found, own, WHOLE_SHARE[encoder]),
            "on strangers:",
            strangers,
            flush=True,
        )
        if arguments.output:
            save(
                arguments.output / f"guard-{encoder}.json",
                {
                    "encoder": encoder,
                    **head,
                    "bound": COMPANY_BOUND,
                    "ordinary": ordinary(samples, windows, strangers),
                    **data,
                    "damage": list(DAMAGE),
                    "thresholds": strangers,
                },
            )
            save(arguments.output / "guard-style.json", {**head, **style})


def save(path: Path, data: dict) -> None:
    path.write_text(json.dumps(data, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
