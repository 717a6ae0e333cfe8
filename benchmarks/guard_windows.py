"""The judgement of windows (`kernels.window_evidence`), fitted: their style, and trees over their evidence.

A passage is as suspicious as its worst window. Only passages have labels, so the windows to learn from are chosen by
the model itself: of a poison the window that it suspects most, of a clean passage the three that it does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from guard_data import Sample
from guard_style import general_words, tabled
from unpoison.defenses.guard.boosting import balanced
from unpoison.defenses.guard.fit import of_windows
from unpoison.defenses.guard.model import GuardModel
from unpoison.kernels.style import Style, run_text
from unpoison.kernels.window_evidence import COLUMNS, WindowSigns, window_runs, window_signs
from unpoison.kernels.windows import windows

__all__ = ["Bag", "bags", "fit_trees", "style_of_windows"]

FEWEST_TEXTS = 10
STRENGTH = 3.0
BOUND = 4.0
"""No run of shapes weighs more: no constant tail clears a sentence."""

SHIFT = 1.0
"""How much more like claims other kinds of text may be built: the deviation, in the style's own unit."""


def style_of_windows(samples: Sequence[Sample]) -> dict:
    """Weights of runs of lower-case shapes and of words, by logistic regression over the distinct texts."""
    pure = [s for s in samples if s.attack != "longer"]
    kinds: dict[tuple[str, bool], tuple[str, str]] = {}
    for s in pure:
        for text, p in zip(s.texts, s.poison):
            kinds.setdefault((text, p), s.kind(p))
    y = np.array([p for _, p in kinds])
    sizes = Counter(kinds.values())
    groups = Counter(attack != "" for _, attack in sizes)
    w = np.array([1 / (sizes[kind] * groups[kind[1] != ""]) for kind in kinds.values()])
    codes, table = counted([text for text, _ in kinds], general_words(pure))
    model = LogisticRegression(C=STRENGTH, max_iter=300).fit(table, y, w * len(w) / w.sum())
    weights = np.clip(model.coef_[0], -BOUND, BOUND)
    return {
        "runs": {run_text(int(code)): float(f"{weight:.3g}") for code, weight in zip(codes, weights)},
        "base": float(model.intercept_[0]),
    }


def counted(texts: Sequence[str], words: np.ndarray) -> tuple[np.ndarray, csr_array]:
    """The runs, and of the words these, that enough texts have, and the texts' rows (`guard_style.tabled`)."""
    found = [codes_of(text) for text in texts]
    owners = np.repeat(np.arange(len(texts)), [len(codes) for codes in found])
    return tabled(np.concatenate(found), owners, len(texts), FEWEST_TEXTS, words)


@cache
def codes_of(text: str) -> np.ndarray:
    """The runs of one text, kept: every style is fitted on most of the same texts."""
    return window_runs(windows("", [text])).code


class Bag:
    """A sample's windows with the label of their passages."""

    def __init__(self, sample: Sample, signs: WindowSigns) -> None:
        self.sample, self.signs = sample, signs
        self.poison = np.array(sample.poison)[signs.owner] if len(signs.owner) else np.zeros(0, bool)


def bags(
    samples: Sequence[Sample], fold: Callable[[str], int], family: Callable[[str], str]
) -> tuple[Style, list[Bag]]:
    """The style of all samples, and each sample's windows by a style that has not seen its question.

    Half of the samples are judged by a style without their family of data sets, and clean passages of every sample are
    shifted towards claims by a random amount, for nobody knows how other kinds of text are built.
    """
    rng = np.random.default_rng(0)
    apart = rng.random(len(samples)) < 0.5
    shifts = SHIFT * np.clip(rng.normal(size=len(samples)), 0, None)
    keys = [
        family(s.domain) if far and family(s.domain) != "nq" else fold(s.question) for s, far in zip(samples, apart)
    ]
    styles = {
        key: GuardModel.style_of(
            style_of_windows([s for s in samples if key not in (family(s.domain), fold(s.question))])
        )
        for key in set(keys)
    }
    collected = []
    for sample, key, shift in zip(samples, keys, shifts):
        bag = Bag(sample, window_signs(sample.question, sample.texts, styles[key]))
        bag.signs.columns[~bag.poison, COLUMNS.index("style")] += shift
        collected.append(bag)
    return style_of_windows(samples), collected


def fit_trees(found: Sequence[Bag]) -> Any:
    """Trees over the evidence, windows chosen anew in every round."""
    rows = np.concatenate([bag.signs.columns for bag in found])
    y = np.concatenate([bag.poison for bag in found])
    return of_windows(rows, y, _weights(found), _passages(found), range(len(COLUMNS)))


def _passages(found: Sequence[Bag]) -> np.ndarray:
    """A number for each passage of all samples, window by window."""
    numbers, first = [], 0
    for bag in found:
        numbers.append(first + bag.signs.owner)
        first += len(bag.sample.texts)
    return np.concatenate(numbers)


def _weights(found: Sequence[Bag]) -> np.ndarray:
    """Clean and poison weigh the same; among clean passages each domain, among poisons each domain and attack."""
    return balanced([(*bag.sample.kind(p), bool(p)) for bag in found for p in bag.poison.tolist()])
