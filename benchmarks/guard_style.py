"""The style of invented claims: which runs of shapes (`kernels.style`) speak for them, fitted on texts alone."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack
from sklearn.linear_model import LogisticRegression

from guard_data import PUBLISHED, Sample
from unpoison.defenses.guard.model import WORDING, GuardModel, wording
from unpoison.kernels.comparisons import middle
from unpoison.kernels.evidence import Signs
from unpoison.kernels.style import run_text, runs, word_code
from unpoison.kernels.tokenized import tokenize

__all__ = ["general_words", "styled", "tabled", "worded"]

FEWEST_TEXTS = 20
"""A run that fewer texts have says nothing."""

STRENGTH = 3.0
"""The inverse of the weight of the penalty."""

FOREIGN = 0.5
"""Share of the samples that are judged by a style which knows nothing of their kind."""

SHIFT = 2.0
"""How much more like claims other kinds of text may be built: the deviation, in log-odds of the style."""

FEWEST_QUESTIONS = 20
"""Words that stand in texts on fewer questions, or in fewer than half of the data sets, belong to a topic."""

SMALL = 0.75
"""Names are the words that stand in small letters in less than this share of the texts that hold them."""

OWN = ("wording", "wording_claim", "wording_most", "wording_least")
"""Columns of one passage."""

MIXED = ("longer",)
"""Attacks whose texts hold clean sentences too."""


def styled(samples: Sequence[Sample]) -> dict:
    """The runs' weights, by logistic regression over the distinct texts of the samples.

    Clean and invented texts weigh the same; among these each data set and each attack.
    """
    pure = [s for s in samples if s.attack not in MIXED]
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
    return {
        "runs": {run_text(int(code)): float(f"{weight:.4g}") for code, weight in zip(codes, model.coef_[0])},
        "base": float(model.intercept_[0]),
    }


def general_words(samples: Sequence[Sample]) -> np.ndarray:
    """The numbers of words that suit every topic: no names, on many questions, in most data sets."""
    questions, domains = defaultdict(set), defaultdict(set)
    written = Counter()
    for sample in samples:
        domain = sample.domain.partition("-")[0]
        for text in sample.texts:
            small, all_of = words_of(text)
            written.update(small)
            for code in all_of:
                questions[code].add(sample.question)
                domains[code].add(domain)
                written[code, "in all"] += 1
    half = len({sample.domain.partition("-")[0] for sample in samples}) / 2
    return np.array([
        code for code, asked in questions.items()
        if len(asked) >= FEWEST_QUESTIONS and len(domains[code]) >= half
        and written[code] >= SMALL * written[code, "in all"]
    ], np.int64)  # fmt: skip


@cache
def words_of(text: str) -> tuple[frozenset[int], frozenset[int]]:
    """The numbers of the words of a text that stand there in small letters, and of all."""
    words = re.findall(r"[^\W\d_]+", text)
    codes = [(word_code(word), word.islower()) for word in words]
    return frozenset(c for c, small in codes if small and c), frozenset(c for c, _ in codes if c)


def counted(texts: Sequence[str], words: np.ndarray) -> tuple[np.ndarray, csr_array]:
    """The runs, and of the words these, that enough texts have, and the texts' rows (`tabled`)."""
    found = [codes_of(text) for text in texts]
    owners = np.repeat(np.arange(len(texts)), [len(codes) for codes in found])
    return tabled(np.concatenate(found), owners, len(texts), FEWEST_TEXTS, words)


@cache
def codes_of(text: str) -> np.ndarray:
    """The runs of one text, kept: every style is fitted on most of the same texts."""
    return runs(tokenize([text])).code


def tabled(
    codes: np.ndarray, owners: np.ndarray, count: int, fewest: int, words: np.ndarray
) -> tuple[np.ndarray, csr_array]:
    """The runs, and of the words these, that at least `fewest` of `count` texts have, and the texts' rows.

    A row holds what `kernels.style.strengths` gives.
    """
    wanted = (codes > 0) | np.isin(codes, words)
    codes, owners = codes[wanted], owners[wanted]
    code, column = np.unique(codes, return_inverse=True)
    cells = np.unique(owners * len(code) + column, return_counts=True)
    owner, column = np.divmod(cells[0], len(code))
    often = np.bincount(column) >= fewest
    table = csr_array((np.log1p(cells[1]), (owner, column)), shape=(count, len(code)))[:, np.flatnonzero(often)]
    code = code[often]
    parts = [table[:, np.flatnonzero(side)] for side in (code < 0, code >= 0)]  # codes rise, so words come first
    return code, csr_array(hstack([_scaled(part) for part in parts]))


def _scaled(rows: csr_array) -> csr_array:
    """Rows of length 1; shorter ones as they are."""
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
    return csr_array(diags_array(1 / np.maximum(lengths, 1)) @ rows)


def worded(
    samples: Sequence[Sample], signs: Sequence[Signs], fold: Callable[[str], int], family: Callable[[str], str]
) -> tuple[dict, list[np.ndarray]]:
    """The style, and each sample's columns of wording by a style that has not seen its question.

    Half of the samples are judged by a style that has seen nothing of their family either. And as other kinds of text
    are built more like claims than an encyclopaedia is, nobody knows how much more, the clean passages of every sample
    are shifted towards claims, all by the same amount: that of half a normal distribution.
    """
    rng = np.random.default_rng(0)
    apart = rng.random(len(samples)) < FOREIGN
    shifts = SHIFT * np.clip(rng.normal(size=len(samples)), 0, None)
    # The only family with published poison cannot be left out: there would be nothing to learn from.
    sources = {family(s.domain) for s in samples if s.attack in PUBLISHED}
    unseen = [family(s.domain) if far and len(sources) > 1 else fold(s.question) for s, far in zip(samples, apart)]
    made: dict[int, np.ndarray] = {}
    for key in set(unseen):
        style = GuardModel.style_of(styled([s for s in samples if key not in (family(s.domain), fold(s.question))]))
        for i, (sample, found, shift) in enumerate(zip(samples, signs, shifts)):
            if unseen[i] == key:
                made[i] = shifted(np.column_stack(wording(found, style)), np.array(sample.poison), shift)
    return styled(samples), [made[i] for i in range(len(samples))]


def shifted(columns: np.ndarray, poison: np.ndarray, shift: float) -> np.ndarray:
    """`WORDING` with the clean passages' scores higher by `shift`."""
    made = columns.copy()
    made[np.ix_(~poison, [WORDING.index(name) for name in OWN])] += shift
    whole = made[:, WORDING.index("wording")]
    typical = middle(whole)
    made[:, WORDING.index("wording_contrast")] = whole - typical
    made[:, WORDING.index("set_wording")] = typical
    made[:, WORDING.index("set_wording_most")] = whole.max()
    return made
