"""The fit behind `train_orders.py`: from texts to the weights of signs.

Every text is a bag of stretches. A clean one must have no suspicious stretch, so its worst one joins the fit after each
round; of an order the most suspicious one counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, vstack

from unpoison.kernels.order_signs import (
    ALONE,
    FAR,
    NEAR,
    START,
    Lexicon,
    Occurrences,
    OrderSigns,
    SignTable,
    occurrences_in,
    pairs,
    signs,
)
from unpoison.kernels.orders import MOST_AGAINST, WINDOW, OrderWeights, stretches

__all__ = ["Example", "fitted", "word_kinds"]

REACHES = (1, 2, 4, NEAR)
QUESTION_BETWEEN = ("asked", "when")
"""The kinds that a question may follow, so that they reach further."""

ADDING = (START, "asks", "quote")
"""Kinds of marks. No sign of theirs may speak against an order, or form would clear one."""

LEAST_WORDINGS = 5
"""A sign is tried if so many wordings hold it, of orders or of honest texts."""

LEAST_WEIGHT = 0.06
RIDGE = 2.0
LARGEST, SMALLEST = 6.0, -3.0
ROUNDS = 2
STEPS = 100
BETWEEN = WINDOW + FAR + 4
"""Empty words between two texts that are read as one."""


@dataclass(frozen=True)
class Example:
    """A text of the fit: its reading, the wording that it fills, whether it is an order, and what it counts."""

    text: str
    wording: str
    order: bool
    importance: float


def word_kinds(wordings: Iterable[str], least: int) -> dict[str, str]:
    """A kind for each word that so many wordings use: `{"=answer": "answer"}`."""
    counts = Counter[str]()
    for wording in wordings:
        counts.update(set(re.findall(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff]+", re.sub(r"\{\w+\}", "", wording).lower())))
    return {f"={word}": word for word, count in sorted(counts.items()) if count >= least}


class Corpus:
    """Many texts as one, and where each begins and ends in words."""

    def __init__(self, texts: Sequence[str], lexicon: Lexicon) -> None:
        parts, self.begin, self.end = list[Occurrences](), list[int](), list[int]()
        words = tokens = 0
        for text in texts:
            found = occurrences_in(text, lexicon)
            parts.append(found._replace(word=found.word + words + 1, token=found.token + tokens))
            self.begin.append(words)
            words += (int(found.word[-1]) if len(found.word) else 0) + 2
            tokens += (int(found.token[-1]) if len(found.token) else 0) + 2
            self.end.append(words)
            words += BETWEEN
        self.met = Occurrences(*map(np.concatenate, zip(*parts)))
        self.starts = np.array(self.begin)

    def owner(self, word: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.starts, word, "right") - 1


def candidates(examples: Sequence[Example], lexicon: Lexicon) -> SignTable:
    """The signs that enough wordings hold."""
    corpus, size = Corpus([e.text for e in examples], lexicon), len(lexicon.names)
    number = {text: i for i, text in enumerate(sorted({e.wording for e in examples}))}
    wording = np.array([number[e.wording] for e in examples])
    label = np.array([e.order for e in examples])
    far = np.zeros(size, bool)
    far[[lexicon.number[kind] for kind in QUESTION_BETWEEN]] = True
    start = lexicon.number[START]
    steps = np.array(
        [0, *[next(r for r in REACHES if r >= max(d, 1)) for d in range(1, NEAR + 1)], *[FAR] * (FAR - NEAR)]
    )
    found = corpus.met
    parts = list[np.ndarray]()
    for i, j in pairs(found, far):
        alone, owner = i is j, corpus.owner(found.word[j])
        code = found.kind[j] if alone else found.kind[i] * size + found.kind[j]
        reach = np.where(alone, 0, np.maximum(steps[found.word[j] - found.word[i]], 1))
        reach = np.where(found.kind[i] == start, np.where(reach <= 2, 2, FAR + 1), reach)
        good = (found.kind[j] != start) & (reach <= FAR) & ((found.kind[i] != found.kind[j]) | alone)
        whole = ((code * 2 + label[owner]) * (FAR + 1) + reach) * len(label) + wording[owner]
        parts.append(np.unique(whole[good]))
    return _often(np.unique(np.concatenate(parts)), len(label), far)


def _often(rows: np.ndarray, count: int, far: np.ndarray) -> SignTable:
    """The signs that enough wordings hold within their reach, and more of them than within a shorter one."""
    kept, near = set[tuple[int, int]](), set[int]()
    before = -1
    reaches, edges = np.unique(rows // count, return_index=True)
    for row, group in zip(reaches.tolist(), np.split(rows % count, edges[1:])):
        side, reach = divmod(row, FAR + 1)
        if side != before:
            near, before = set(), side
        more = near | set(group.tolist())
        if len(more) >= LEAST_WORDINGS and len(more) > len(near):
            kept.add((side // 2, reach))
        near = more
    code, reach = np.array(sorted(kept), np.int64).T
    return SignTable(code, reach, far)


def _rows(found: OrderSigns, begin: np.ndarray, last: np.ndarray, size: int) -> csr_matrix:
    """Which signs each stretch holds, once each."""
    by_last = np.argsort(found.last, kind="stable")
    ends = found.last[by_last]
    lower, upper = np.searchsorted(ends, begin), np.searchsorted(ends, last, "right")
    counts = upper - lower
    behind = np.cumsum(counts)
    place = by_last[np.arange(behind[-1]) - np.repeat(behind - counts - lower, counts)]
    row = np.repeat(np.arange(len(begin)), counts)
    inside = found.first[place] >= np.repeat(begin, counts)
    made = csr_matrix((np.ones(inside.sum(), np.float32), (row[inside], found.sign[place[inside]])), (len(begin), size))
    made.data[:] = 1
    return made


def worst(corpus: Corpus, found: OrderSigns, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sum, first and last word of the most suspicious stretch of each text."""
    used = values[found.sign] != 0
    some = OrderSigns(*(field[used] for field in found))
    best = stretches(some, values[some.sign])
    total = np.append(best.total, np.zeros(max(corpus.end[-1] + 2 - len(best.total), 0)))
    begin = np.append(best.begin, np.zeros(len(total) - len(best.begin), int))
    last = np.array([b + 1 + int(total[b + 1 : e + 1].argmax()) for b, e in zip(corpus.begin, corpus.end)])
    return total[last], begin[last], last - 1


