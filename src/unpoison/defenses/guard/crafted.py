"""Detects texts that look written for a question: to be retrieved for it, and to answer it directly.

Three small tree ensembles. Two judge a text and the question alone: the whole text, and its worst window of one, two or
four sentences, so that surrounding text cannot dilute a suspicious window. The third uses neighbour features: copies by
one author raise each other's score, within `Crafted.most` and `Crafted.least`. If most texts are records of one
template, words shared with the others are no evidence (`guard.features`).

`benchmarks train_crafted` fits them. They do not judge truth: an honest encyclopaedia-style page that answers the
question directly looks the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from io import BytesIO
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard import features
from unpoison.defenses.guard.features import QuestionTerms, Style, TextWords, beside, ranges, words_of_form
from unpoison.text.analysis import Words, each, words_of
from unpoison.utils.assets import array_folder
from unpoison.utils.checks import within

__all__ = ["MIN_STYLE", "MIN_STYLE_TOKENS", "Crafted", "Judgement", "invention_odds", "neighbor_features"]

Matrix = NDArray[np.float64]

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

LOWEST: Final = -8.0
HIGHEST: Final = 8.0
"""Range of the log-odds in neighbour features; the lower end is also that of a text without words."""

LONG_TITLE: Final = 24
"""Words and punctuation marks; a longer title is also judged as a text, since no headline is that long."""

LONG_TEXT: Final = 40
"""Sentences; in a longer text, the first and last window of the widest size are also judged as texts, so that
surrounding text cannot dilute a claim at either end."""

MARGIN: Final = 4 / 3
"""Texts unlike the training data have more false positives, so the requested damage is divided by this."""

ORDINARY: Final = -4.0
"""Maximum log-odds of a window that is mostly template text of records."""

FORM: Final = 0.5
"""Minimum share of template words and marks in such a window."""

INNOCENT: Final = 0.3
"""The share of a set's texts that is below its level."""

BRIEF, LONG_ENOUGH = 3.0, 30
"""Log-odds subtracted from a text without words, and the word count from which nothing is subtracted. The shorter a
text, the less its style reveals: a true one-line answer is written like a false one."""

SUSPECTS: Final = 64
"""Maximum number of texts, the most suspicious of a set, that can raise the score of others."""


class Judgement(NamedTuple):
    """The scores of k texts.

    Attributes:
        probability: That a text is written for the question, at even odds, shape (k,).
        alone: The same without the influence of other suspects, shape (k,).
        owner: The text of each window, shape (w,).
        start, end: The position of each window in its text, shape (w,).
        windows: The probability of each window, without the suspects, shape (w,).
    """

    probability: Matrix
    alone: Matrix
    owner: Numbers
    start: Numbers
    end: Numbers
    windows: Matrix

    @classmethod
    def nothing(cls, k: int) -> Self:
        """The scores of k texts that were not judged."""
        number, none = np.zeros(k), np.zeros(0, np.int64)
        return cls(number, number, none, none, none, np.zeros(0))

    def suspicious(self, i: int, threshold: float) -> list[tuple[int, int, float]]:
        """The windows of a text above a threshold: start, end, probability; the most suspicious one first."""
        chosen = np.flatnonzero((self.owner == i) & (self.windows > threshold))
        chosen = chosen[np.argsort(-self.windows[chosen], kind="stable")]
        return [(int(self.start[n]), int(self.end[n]), float(self.windows[n])) for n in chosen]


