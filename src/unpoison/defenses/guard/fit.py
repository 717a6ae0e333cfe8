"""A Guard of one's own: the shipped numbers and the user's clean retrievals, fitted with what a secret lets it see.

The steps are those of `defenses.guard.model` and `defenses.guard.windows`, so every property of Guard that does not
rest on numbers holds: windows are judged alone and the worst one counts, more of a sign that speaks for poison never
means less, and the company is held to a passage's own suspicion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard.boosting import balanced, boosted, cross_fitted, exported, scaled
from unpoison.defenses.guard.file import OwnGuard, parsed
from unpoison.defenses.guard.key import Choice, drawn, part_of
from unpoison.defenses.guard.model import COMPANY, WORDING, GuardModel, company, setting
from unpoison.defenses.guard.table import OWN, Sample, of_texts, shipped_samples
from unpoison.defenses.guard.windows import WindowModel, lowest, worst
from unpoison.errors import InputError
from unpoison.kernels.evidence import Signs
from unpoison.kernels.window_evidence import COLUMNS

__all__ = [
    "COMPANY_BOUND",
    "DAMAGE",
    "WHOLE_SHARE",
    "WINDOWS_SHARE",
    "Retrieval",
    "fewest_passages",
    "fitted",
    "of_windows",
    "on_average",
]

Matrix = NDArray[np.float64]
Clean = dict[str, list[Matrix]]

DAMAGE: Final = (0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1)
"""Shares of clean passages for which thresholds are fitted; between them `GuardModel.threshold` interpolates."""
WINDOWS_SHARE: Final = 1 / 3
WHOLE_SHARE: Final = {"lexical": 5 / 6, "minilm": 1 / 4}
"""Of the damage that is allowed, how much each of the two judgements may do; MiniLM's part fits web snippets least."""
COMPANY_BOUND: Final = 4.0
"""Log-odds by which the company may lift a passage above its own suspicion; 3 finds fewer of several poisons, and bait
costs as many gold passages."""

NEEDED: Final = 0.01
"""The least damage that the user's passages must suffice to measure; Guard's default of 0.02 rests on it."""
FEWEST_QUESTIONS: Final = 20
"""Passages of one question resemble each other, so many passages of few questions say little."""

FOLDS: Final = 5
"""Questions are fitted in so many parts; a passage is judged by trees of the other parts."""
ROUNDS: Final = 3
"""How often the windows to learn from are chosen anew (`of_windows`)."""
WINDOW_TREES: Final = 100
"""Trees of the classifier of windows."""
RISING: Final = ("style", "coverage", "density", "echo")
"""More of these never means less suspicion, so that a text cannot overdo it."""


class Retrieval(NamedTuple):
    """A question of the user with its passages, as Guard sees them.

    Attributes:
        question: What was asked.
        texts: The passages' readings.
        signs: The evidence on them.
    """

    question: str
    texts: tuple[str, ...]
    signs: Signs


def fewest_passages(encoder: str) -> int:
    """How many passages of the user are needed."""
    return _needed(NEEDED, encoder)


def _needed(damage: float, encoder: str) -> int:
    """How many passages it takes until one of them is the damage that each judgement may do."""
    return ceil(1 / (damage * min(WHOLE_SHARE[encoder], WINDOWS_SHARE)) - 1e-9)