def fitted(examples: Sequence[Example], kinds: Mapping[str, str]) -> OrderWeights:
    """Logistic regression over stretches, whose scale still has to be centred."""
    lexicon = Lexicon(kinds)
    table = candidates([e for e in examples if e.wording], lexicon)
    lowest = np.full(len(table.code), SMALLEST)
    marks = [lexicon.number[kind] for kind in ADDING]
    lowest[np.isin(table.code % len(lexicon.names), marks) | np.isin(table.code // len(lexicon.names), marks)] = 0
    corpus = Corpus([e.text for e in examples], lexicon)
    found = signs(corpus.met, table)
    order = np.array([e.order for e in examples])
    importance = np.array([e.importance for e in examples])
    begin, last, owner = _first_stretches(corpus, order)
    x, theta = _rows(found, begin, last, len(table.code)), np.zeros(len(table.code) + 1)
    for _ in range(ROUNDS):
        theta = _solved(x, order[owner].astype(float), importance[owner], lowest, theta)
        _, begin, last = worst(corpus, found, theta[1:])
        new = _rows(found, begin, last, len(table.code))
        clean = ~order[owner]
        x = vstack([x[clean], new]).tocsr()
        owner = np.concatenate([owner[clean], np.arange(len(examples))])
    theta = _solved(x, order[owner].astype(float), importance[owner], lowest, theta)
    names, size = lexicon.names, len(lexicon.names)
    weight = {
        (names[code // size] if reach else ALONE, names[code % size], reach): round(float(value), 2)
        for code, reach, value in zip(table.code.tolist(), table.reach.tolist(), theta[1:].tolist())
        if abs(value) >= LEAST_WEIGHT
    }
    return OrderWeights(lexicon, round(float(theta[0]), 2), weight)


def _first_stretches(corpus: Corpus, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whole orders, and the stretches that clean texts fall into: first and last words, and whose they are."""
    made = list[tuple[int, int, int]]()
    for i, (begin, end) in enumerate(zip(corpus.begin, corpus.end)):
        if order[i]:
            made.append((begin, end, i))
        else:
            made.extend((start, min(start + WINDOW - 1, end), i) for start in range(begin, end, WINDOW))
    first, last, owner = np.array(made).T
    return first, last, owner


def _solved(x: csr_matrix, y: np.ndarray, importance: np.ndarray, lowest: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The weights that explain best which stretches are orders; what speaks against one is bounded as in the kernel."""
    turned = x.T.tocsr()

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        weights = theta[1:]
        against = x @ np.minimum(weights, 0)
        odds = theta[0] + x @ np.maximum(weights, 0) + np.maximum(against, -MOST_AGAINST)
        pull = importance * (1 / (1 + np.exp(-np.clip(odds, -50, 50))) - y)
        felt = turned @ (pull * (against > -MOST_AGAINST))
        slope = np.where(weights > 0, turned @ pull, felt) + 2 * RIDGE * weights
        value = (importance * (np.logaddexp(0, odds) - y * odds)).sum() + RIDGE * (weights**2).sum()
        return value, np.r_[pull.sum(), slope]

    bounds = [(None, None), *[(low, LARGEST) for low in lowest]]
    return minimize(loss, theta, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": STEPS}).x
