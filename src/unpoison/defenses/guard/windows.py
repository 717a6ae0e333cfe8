"""The judgement of windows: each passage is as suspicious as its worst sentence or two, whatever stands around it.

Small trees look at every window (`kernels.window_evidence`), which knows the window and the question alone. What they
say is a passage's *own* suspicion, and Guard's other judgement, in the company of the set, is held to it. So
(docs/threat-model.md):

- Adding never clears: text added to a passage adds windows, and the worst one counts.
- Form never clears: windows are read in lower case, without marks, and no run of shapes weighs more than `BOUND` of
  `benchmarks/guard_windows.py`.
- Nobody convicts a neighbour: the company lifts a passage's log-odds above its own suspicion by at most
  `GuardModel.bound`.

How suspicious even the innocent passages of a set look depends on the kind of text: web snippets state answers head-on,
an encyclopaedia seldom does. So a set is judged by its own level, within narrow limits (`WindowModel.level`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from importlib.resources import files
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard.model import GuardModel, Judgement, as_log_odds, as_probability, trees_of
from unpoison.defenses.guard.redaction import Window, windows_of
from unpoison.kernels.respelling import Respelled, respelled
from unpoison.kernels.stopwords import ENGLISH_318
from unpoison.kernels.style import ITSELF, Style, run_text
from unpoison.kernels.trees import Trees, evaluate
from unpoison.kernels.window_evidence import WindowSigns, window_signs

__all__ = ["WindowJudgement", "WindowModel", "lowest", "worst"]

Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]

CLAIM = "states an answer as invented claims do"

LONGEST_QUOTED = 120
"""Characters of a window that a reason quotes."""

FEWEST_RESPELLED = 8
"""A part of a respelled text has at least so many words, for whoever writes it chose its full stops as well."""

LOWEST = -12.0
"""Log-odds of a passage without words."""

INNOCENT = 0.3
"""The share of a set's passages that is below its level: nobody sets it who owns less than two thirds of the set."""

FOLLOWING = 0.8
"""How far the judgement follows the level; below 1, so that a passage never gains by looking worse."""

STRICTEST, MILDEST = -1.5, 0.5
"""Log-odds by which a set's level may be taken to differ from the ordinary one. Little upwards: crowds raise it."""


class WindowJudgement(NamedTuple):
    """What the windows of k passages look like.

    Attributes:
        owner: The passage of each window, shape (n,).
        start, end: Where it stands in the passage's reading, shape (n,).
        odds: Log-odds of poison, shape (n,).
        passages: The highest log-odds of each passage's windows, shape (k,).
    """

    owner: Numbers
    start: Numbers
    end: Numbers
    odds: Matrix
    passages: Matrix