def fitted(
    own: Sequence[Retrieval], secret: str, encoder: str, tell: Callable[[str], None] = lambda step: None
) -> dict[str, Any]:
    """The coefficients, as `defenses.guard.file` writes them. They do not hold the secret, nor any text.

    Args:
        own: Clean retrievals.
        secret: At least 16 bytes; another one fits another Guard.
        encoder: Whose vectors the evidence is on: `lexical`, or `minilm` for all others.
        tell: Called with what is being done, in words.

    Raises:
        InputError: Too few retrievals.
        OptionError: The secret is too short.
        MissingExtraError: scikit-learn is not installed.
    """
    _check_enough(own, encoder)
    shipped, windows = GuardModel.load(encoder), WindowModel.load()
    choice = drawn(secret, shipped.columns, shipped.alone_columns)
    tell("reading the shipped numbers")
    samples = shipped_samples(encoder, choice.style, choice.window_style)
    style, window_style = part_of(shipped.style, choice.style), part_of(windows.style, choice.window_style)
    last = max(sample.question for sample in samples) + 1
    numbers = {question: last + i for i, question in enumerate(dict.fromkeys(r.question for r in own))}
    samples += [of_texts(r.question, numbers[r.question], r.texts, r.signs, style, window_style) for r in own]
    tell("fitting the judgement of windows")
    passages = sum(len(r.texts) for r in own)
    damage = [level for level in DAMAGE if passages >= _needed(level, encoder)]
    looked = _windows(samples, choice, damage)
    tell("fitting the judgement of passages")
    data = _passages(samples, choice, shipped, damage, encoder)
    data |= {
        "format": 1,
        "encoder": encoder,
        "shipped": f"{shipped.calibration}-{windows.calibration}",
        "questions": len(numbers),
        "passages": passages,
        "bound": COMPANY_BOUND,
        "ordinary": 0.0,
        "style": list(choice.style),
        "windows": {"style": list(choice.window_style), **looked},
    }
    return {**data, "ordinary": _ordinary(parsed(data), own)}


def _ordinary(guard: OwnGuard, own: Sequence[Retrieval]) -> float:
    """The level that the thresholds belong to: of the middle one of the user's sets."""
    windows, model = guard.windows, guard.model
    levels = [lowest(windows.on_scale_of(model, windows.judge(r.question, r.texts).passages)) for r in own]
    return float(np.median(levels))


def _check_enough(own: Sequence[Retrieval], encoder: str) -> None:
    passages, questions = sum(len(r.texts) for r in own), len({r.question for r in own})
    if passages < fewest_passages(encoder) or questions < FEWEST_QUESTIONS:
        raise InputError(
            f"{passages:,} passages of {questions:,} questions are too few to set a threshold; give at least "
            f"{fewest_passages(encoder):,} of {FEWEST_QUESTIONS} questions, better ten times as many"
        )


def _passages(
    samples: Sequence[Sample], choice: Choice, shipped: GuardModel, damage: list[float], encoder: str
) -> dict[str, Any]:
    """Trees, calibration and thresholds of the judgement in company."""
    names = (*shipped.columns, *WORDING, *COMPANY)
    first, second, alone = (_indices(names, chosen) for chosen in (choice.first, choice.second, choice.alone))
    rows = np.vstack([
        np.column_stack([*(s.signs.columns[name] for name in shipped.columns), s.wording]) for s in samples
    ])  # fmt: skip
    y = np.concatenate([s.poison for s in samples])
    w = balanced([_kind(s, p) for s in samples for p in s.poison.tolist()])
    sizes = [len(s.poison) for s in samples]
    folds = np.repeat([s.question % FOLDS for s in samples], sizes)
    ends = np.cumsum(sizes)[:-1]
    sums = cross_fitted(rows[:, first], y, w, folds)
    around = np.vstack([company(part, s.signs) for s, part in zip(samples, np.split(sums, ends))])
    both = np.hstack([rows, around])
    outcome = cross_fitted(both[:, second], y, w, folds)
    where = [setting(part, s.signs) for s, part in zip(samples, np.split(outcome, ends))]
    by_itself = cross_fitted(rows[:, alone], y, w, folds)
    scale = scaled(outcome, by_itself, np.repeat(where, sizes, axis=0), y, w)
    parts = np.split(scale.probability, ends)
    thresholds = _thresholds(samples, parts, damage, WHOLE_SHARE[encoder])
    return {
        "columns": list(shipped.columns),
        "first": exported(boosted(rows[:, first], y, w), first),
        "second": exported(boosted(both[:, second], y, w), second),
        "alone_columns": [names[i] for i in alone],
        "alone": exported(boosted(rows[:, alone], y, w)),
        "calibration": scale.numbers,
        "damage": damage,
        "thresholds": np.clip(thresholds, 1e-4, 1 - 1e-5).tolist(),
    }