@dataclass(frozen=True)
class Crafted:
    """The coefficients.

    Attributes:
        style: How generated claims are written.
        whole, window: Trees over the style and the columns of `guard.features`; their sums are log-odds.
        neighbors: Trees over `neighbor_features`.
        window_penalty: Subtracted from the log-odds of each window, since a text has many windows.
        least, most: Bounds on the change of a text's log-odds by its neighbours.
        damage: Shares of clean texts, ascending.
        thresholds: For each share, the probability that this share of clean texts exceeds.
        calibration: A hash of all of these, twelve hexadecimal digits.
    """

    style: Style
    whole: Trees
    window: Trees
    neighbors: Trees
    window_penalty: float
    least: float
    most: float
    damage: tuple[float, ...]
    thresholds: tuple[float, ...]
    calibration: str

    @classmethod
    @cache
    def load(cls) -> Self:
        """The shipped coefficients.

        Raises:
            ModelError: Their file was changed.
        """
        raw = (array_folder() / "crafted.npz").read_bytes()
        with np.load(BytesIO(raw), allow_pickle=False) as data:
            return cls.of({**data, "calibration": blake2b(raw, digest_size=6).hexdigest()})

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Read the output of `benchmarks train_crafted`."""
        window_penalty, least, most = (float(value) for value in data["bounds"])
        return cls(
            style=Style.of(data),
            whole=_trees(data, "whole"),
            window=_trees(data, "window"),
            neighbors=_trees(data, "company"),
            window_penalty=window_penalty,
            least=least,
            most=most,
            damage=tuple(data["damage"].tolist()),
            thresholds=tuple(data["thresholds"].tolist()),
            calibration=str(data.get("calibration", "")),
        )

    def threshold(self, damage: float) -> float:
        """The probability above which at most a share `damage` of clean texts is expected.

        Raises:
            OptionError: A share for which no threshold was fitted.
        """
        within("damage", damage, self.damage[0], self.damage[-1])
        return float(np.interp(damage / MARGIN, self.damage, self.thresholds))

    def judge(
        self,
        question: str,
        texts: Sequence[str],
        bodies: Sequence[str] | None = None,
        *,
        readings: Sequence[int] = (),
        use_neighbors: bool = True,
    ) -> Judgement:
        """Judge the texts of a question.

        Args:
            question: The question's reading.
            texts: The readings of k passages.
            bodies: The same without their titles, each the end of its text. A title has its own windows and is not
                part of the whole, because honest headlines state facts directly too.
            readings: Which earlier texts the last texts are other readings of; nothing is compared with them.
            use_neighbors: Whether each text is compared with the others.

        Complexity: linear in the words, and O(k) for each of at most `SUSPECTS` texts.
        """
        if not texts:
            return Judgement.nothing(0)
        bodies = [body or text for text, body in zip(texts, texts if bodies is None else bodies, strict=True)]
        titled = [i for i, (text, body) in enumerate(zip(texts, bodies)) if len(body) < len(text)]
        parts = [*bodies, *(texts[i][: len(texts[i]) - len(bodies[i])] for i in titled)]
        asked, *known = words_of([question, *parts])
        k, among = len(texts), len(texts) - len(readings) if use_neighbors else 0
        wanted, spoken = QuestionTerms.of(asked), TextWords.of(known)
        owner = np.concatenate([np.arange(k), np.array(titled, np.int64)])[spoken.owner]
        odds, alone, last, full = self._odds(parts, known, beside(wanted, spoken), k)
        if among:
            worst = alone.copy()
            np.maximum.at(worst, owner, odds)
            form = _of_form(wanted, known, titled, np.flatnonzero(worst > ORDINARY).tolist(), readings)
            odds[form] = np.minimum(odds[form], ORDINARY)
            alone[full] = np.where(form[last[:k][full]], np.minimum(alone[full], ORDINARY), alone[full])
        np.maximum.at(alone, owner, odds)
        together = alone.copy()
        if among:
            own = alone[:among]
            odds_among = evaluate(self.neighbors, neighbor_features(own, wanted, spoken, known[:among]))
            together[:among] = np.clip(odds_among, own + self.least, own + self.most)
        shift = np.array([0] * k + [0] * len(titled))
        shift[:k] = [len(text) - len(body) for text, body in zip(texts, bodies)]
        return Judgement(
            probability=_probability(together),
            alone=_probability(alone),
            owner=owner,
            start=np.concatenate([one.start for one in known]) + shift[spoken.owner],
            end=np.concatenate([one.end for one in known]) + shift[spoken.owner],
            windows=_probability(odds),
        )

    def judge_alone(self, questions: Sequence[str], texts: Sequence[str]) -> Matrix:
        """The probability of each of k texts for a question of its own, with nothing beside it, shape (k,).

        What stands beside a text can add at most `most` to its log-odds. Many texts at once are much faster than one
        `judge` for each.
        """
        if not texts:
            return np.zeros(0)
        known, wanted = words_of(texts), map(QuestionTerms.of, words_of(questions))
        shares = np.concatenate([beside(terms, TextWords.of([one])) for terms, one in zip(wanted, known, strict=True)])
        odds, alone, _, _ = self._odds(texts, known, shares, len(texts))
        np.maximum.at(alone, TextWords.of(known).owner, odds)
        return _probability(alone)

    def _odds(
        self, parts: Sequence[str], known: Sequence[Words], shares: Matrix, k: int
    ) -> tuple[Matrix, Matrix, Numbers, Flags]:
        """The log-odds of the windows of parts and of the first k as wholes; their last windows; which k have words."""
        rows = np.column_stack([np.concatenate(each(parts, self.styles)), shares])
        short = BRIEF * np.clip(1 - np.expm1(rows[:, -1]) / LONG_ENOUGH, 0, 1)
        odds = evaluate(self.window, rows) - self.window_penalty - short
        last = np.cumsum([len(one.first) for one in known]) - 1  # the whole text is its last window
        full = np.array([len(one.first) > 0 for one in known[:k]])
        alone = np.full(k, LOWEST)
        alone[full] = evaluate(self.whole, rows[last[:k][full]]) - short[last[:k][full]] if full.any() else LOWEST
        apart = _apart(known, k, last)
        if apart:
            odds[apart] = np.maximum(odds[apart], evaluate(self.whole, rows[apart]) - short[apart])
        return odds, alone, last, full

    def styles(self, texts: Sequence[str]) -> list[Matrix]:
        """The style of each window of k texts, shape (w,) each."""
        return self.style.windows(words_of(texts))


def _apart(known: Sequence[Words], k: int, last: Numbers) -> list[int]:
    """Windows that are judged as texts: long titles, and both ends of long texts; `last` is the last of each text."""
    titles = [int(last[n]) for n in range(k, len(known)) if len(known[n].first) and len(known[n].word) > LONG_TITLE]
    # Of n parts: n windows, n - 1, n - 3, and the whole.
    parts = {n: len(one.first) // 3 + 1 for n, one in enumerate(known)}
    ends = [int(last[n]) - back for n, count in parts.items() if count > LONG_TEXT for back in (1, count - 3)]
    return titles + ends


def _of_form(
    wanted: QuestionTerms, known: Sequence[Words], titled: Sequence[int], rows: Sequence[int], readings: Sequence[int]
) -> Flags:
    """The windows that are mostly template text of records, shape (w,), for the texts in `rows`; titles come last."""
    k = len(known) - len(titled)
    title = {i: n for n, i in enumerate(titled, k)}
    parts = [(title[i], i) if i in title else (i,) for i in range(k)]
    formed = words_of_form(wanted, [[known[n] for n in own] for own in parts], rows, readings)
    form = [np.zeros(len(one.first), bool) for one in known]
    for i, words in formed.items():
        begin = 0
        for n in parts[i]:
            one = known[n]
            flags = np.zeros(len(one.word), bool)
            own = words[begin : begin + len(flags)]
            flags[: len(own)] = own
            form[n] = ranges(flags, one.first, one.last) >= FORM * (one.last - one.first)
            begin += len(flags)
    return np.concatenate(form)


def neighbor_features(alone: Matrix, wanted: QuestionTerms, spoken: TextWords, texts: Sequence[Words]) -> Matrix:
    """The neighbour features of each text, shape (k, 6).

    Its own log-odds; the highest and the sum over suspects of probability times shared words; the highest of
    probability times the share of its words that the suspect has; the level of the set; the logarithm of its size.
    If a text has a near-copy with another name or number (`rewrites`), its near-copies share no words with it: whoever
    copies a page and changes a value must not make that page suspicious, and nobody knows which of them is honest.

    Args:
        alone: The texts' log-odds, shape (k,).
        wanted: The question.
        spoken: The k texts, followed by others.
        texts: The k texts to describe.
    """
    k = len(texts)
    odds = np.clip(alone, LOWEST, HIGHEST)
    suspects = np.argsort(-odds, kind="stable")[:SUSPECTS]
    likely = _probability(odds[suspects])
    words, shared = features.common_words(wanted.stems, spoken, k, suspects)
    shared[suspects, np.arange(len(suspects))] = 0
    close = shared >= features.COPIED * np.minimum(words[:, None], words[suspects])
    near, of = np.nonzero(close)
    record = {i: features.RecordText.of([texts[i]]) for i in {*near.tolist(), *suspects[of].tolist()}}
    pairs = zip(near.tolist(), suspects[of].tolist())
    doubtful = sorted({i for i, other in pairs if record[i].rewrites(record[other])})
    shared[doubtful] *= ~close[doubtful]
    alike = shared / np.sqrt(words[:, None] * words[suspects]) * likely
    inside = shared / words[:, None] * likely
    low = np.sort(odds)[int(INNOCENT * (k - 1))]
    return np.column_stack([odds, alike.max(axis=1), alike.sum(axis=1), inside.max(axis=1), np.full(k, low),
                            np.full(k, np.log(k))])  # fmt: skip


def _probability(odds: Matrix) -> Matrix:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -30, 30))))


def _trees(data: Mapping[str, Any], name: str) -> Trees:
    return Trees(
        data[f"{name}_features"].astype(np.int64),
        data[f"{name}_thresholds"].astype(np.float64),
        data[f"{name}_leaves"].astype(np.float64),
        float(data[f"{name}_base"]),
    )


MIN_STYLE, MAX_STYLE = -6.0, 4.0
"""Bounds of the style odds."""

MIN_STYLE_TOKENS = 10
"""Minimum words and marks of a sentence whose style is measured."""


def invention_odds(texts: Sequence[str]) -> Matrix:
    """Approximate log-odds that each text as a whole was generated to plant a claim, by its style, shape (n,).

    Args:
        texts: n canonical texts; one without words gets the minimum.

    Complexity: O(words) time, apart from sorting.
    """
    odds = np.full(len(texts), MIN_STYLE)
    for i, (known, style) in enumerate(zip(words_of(texts), each(texts, Crafted.load().styles))):
        if len(style):
            length = known.last - known.first
            # the last window is the whole
            odds[i] = (style[-1] + style[length >= min(MIN_STYLE_TOKENS, length.max())].min()) / 2
    return np.asarray(np.clip(odds, MIN_STYLE, MAX_STYLE))


BLOCK = 2048
"""Rows per batch, which bounds memory: a text of a million characters has very many."""


class Trees(NamedTuple):
    """T full binary trees of one depth D, stored breadth first.

    Attributes:
        features: The column that each node tests, shape (T, 2^D - 1).
        thresholds: A row goes right if its value is above, shape (T, 2^D - 1).
        leaves: The value of each leaf, shape (T, 2^D).
        base: A constant, added once.
    """

    features: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    leaves: NDArray[np.float64]
    base: float


def evaluate(trees: Trees, rows: Matrix) -> Matrix:
    """The sum over all trees for each row of shape (n, columns): shape (n,), in O(n T D) time and O(T) memory."""
    blocks = [_sums(trees, rows[begin : begin + BLOCK]) for begin in range(0, max(len(rows), 1), BLOCK)]
    return np.asarray(np.concatenate(blocks) + trees.base)


def _sums(trees: Trees, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    count, inner = trees.features.shape
    columns = rows.shape[1]
    features, thresholds, leaves, values = (a.ravel() for a in (trees.features, trees.thresholds, trees.leaves, rows))
    begin = np.arange(0, len(rows) * columns, columns)[:, None]
    node = np.zeros((len(rows), count), np.int64)
    tree = np.arange(count)
    for _ in range(int(inner).bit_length()):
        cell = node + inner * tree
        # `take` on flat arrays is twice as fast as indexing by rows and columns.
        node += node + 1 + (values.take(begin + features.take(cell)) > thresholds.take(cell))
    return np.asarray(leaves.take(node + (inner + 1) * tree - inner).sum(axis=1))