@dataclass(frozen=True)
class WindowModel:
    """Coefficients for windows, the same for every encoder.

    Attributes:
        style: How invented claims are built, in lower case and without marks.
        trees: Over the columns of `window_signs`; their sum is the log-odds.
        damage: Shares of clean passages, rising.
        thresholds: The log-odds above which a window of that share stands, in the average clean data set.
        calibration: Twelve hexadecimal digits that stand for all of these.
    """

    style: Style
    trees: Trees
    damage: tuple[float, ...]
    thresholds: tuple[float, ...]
    calibration: str

    @classmethod
    @cache
    def load(cls) -> Self:
        """The shipped coefficients."""
        return cls.of(json.loads((files("unpoison.data") / "guard-windows.json").read_text(encoding="utf-8")))

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Read what `benchmarks/train_guard.py` wrote."""
        return cls.from_numbers(data, GuardModel.style_of(data["style"]))

    @classmethod
    def from_numbers(cls, data: Mapping[str, Any], style: Style) -> Self:
        """From numbers that were checked, and a style."""
        digest = blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=6)
        if "style" not in data:
            digest.update(np.ascontiguousarray(style.weight).tobytes())
        return cls(
            style=style,
            trees=trees_of(data["trees"]),
            damage=tuple(data["damage"]),
            thresholds=tuple(data["thresholds"]),
            calibration=digest.hexdigest(),
        )

    def judge(self, question: str, texts: Sequence[str]) -> WindowJudgement:
        """Every window of k passages, of texts in a strange spelling or layout also as they are meant; linear."""
        signs = window_signs(question, texts, self.style)
        odds = evaluate(self.trees, signs.columns)
        if meant := {i: one for i, text in enumerate(texts) if (one := respelled(text, self.words))}:
            more = self._respelled(question, meant)
            odds = np.concatenate([odds, evaluate(self.trees, more.columns)])
            signs = WindowSigns(
                np.concatenate([signs.columns, more.columns]),
                np.concatenate([signs.owner, more.owner]),
                np.concatenate([signs.start, more.start]),
                np.concatenate([signs.end, more.end]),
            )
        return WindowJudgement(signs.owner, signs.start, signs.end, odds, worst(odds, signs.owner, len(texts)))

    def _respelled(self, question: str, meant: Mapping[int, Respelled]) -> WindowSigns:
        """The windows of texts as they are meant, by their passages, with the places in the texts as they are."""
        texts = list(meant.values())
        signs = window_signs(question, [one.text for one in texts], self.style, FEWEST_RESPELLED)
        start, end = np.empty_like(signs.start), np.empty_like(signs.end)
        for number, one in enumerate(texts):
            here = signs.owner == number
            start[here], end[here] = one.start[signs.start[here]], one.end[signs.end[here] - 1]
        return WindowSigns(signs.columns, np.array(list(meant), np.int64)[signs.owner], start, end)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that a mark inside them must not hide: function words, and those that the style knows."""
        known = (run_text(int(code)).removeprefix(ITSELF) for code in self.style.code[self.style.code < 0])
        return frozenset(known) | frozenset(ENGLISH_318)

    def level(self, model: GuardModel, windows: WindowJudgement) -> float:
        """By how many log-odds a set is judged more mildly, for even its innocent passages look like claims.

        Negative for a set whose innocent passages look more innocent than the ordinary set's.
        """
        low = lowest(self.on_scale_of(model, windows.passages))
        return FOLLOWING * min(max(low - model.ordinary, STRICTEST), MILDEST)

    def united(self, model: GuardModel, judgement: Judgement, windows: WindowJudgement, level: float) -> Matrix:
        """The passages' probability by both judgements: the higher one, held to each passage's own suspicion.

        `level` is that of the set (`level`).
        """
        whole = as_log_odds(judgement.probability)
        own = self.on_scale_of(model, windows.passages)
        highest = np.maximum(own, judgement.alone) + model.bound
        return as_probability(np.minimum(np.maximum(whole, own) - level, highest))

    def quoted(
        self, model: GuardModel, looked: WindowJudgement, texts: Sequence[str], least: float, level: float = 0.0
    ) -> dict[int, str]:
        """By passage its worst window, where that has at least this probability, cut to `LONGEST_QUOTED` characters."""
        probability = self._probability(model, looked, level)
        quotes: dict[int, str] = {}
        for n in np.argsort(probability, kind="stable").tolist():  # the worst one comes last, and stays
            if probability[n] >= least:
                owner = int(looked.owner[n])
                quotes[owner] = " ".join(texts[owner][looked.start[n] : looked.end[n]].split())
        return {
            i: text if len(text) <= LONGEST_QUOTED else f"{text[: LONGEST_QUOTED - 1]}…" for i, text in quotes.items()
        }

    def suspicious(
        self, model: GuardModel, looked: WindowJudgement, threshold: float, level: float
    ) -> dict[int, list[Window]]:
        """The windows above a threshold, by passage."""
        probability = self._probability(model, looked, level)
        return windows_of(looked.owner, looked.start, looked.end, probability, threshold, CLAIM)

    def _probability(self, model: GuardModel, looked: WindowJudgement, level: float) -> Matrix:
        """Of poison, for each window, on the scale of `model` and at the level of its set, shape (n,)."""
        return as_probability(self.on_scale_of(model, looked.odds) - level)

    def on_scale_of(self, model: GuardModel, odds: Matrix) -> Matrix:
        """Windows' log-odds as log-odds of `model`: what does equal damage to clean passages counts the same."""
        theirs = np.log(model.thresholds) - np.log1p(-np.array(model.thresholds))
        return _interpolated(odds, np.array(self.thresholds)[::-1], theirs[::-1])


def lowest(values: Matrix) -> float:
    """The value that `INNOCENT` of at least one value are below."""
    return float(np.sort(values)[int(INNOCENT * (len(values) - 1))])


def worst(values: Matrix, owner: Numbers, k: int) -> Matrix:
    """The highest value of each passage's windows, `LOWEST` where there is none, shape (k,)."""
    highest = np.full(k, LOWEST)
    np.maximum.at(highest, owner, values)
    return highest


def _interpolated(values: Matrix, points: Matrix, values_there: Matrix) -> Matrix:
    """Piecewise linear through the points, with slope 1 beyond them."""
    inside = np.interp(values, points, values_there)
    return np.asarray(inside + np.minimum(values - points[0], 0) + np.maximum(values - points[-1], 0))