def _windows(samples: Sequence[Sample], choice: Choice, damage: list[float]) -> dict[str, Any]:
    """Trees and thresholds of the judgement of windows."""
    visible = _indices(COLUMNS, choice.windows)
    rows = np.vstack([s.windows for s in samples])
    sizes = [len(s.owner) for s in samples]
    begin = np.cumsum([0, *(len(s.poison) for s in samples)])
    passage = np.concatenate([start + s.owner for start, s in zip(begin.tolist(), samples)])
    y = np.concatenate([s.poison[s.owner] for s in samples])
    w = balanced([_kind(s, p) for s in samples for p in s.poison[s.owner].tolist()])
    folds = np.repeat([s.question % FOLDS for s in samples], sizes)
    odds = np.zeros(len(y))
    for fold in range(FOLDS):
        here = folds == fold
        odds[here] = of_windows(rows[~here], y[~here], w[~here], passage[~here], visible).decision_function(
            rows[here][:, visible]
        )
    highest = worst(odds, passage, int(begin[-1]))
    thresholds = _thresholds(samples, np.split(highest, begin[1:-1]), damage, WINDOWS_SHARE)
    model = of_windows(rows, y, w, passage, visible)
    return {"trees": exported(model, visible), "damage": damage, "thresholds": thresholds}


def of_windows(
    rows: Matrix, y: NDArray[np.bool_], w: Matrix, passage: NDArray[np.int64], columns: Sequence[int]
) -> Any:
    """A classifier of windows: only passages have labels, so in every round it chooses the windows to learn from.

    Of a poison that is the one that it suspects most, of a clean passage the three.

    Args:
        rows: The evidence on windows, shape (n, 8).
        y: Whether their passages are poison, shape (n,).
        w: What each weighs, shape (n,).
        passage: A number for the passage of each, shape (n,).
        columns: The columns that it may see.
    """
    score = rows[:, COLUMNS.index("coverage")] + 0.01 * rows[:, COLUMNS.index("density")]
    rising = [int(COLUMNS[i] in RISING) for i in columns]
    model: Any = None
    for _ in range(ROUNDS):
        order = np.lexsort((-score, passage))
        rank = np.arange(len(order)) - np.searchsorted(passage[order], passage[order])
        chosen = order[rank < np.where(y[order], 1, 3)]
        model = boosted(
            rows[np.ix_(chosen, np.asarray(columns))], y[chosen], w[chosen], trees=WINDOW_TREES, rising=rising
        )
        score = model.decision_function(rows[:, columns])
    return model


def _kind(sample: Sample, poison: bool) -> tuple[str, str, bool]:
    """The group of a passage; forms are one domain, whatever set they were made of."""
    domain = "forms" if sample.domain.endswith("-forms") else sample.domain
    return (domain, sample.attack if poison else "", poison)


def _indices(names: Sequence[str], chosen: Sequence[str]) -> list[int]:
    return [names.index(name) for name in chosen]


def _thresholds(
    samples: Sequence[Sample], parts: Sequence[Matrix], damage: Sequence[float], share: float
) -> list[float]:
    """A threshold for each level of damage.

    The higher of the two at which the user's and the training's passages lose `share` of that damage.

    Of the training's clean data sets the average counts. All values are of passages whose question was not fitted.
    """
    clean: Clean = defaultdict(list)
    for sample, part in zip(samples, parts):
        if not sample.poison.any():
            clean[sample.domain.partition("-")[0]].append(part)
    own = np.concatenate(clean.pop(OWN))
    return [max(float(np.quantile(own, 1 - share * d)), on_average(clean, share * d)) for d in damage]


def on_average(clean: Clean, damage: float) -> float:
    """What is needed for the average clean data set to lose a share `damage`.

    Args:
        clean: By data set the values of its passages, in parts.
        damage: In (0, 1).
    """
    values = np.concatenate([np.concatenate(parts) for parts in clean.values()])
    each = np.concatenate([np.full(sum(map(len, parts)), 1 / sum(map(len, parts))) for parts in clean.values()])
    order = np.argsort(-values, kind="stable")
    above = np.cumsum(each[order]) / len(clean)
    return float(values[order][np.searchsorted(above, damage)])
